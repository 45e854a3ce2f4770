//! `keyway config get`.

use super::arguments::Get;
use keyway_config::in_force::InForce;
use keyway_config::{Setting, catalogue, edit};
use keyway_host::failure::Failure;
use keyway_host::output;
use serde_json::{Value, json};

/// Shows settings.
///
/// # Errors
/// If there is no such setting, or the folder cannot be read.
pub fn run(arguments: &Get) -> Result<(), Failure> {
    let InForce { settings, waiting, is_running } = InForce::look(&arguments.data.folder)?;
    let is_meant = |key: &str| match &arguments.key {
        None => true,
        Some(wanted) => {
            key == wanted || key.strip_prefix(wanted.as_str()).is_some_and(|it| it.starts_with('.'))
        }
    };
    let shown: Vec<_> = settings.iter().filter(|(key, _)| is_meant(key)).collect();
    if let (true, Some(key)) = (shown.is_empty(), &arguments.key) {
        // A list of tables that has none.
        return match catalogue::kind(key) {
            Some(_) if arguments.json => output::json(&json!({
                "event": "settings", "running": is_running, "settings": []
            })),
            Some(_) => output::text(format_args!("{key} is not set")),
            None => Err(Failure::new(edit::unknown(key))),
        };
    }
    if arguments.json {
        let all: Vec<Value> =
            shown.iter().map(|(key, setting)| as_json(key, setting, waiting.get(*key))).collect();
        return match &all[..] {
            [one] if arguments.key.is_some() => output::json(one),
            _ => output::json(&json!({
                "event": "settings", "running": is_running, "settings": all
            })),
        };
    }
    for (key, setting) in shown {
        output::text(line(key, setting, waiting.get(key)))?;
    }
    Ok(())
}

/// `limits.idle_max_s = 3600  # seconds; default`
fn line(key: &str, setting: &Setting, waiting: Option<&Setting>) -> String {
    let unit = catalogue::unit(key).map(|unit| format!("{unit}; ")).unwrap_or_default();
    let later = waiting.map(|later| format!("; {} at the next start", later.value));
    let Setting { value, from } = setting;
    format!("{key} = {value}  # {unit}{from}{}", later.unwrap_or_default())
}

fn as_json(key: &str, setting: &Setting, waiting: Option<&Setting>) -> Value {
    json!({
        "event": "setting",
        "key": key,
        "value": setting.value,
        "unit": catalogue::unit(key),
        "from": setting.from.to_string(),
        "at_next_start": waiting.map(|later| &later.value),
    })
}
