//! Which rules decided what came of a request, for a client that asks for it.

use super::compiled::Compiled;
use super::rights::Rights;
use super::rule::Origin;
use crate::limits::DECISIONS_MAX;
use keyway_lock::Unpoisoned;
use std::fmt::Write;
use std::sync::Mutex;

/// The decisions so far. A subject that has one notes in it all that is asked of its rights.
#[derive(Debug, Default)]
pub struct Trace(Mutex<Vec<Decision>>);

#[derive(Debug)]
struct Decision {
    right: Rights,
    /// Empty for whole entries.
    attribute: String,
    /// The rule that allows it, and where it is; `None` if none does.
    origin: Option<Origin>,
    /// It for people.
    text: String,
}

impl Trace {
    /// Whether there is room for the decision of this rule, and it was not noted before.
    pub(crate) fn wants(&self, right: Rights, attribute: &str, rule: Option<&Compiled>) -> bool {
        let decisions = self.0.lock().unpoisoned();
        is_new(&decisions, right, attribute, rule.map(|rule| &rule.rule.origin))
    }

    /// Notes that a rule, with the words for its place, allows something, or that none does.
    pub(crate) fn note(&self, right: Rights, attribute: &str, rule: Option<(&Compiled, String)>) {
        let (origin, text) = match rule {
            Some((rule, place)) => {
                (Some(rule.rule.origin.clone()), format!("{place}: {}", rule.rule))
            }
            None => (None, "no rule".to_owned()),
        };
        let mut decisions = self.0.lock().unpoisoned();
        if is_new(&decisions, right, attribute, origin.as_ref()) {
            decisions.push(Decision { right, attribute: attribute.to_owned(), origin, text });
        }
    }

    /// A line for each: `read mail: line 12 of the configuration: users: read mail (data)`.
    pub(crate) fn to_text(&self) -> String {
        let decisions = self.0.lock().unpoisoned();
        let mut text = String::new();
        for Decision { right, attribute, text: rule, .. } in decisions.iter().take(DECISIONS_MAX) {
            let space = if attribute.is_empty() { "" } else { " " };
            let _ = writeln!(text, "{right}{space}{attribute}: {rule}");
        }
        if decisions.len() > DECISIONS_MAX {
            text.push_str("there were more\n");
        }
        text
    }
}

/// Whether there is room for a decision, and it is not among those that were noted.
fn is_new(decisions: &[Decision], right: Rights, attribute: &str, origin: Option<&Origin>) -> bool {
    let is_it = |one: &Decision| {
        one.right == right && one.attribute == attribute && one.origin.as_ref() == origin
    };
    decisions.len() <= DECISIONS_MAX && !decisions.iter().any(is_it)
}
