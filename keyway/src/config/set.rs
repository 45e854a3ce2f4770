//! `keyway config set`.

use super::arguments::Set;
use keyway_config::Given;
use keyway_config::Running;
use keyway_config::applied;
use keyway_config::value;
use keyway_config::{Configuration, Settings, catalogue, edit, settings, text_of};
use keyway_folder::data::{self, name};
use keyway_host::failure::Failure;
use keyway_host::output;
use keyway_service::edited::{Edited, Taken};
use keyway_service::instance::Instance;
use keyway_service::start_check;
use serde_json::json;
use std::collections::HashSet;
use toml::Value;

/// A setting, and what it is to be; `None` takes it out.
struct Change {
    key: String,
    value: Option<Value>,
}

/// Changes settings.
///
/// # Errors
/// Why they are not changed.
pub fn run(arguments: &Set) -> Result<(), Failure> {
    let folder = &arguments.data.folder;
    let file = folder.join(name::CONFIGURATION);
    let changes = changes(arguments)?;
    let lock = data::lock_edits(folder)?;
    let old = text_of(folder)?;
    // An edit of what is left of a configuration would have the rest forgotten.
    if let Some(applied) = applied::of_folder(folder)? {
        applied::refuse_loss(folder, &applied, &old)?;
    }
    let mut new = old.clone();
    for Change { key, value } in &changes {
        let wrong = |why: String| match settings(&old) {
            Ok(_) => Failure::new(format!("{}: {key}: {why}", file.display())),
            Err(why) => Failure::new(format!("{}: {why}", file.display())),
        };
        new = edit::set(&new, key, value.as_ref()).map_err(wrong)?;
    }
    // A fault of it is said as of the file that there would be.
    let configuration = Configuration::of_text(folder, &new, &Given::none())?;
    if new != old {
        start_check::check(folder, &configuration)?;
        // One that runs tries them itself, and may read what this user may not.
        if Running::look(folder).is_none() {
            Instance::check(folder, &file, &configuration)?;
            start_check::check_tls(folder, &configuration)?;
        }
    }
    applied::refuse_loss(folder, &old, &new)?;
    let said = Said {
        before: settings(&old).unwrap_or_default(),
        after: settings(&new).unwrap_or_default(),
        json: arguments.json,
    };
    if new == old {
        return said.say(&changes, |_| "as it was".to_owned());
    }
    data::replace(&file, &new)?;
    drop(lock);
    let running = Edited { folder, old: &old, new: &new }.have_taken()?;
    said.say(&changes, |key| match Taken::of(running.as_ref(), key) {
        Taken::NotRunning => "written; no server runs there".to_owned(),
        Taken::Now => "written, and the server has taken it".to_owned(),
        Taken::Later => "written; the server takes it at its next start".to_owned(),
        Taken::Flag(flag) => {
            format!("written; the running server was started with {flag}, which wins")
        }
    })
}

/// The changes that are asked for: one setting, or each of several.
fn changes(arguments: &Set) -> Result<Vec<Change>, Failure> {
    let Set { key, values, default, .. } = arguments;
    if !key.contains('=') {
        return Ok(vec![one(key, values, *default)?]);
    }
    if *default {
        return Err(Failure::usage("--default is for one setting, without a value"));
    }
    let read = |text: &String| match text.split_once('=') {
        Some((key, value)) => one(key, &[value.to_owned()], false),
        None => {
            Err(Failure::usage(format!("\"{text}\" is not KEY=VALUE, as the arguments before it")))
        }
    };
    let changes: Vec<Change> =
        std::iter::once(key).chain(values).map(read).collect::<Result<_, _>>()?;
    let mut keys = HashSet::new();
    match changes.iter().find(|change| !keys.insert(&change.key)) {
        Some(Change { key, .. }) => {
            Err(Failure::usage(format!("{key} is given twice; give it one value")))
        }
        None => Ok(changes),
    }
}

fn one(key: &str, values: &[String], default: bool) -> Result<Change, Failure> {
    let kind = catalogue::kind(key).ok_or_else(|| Failure::new(edit::unknown(key)))?;
    let value = match (default, values) {
        (true, _) => settings("").unwrap_or_default().remove(key).map(|setting| setting.value),
        (false, []) => {
            return Err(Failure::usage(format!("{key}: give it a value, or --default")));
        }
        (false, values) => {
            let value = value::read(kind, values);
            Some(value.map_err(|why| Failure::new(format!("{key}: {why}")))?)
        }
    };
    Ok(Change { key: key.to_owned(), value })
}

/// The report of changes.
struct Said {
    before: Settings,
    after: Settings,
    json: bool,
}

impl Said {
    fn say(&self, changes: &[Change], state: impl Fn(&str) -> String) -> Result<(), Failure> {
        let value = |settings: &Settings, key: &str| settings.get(key).map(|it| it.value.clone());
        let mut all = Vec::new();
        for Change { key, .. } in changes {
            let (old, new, state) = (value(&self.before, key), value(&self.after, key), state(key));
            if self.json {
                all.push(json!({ "key": key, "old": old, "new": new, "state": state }));
                continue;
            }
            let shown = |value: Option<Value>| value.map_or("not set".into(), |it| it.to_string());
            let (new, old) = (shown(new), shown(old));
            output::text(format_args!("{key} = {new} (before: {old}): {state}"))?;
        }
        match &mut all[..] {
            [] => Ok(()),
            [one] => {
                one["event"] = "set".into();
                output::json(one)
            }
            _ => output::json(&json!({ "event": "set", "settings": all })),
        }
    }
}
