//! `keyway config diff`.

use super::arguments::Diff;
use keyway_config::Settings;
use keyway_config::in_force::{InForce, of_file, of_folder};
use keyway_host::failure::Failure;
use keyway_host::output;
use keyway_host::output::shell;
use serde_json::json;
use std::collections::BTreeSet;
use toml::Value;

/// Says which settings differ.
///
/// # Errors
/// If a file cannot be read, or nothing runs that could be compared with.
pub fn run(arguments: &Diff) -> Result<(), Failure> {
    if let (Some(old), Some(new)) = (&arguments.old, &arguments.new) {
        return say(arguments, &of_file(old)?, &of_file(new)?, &Settings::new());
    }
    let folder = &arguments.data.folder;
    let InForce { settings, waiting, is_running } = InForce::look(folder)?;
    if !is_running {
        let folder = shell(&folder.to_string_lossy());
        return Err(Failure::new(format!(
            "no server runs on {folder} whose settings could be compared; name two files"
        )));
    }
    let mut file = of_folder(folder)?;
    // A flag wins, whatever the file says.
    for (key, setting) in &settings {
        if setting.from.is_flag() {
            file.insert(key.clone(), setting.clone());
        }
    }
    say(arguments, &settings, &file, &waiting)
}

fn say(
    arguments: &Diff,
    old: &Settings,
    new: &Settings,
    waiting: &Settings,
) -> Result<(), Failure> {
    let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let value = |settings: &Settings, key| settings.get(key).map(|setting| setting.value.clone());
    let differs: Vec<_> = keys
        .into_iter()
        .map(|key| (key, value(old, key), value(new, key)))
        .filter(|(_, old, new)| old != new)
        .collect();
    if arguments.json {
        let as_json = |(key, old, new): &(&String, Option<Value>, Option<Value>)| {
            json!({
                "key": key, "old": old, "new": new, "waits": waiting.contains_key(*key)
            })
        };
        let differs: Vec<_> = differs.iter().map(as_json).collect();
        return output::json(&json!({ "event": "compared", "differs": differs }));
    }
    if differs.is_empty() {
        return output::text("no setting differs");
    }
    for (key, old, new) in differs {
        let shown = |value: Option<Value>| value.map_or("not set".into(), |it| it.to_string());
        let waits = if waiting.contains_key(key) { "  # waits for the next start" } else { "" };
        output::text(format_args!("{key}: {} -> {}{waits}", shown(old), shown(new)))?;
    }
    Ok(())
}
