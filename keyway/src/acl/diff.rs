//! `keyway acl diff`.

use super::arguments::Diff;
use super::rules::{line, place};
use keyway_config::Configuration;
use keyway_host::failure::Failure;
use keyway_host::output;
use keyway_schema::Schema;
use keyway_server::access::{Grant, difference};
use serde_json::{Value, json};
use std::path::Path;

/// Says what is gained and what is lost.
///
/// # Errors
/// If a file cannot be read or makes no sense.
pub fn run(arguments: &Diff) -> Result<(), Failure> {
    let old = Configuration::of_file(&arguments.old)?.directory.rules;
    let new = Configuration::of_file(&arguments.new)?.directory.rules;
    let schema = Schema::standard().map_err(Failure::new)?;
    let gained = difference(&new, &old, &schema);
    let lost = difference(&old, &new, &schema);
    if arguments.json {
        let list = |grants: &[Grant]| grants.iter().map(as_json).collect::<Vec<_>>();
        return output::json(&json!({
            "event": "compared",
            "gained": list(&gained),
            "lost": list(&lost),
        }));
    }
    if gained.is_empty() && lost.is_empty() {
        return output::text("no client gains or loses access");
    }
    say("gained", &arguments.new, &gained)?;
    say("lost", &arguments.old, &lost)
}

fn say(what: &str, file: &Path, grants: &[Grant]) -> Result<(), Failure> {
    for Grant { rule, left } in grants {
        for (rights, attributes) in left {
            let (who, on) = (rule.subject_text(), rule.target_text());
            let place = place(file, rule, None);
            output::text(format_args!("{what}: {who}: {rights} {attributes} ({on}; {place})"))?;
        }
    }
    Ok(())
}

fn as_json(grant: &Grant) -> Value {
    let left: Vec<Value> = grant
        .left
        .iter()
        .map(|(rights, attributes)| {
            json!({ "rights": rights.to_string(), "attributes": attributes.to_string() })
        })
        .collect();
    json!({
        "line": line(&grant.rule),
        "who": grant.rule.subject_text(),
        "on": grant.rule.target_text(),
        "what": left,
    })
}
