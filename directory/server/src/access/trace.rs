//! Which rules decided what came of a request, for a client that asks for it.

use super::compiled::Compiled;
use super::{Origin, Rights};
use crate::candidate::Candidate;
use crate::failure::Result;
use crate::limits::DECISIONS_MAX;
use keyway_store::Names;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};

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
    /// The same for people.
    text: String,
}

impl Trace {
    /// Notes that a rule allows something, or that none does.
    ///
    /// # Errors
    /// The store's.
    pub(crate) fn note(
        &self,
        right: Rights,
        attribute: &str,
        rule: Option<&Compiled>,
        entry: Option<&Candidate<'_, '_>>,
    ) -> Result<()> {
        let origin = rule.map(|rule| rule.rule.origin.clone());
        let mut decisions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = decisions
            .iter()
            .any(|one| one.right == right && one.attribute == attribute && one.origin == origin);
        if is_known || decisions.len() > DECISIONS_MAX {
            return Ok(());
        }
        let text = match rule {
            Some(rule) => format!("{}: {}", place(&rule.rule.origin, entry)?, rule.rule),
            None => "no rule".to_owned(),
        };
        decisions.push(Decision { right, attribute: attribute.to_owned(), origin, text });
        Ok(())
    }

    /// A line for each: `read mail: line 12 of the configuration: users: read mail (data)`.
    pub(crate) fn to_text(&self) -> String {
        let decisions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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

fn place(origin: &Origin, entry: Option<&Candidate<'_, '_>>) -> Result<String> {
    Ok(match origin {
        Origin::BuiltIn => "built in".to_owned(),
        Origin::Line(line) => format!("line {line} of the configuration"),
        Origin::Entry(stored) => {
            let tree = entry.and_then(Candidate::tree);
            let dn = tree.map(|tree| tree.dn(stored.id, &mut Names::new())).transpose()?;
            format!("entry \"{}\"", dn.flatten().unwrap_or_default())
        }
    })
}
