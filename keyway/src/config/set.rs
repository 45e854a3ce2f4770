//! `keyway config set`.

use super::arguments::Set;
use super::value;
use crate::configuration::{Configuration, Settings, catalogue, edit, settings};
use crate::data::{self, name};
use crate::failure::{Failure, plain};
use crate::limits::{RELOAD_LOOK_EVERY, RELOAD_WAIT};
use crate::output;
use crate::running::Running;
use crate::schema::Given;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;
use toml::Value;

/// What the running server made of it.
enum Taken {
    /// No server runs.
    Nobody,
    /// It has taken it.
    Now,
    /// It waits for the next start.
    Later,
}

/// Changes a setting.
///
/// # Errors
/// Why it is not changed.
pub fn run(arguments: &Set) -> Result<(), Failure> {
    let folder = &arguments.data.folder;
    let file = folder.join(name::CONFIGURATION);
    let key = &arguments.key;
    let lock = data::lock_edits(folder)?;
    let old = data::read(&file)?;
    let wrong = |why: String| Failure::new(format!("{}: {key}: {why}", file.display()));
    let new = match wanted(arguments)? {
        Wanted::Value(value) => edit::set(&old, key, Some(&value)),
        Wanted::Nothing => edit::set(&old, key, None),
    };
    let new = new.map_err(wrong)?;
    // What is wrong with it is said as of the file that there would be.
    Configuration::of_text(folder, &new, &Given::none())?;
    let (before, after) = (settings(&old).unwrap_or_default(), settings(&new).unwrap_or_default());
    if new == old {
        return say(arguments, &before, &after, "as it was");
    }
    data::replace(&file, &new)?;
    drop(lock);
    let edited = Edited { folder, file: file.clone(), old, new };
    let state = match edited.have_taken(key)? {
        Taken::Nobody => "written; no server runs there that could take it",
        Taken::Now => "written, and the server has taken it",
        Taken::Later => "written; the server takes it at its next start",
    };
    say(arguments, &before, &after, state)
}

enum Wanted {
    Value(Value),
    /// It is to be taken out.
    Nothing,
}

fn wanted(arguments: &Set) -> Result<Wanted, Failure> {
    let key = &arguments.key;
    let kind = catalogue::kind(key).ok_or_else(|| Failure::new(edit::unknown(key)))?;
    if arguments.default {
        let mut defaults = settings("").unwrap_or_default();
        let default = defaults.remove(key).map(|setting| setting.value);
        return Ok(default.map_or(Wanted::Nothing, Wanted::Value));
    }
    let value = value::read(kind, &arguments.values);
    value.map(Wanted::Value).map_err(|why| Failure::new(format!("{key}: {why}")))
}

/// A file that was changed.
struct Edited<'a> {
    folder: &'a Path,
    file: PathBuf,
    old: String,
    new: String,
}

impl Edited<'_> {
    /// Has the running server read it, and waits for what it says. What it refuses is undone.
    fn have_taken(&self, key: &str) -> Result<Taken, Failure> {
        let Some(before) = Running::look(self.folder) else {
            return match data::user(self.folder) {
                None => Ok(Taken::Nobody),
                Some(user) => Err(Failure::new(format!(
                    "{} is written; {user} uses the folder and does not say what it has read",
                    self.file.display()
                ))),
            };
        };
        let pid = i32::try_from(before.holder).ok().and_then(Pid::from_raw);
        let told = pid.map(|pid| kill_process(pid, Signal::HUP));
        if let Some(Err(why)) = told {
            let why = plain(&why.into());
            return Err(Failure::new(format!(
                "{} is written, but process {} cannot be told: {why}; send it SIGHUP",
                self.file.display(),
                before.holder
            )));
        }
        let now = self.wait(&before)?;
        match now.refused {
            None if now.waiting.iter().any(|waiting| waiting == key) => Ok(Taken::Later),
            None => Ok(Taken::Now),
            Some(why) => Err(self.undo(&why)),
        }
    }

    fn wait(&self, before: &Running) -> Result<Running, Failure> {
        let begun = Instant::now();
        while begun.elapsed() < RELOAD_WAIT {
            match Running::look(self.folder) {
                Some(now) if (now.process, now.reads) != (before.process, before.reads) => {
                    return Ok(now);
                }
                _ => thread::sleep(RELOAD_LOOK_EVERY),
            }
        }
        Err(Failure::new(format!(
            "{} is written, but the server has not said within {} s whether it takes it; its \
             error.log may",
            self.file.display(),
            RELOAD_WAIT.as_secs()
        )))
    }

    fn undo(&self, why: &str) -> Failure {
        let undone = data::lock_edits(self.folder).and_then(|_lock| {
            match data::read(&self.file)? == self.new {
                true => data::replace(&self.file, &self.old),
                // Somebody has changed it since.
                false => Ok(()),
            }
        });
        match undone {
            Ok(()) => Failure::new(format!("not changed: the server does not take it: {why}")),
            Err(also) => Failure::new(format!(
                "the server does not take it ({why}), and the file cannot be put back: {also}"
            )),
        }
    }
}

fn say(arguments: &Set, before: &Settings, after: &Settings, state: &str) -> Result<(), Failure> {
    let key = &arguments.key;
    let value = |settings: &Settings| settings.get(key).map(|setting| setting.value.clone());
    let (old, new) = (value(before), value(after));
    if arguments.json {
        return output::json(&json!({
            "event": "set", "key": key, "old": old, "new": new, "state": state,
        }));
    }
    let shown = |value: Option<Value>| value.map_or("not set".into(), |it| it.to_string());
    output::text(format_args!("{key} = {} (before: {}): {state}", shown(new), shown(old)))
}
