//! `keyway acl explain`.

use super::arguments::Explain;
use super::look::{self, Look};
use super::rules::{line, place, written};
use keyway_host::failure::Failure;
use keyway_host::output;
use keyway_server::access::{Considered, Over, Question, Rights};
use keyway_service::instance::describe;
use serde_json::{Value, json};

/// Rules that are told of what no rule allows.
const NEAREST_MAX: usize = 3;

/// The answer about one right.
struct Answer {
    name: &'static str,
    rules: Vec<Considered>,
}

/// Answers, a right at a time.
///
/// # Errors
/// If the directory cannot be read, or who or what is asked for is not there.
pub fn run(arguments: &Explain) -> Result<(), Failure> {
    let Explain { who, what, attribute, right, from, over, .. } = arguments;
    let look = look::open(&arguments.asked)?;
    let subject = look.subject(who)?.over(Over { address: Some(*from), strength: *over });
    let asked = Rights::EACH.iter().filter(|(_, one)| right.is_none_or(|right| right == *one));
    let ask = |(name, right): &(&'static str, Rights)| {
        let question = Question { dn: what, right: *right, attribute: attribute.as_deref() };
        let rules = look.directory.explain(&subject, &question);
        let rules = rules.map_err(|why| Failure::new(format!("{what}: {}", describe(&why))))?;
        Ok(Answer { name, rules })
    };
    let answers: Vec<Answer> = asked.map(ask).collect::<Result<_, Failure>>()?;
    let client = subject.dn().unwrap_or("anonymous");
    if arguments.json {
        let rights: Vec<Value> = answers.iter().map(|answer| answer.json(&look)).collect();
        return output::json(&json!({
            "event": "explained",
            "who": client,
            "what": what,
            "attribute": attribute,
            "rights": rights,
        }));
    }
    let on = attribute.as_deref().map(|name| format!("attribute {name} of ")).unwrap_or_default();
    let entry = if what.is_empty() { "the root DSE" } else { what };
    output::text(format_args!("{client} from {from} over {over}, on {on}{entry}:"))?;
    answers.iter().try_for_each(|answer| answer.say(&look, right.is_some()))
}

impl Answer {
    fn granting(&self) -> Option<&Considered> {
        self.rules.iter().find(|rule| rule.grants())
    }

    /// The rules that come nearest: of those that could allow it at all those that want least.
    fn nearest(&self) -> Vec<&Considered> {
        let lacks = format!("it does not grant {}", self.name);
        let mut rules: Vec<&Considered> =
            self.rules.iter().filter(|one| !one.why_not.contains(&lacks)).collect();
        rules.sort_by_key(|one| one.why_not.len());
        rules.truncate(NEAREST_MAX);
        rules
    }

    fn say(&self, look: &Look, in_full: bool) -> Result<(), Failure> {
        let name = self.name;
        match self.granting() {
            Some(one) => {
                let place = place(&look.file, &one.rule, one.entry.as_deref());
                output::text(format_args!("  {name:<9} yes  {place}: {}", one.rule))?;
                let lines = if in_full { written(&look.text, &one.rule) } else { Vec::new() };
                lines.iter().try_for_each(|line| output::text(format_args!("      {line}")))
            }
            None => {
                output::text(format_args!("  {name:<9} no   no rule allows it"))?;
                let nearest = if in_full { self.nearest() } else { Vec::new() };
                nearest.iter().try_for_each(|one| {
                    let place = place(&look.file, &one.rule, one.entry.as_deref());
                    output::text(format_args!("      {place}: {}", one.rule))?;
                    let why = one.why_not.join("; ");
                    output::text(format_args!("        it would, but {why}"))
                })
            }
        }
    }

    fn json(&self, look: &Look) -> Value {
        let rule = |one: &Considered| {
            json!({
                "line": line(&one.rule),
                "entry": one.entry,
                "rule": one.rule.to_string(),
                "text": written(&look.text, &one.rule).join("\n"),
                "why_not": one.why_not,
            })
        };
        json!({
            "right": self.name,
            "allowed": self.granting().is_some(),
            "file": look.file.display().to_string(),
            "deciding": self.granting().map(rule),
            "rules": self.rules.iter().map(rule).collect::<Vec<_>>(),
        })
    }
}
