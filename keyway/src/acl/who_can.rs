//! `keyway acl who-can`.

use super::arguments::WhoCan;
use super::look;
use super::rules::{line, place};
use keyway_host::failure::Failure;
use keyway_host::output::{self, grouped};
use keyway_server::access::{Considered, Question, Rule};
use keyway_service::instance::describe;
use serde_json::{Value, json};

/// Lists the rules that allow it, and the clients that they are for.
///
/// # Errors
/// If the directory cannot be read, or what is asked for is not there.
pub fn run(arguments: &WhoCan) -> Result<(), Failure> {
    let WhoCan { right, attribute, at, .. } = arguments;
    let look = look::open(&arguments.asked)?;
    let dn = at.as_deref().unwrap_or_default();
    let question = Question { dn, right: *right, attribute: Some(attribute) };
    let failed = |why: keyway_server::Failure| Failure::new(describe(&why));
    let found = look.directory.who_can(&question, at.is_none()).map_err(failed)?;
    let members = |rule: &Rule| -> Result<Option<usize>, Failure> {
        let mut all = 0;
        for group in &rule.needs.groups {
            let Some(count) = look.directory.members_of(group).map_err(failed)? else {
                return Ok(None);
            };
            all += count;
        }
        Ok((!rule.needs.groups.is_empty()).then_some(all))
    };
    if arguments.json {
        let rule = |one: &Considered| -> Result<Value, Failure> {
            let rule = &one.rule;
            Ok(json!({
                "line": line(rule),
                "entry": one.entry,
                "who": rule.subject_text(),
                "on": rule.target_text(),
                "attributes": rule.attributes.to_string(),
                "members": members(rule)?,
            }))
        };
        let rules: Vec<Value> = found.iter().map(rule).collect::<Result<_, _>>()?;
        return output::json(&json!({
            "event": "who_can",
            "right": right.to_string(),
            "attribute": attribute,
            "at": at,
            "rules": rules,
        }));
    }
    for one in &found {
        let rule = &one.rule;
        let count = match members(rule)? {
            Some(1) => " (1 member)".to_owned(),
            Some(members) => format!(" ({} members)", grouped(members as u64)),
            None => String::new(),
        };
        let place = place(&look.file, rule, one.entry.as_deref());
        let (who, what) = (rule.subject_text(), rule.target_text());
        output::text(format_args!("{who}{count}: on {what} ({place})"))?;
    }
    Ok(())
}
