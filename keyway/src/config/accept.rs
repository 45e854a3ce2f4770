//! `keyway config accept` and `keyway config restore`: going on where a configuration looks like what is left
//! of another one, or is gone.

use super::arguments::{Accept, Restore};
use keyway_config::Given;
use keyway_config::applied;
use keyway_config::{Configuration, DEFAULT};
use keyway_folder::data::{self, name};
use keyway_host::failure::Failure;
use keyway_host::output;
use keyway_service::{instance, told};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

/// Takes the file as it is.
///
/// # Errors
/// If it is no configuration, cannot be written, or the server refuses it for another reason.
pub fn accept(arguments: &Accept) -> Result<(), Failure> {
    let folder = &arguments.data.folder;
    let file = folder.join(name::CONFIGURATION);
    let lock = data::lock_edits(folder)?;
    match (file.exists(), arguments.default) {
        (false, true) => data::write(folder, name::CONFIGURATION, DEFAULT.as_bytes())?,
        (true, false) => {}
        (false, false) => {
            return Err(Failure::new(format!(
                "{} is not there; put it back, or take the default one with --default",
                file.display()
            )));
        }
        (true, true) => {
            return Err(Failure::new(format!(
                "{} is there, and --default is for one that is gone; move it away first",
                file.display()
            )));
        }
    }
    let text = data::read(&file)?;
    Configuration::of_text(folder, &text, &Given::none())?;
    data::write_secret(folder, name::ACCEPTED, text.as_bytes())?;
    drop(lock);
    say(folder, &file, "accepted", arguments.json)
}

/// Writes the configuration that was in force last.
///
/// # Errors
/// If there was none, or it cannot be written.
pub fn restore(arguments: &Restore) -> Result<(), Failure> {
    let folder = &arguments.data.folder;
    let file = folder.join(name::CONFIGURATION);
    instance::has_store(folder)?;
    let Some(text) = applied::of_folder(folder)? else {
        return Err(Failure::new(format!(
            "the store in {} remembers no configuration: nothing was served from it yet",
            folder.display()
        )));
    };
    let lock = data::lock_edits(folder)?;
    let mut kept = None;
    match file.exists() {
        true => {
            kept = keep(folder, &file, &text)?;
            data::replace(&file, &text)?;
        }
        // A package has a link there, which may lead to nothing now.
        false => match fs::read_link(&file) {
            Ok(target) => {
                let target = folder.join(target);
                let file_name = target.file_name().unwrap_or_default().to_string_lossy();
                let above = target.parent().unwrap_or(folder);
                data::write(above, &file_name, text.as_bytes())?;
            }
            Err(_) => data::write(folder, name::CONFIGURATION, text.as_bytes())?,
        },
    }
    drop(lock);
    if let Some(kept) = kept {
        output::note(format_args!("what {} had is in {}", file.display(), kept.display()));
    }
    say(folder, &file, "restored", arguments.json)
}

/// Keeps edits that a restored configuration takes the place of.
fn keep(folder: &Path, file: &Path, restored: &str) -> Result<Option<PathBuf>, Failure> {
    let before = data::read_bytes(file)?;
    if before.is_empty() || before == restored.as_bytes() {
        return Ok(None);
    }
    let name = format!("{}.before-restore", name::CONFIGURATION);
    // The file may have been closed to others.
    data::write_secret(folder, &name, &before)?;
    Ok(Some(folder.join(name)))
}

/// Has a running server take it, and says what was done.
fn say(folder: &Path, file: &Path, event: &str, json: bool) -> Result<(), Failure> {
    let running = told::have_read(folder, file)?;
    if let Some(why) = running.as_ref().and_then(|running| running.refused.as_ref()) {
        return Err(Failure::new(format!(
            "{} is {event}, but the server does not take it: {why}",
            file.display()
        )));
    }
    let state = match running {
        None => "the next start takes it",
        Some(_) => "the server has taken it",
    };
    let file = file.display().to_string();
    match json {
        true => output::json(&json!({ "event": event, "file": file, "state": state })),
        false => output::text(format_args!("{file} is {event}; {state}")),
    }
}
