//! `keyway config check`.

use super::arguments::Check;
use keyway_config::Given;
use keyway_config::applied;
use keyway_config::{Configuration, text_of};
use keyway_folder::data::{self, name};
use keyway_folder::tls::Ends;
use keyway_host::failure::Failure;
use keyway_host::output;
use keyway_host::timestamp::Timestamp;
use keyway_service::instance::Instance;
use keyway_service::start_check;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Checks a configuration.
///
/// # Errors
/// The fault of the configuration.
pub fn run(arguments: &Check) -> Result<(), Failure> {
    let folder = &arguments.data.folder;
    let (file, text) = match &arguments.file {
        Some(file) => (file.clone(), data::read(file)?),
        None => (folder.join(name::CONFIGURATION), text_of(folder)?),
    };
    let configuration = Configuration::of_text_in(folder, &file, &text, &Given::none())?;
    let was_asked = Instance::check(folder, &file, &configuration)?;
    if !folder.exists() {
        let (file, folder) = (file.display(), folder.display());
        output::note(format_args!(
            "there is no folder {folder}: {file} is checked without its schema and store (--data DIR)"
        ));
    }
    if let (false, Some((_, why))) = (was_asked, configuration.unknown.first()) {
        let note = "unless the store, which cannot be read, knows it from a change over LDAP";
        output::note(format_args!("{}: {why}, {note}", file.display()));
    }
    // A store that cannot be read has its own command that says so.
    if let Ok(Some(applied)) = applied::of_folder(folder) {
        match &arguments.file {
            None => applied::refuse_loss(folder, &applied, &text)?,
            Some(file) => refuse_in_its_place(folder, file, applied::loss(&applied, &text))?,
        }
    }
    start_check::check(folder, &configuration)?;
    start_check::check_tls(folder, &configuration)?;
    let warnings = certificates(folder, &configuration)?;
    if arguments.json {
        return output::json(&json!({
            "event": "checked", "file": file.display().to_string(), "warnings": warnings,
        }));
    }
    for warning in &warnings {
        output::text(format_args!("warning: {warning}"))?;
    }
    output::text(format_args!("{} is right", file.display()))
}

/// Refuses another file that would look like what is left of the folder's configuration.
fn refuse_in_its_place(folder: &Path, file: &Path, loss: Option<String>) -> Result<(), Failure> {
    let Some(why) = loss else { return Ok(()) };
    let (file, own) = (file.display(), folder.join(name::CONFIGURATION));
    Err(Failure::new(format!(
        "{file} would be refused as {}: it looks like what is left of the configuration that was in force: {why}",
        own.display()
    )))
}

/// Says which of the certificates that it names begin late or end soon.
fn certificates(folder: &Path, configuration: &Configuration) -> Result<Vec<String>, Failure> {
    let settings = &configuration.tls;
    let pairs = settings.files.iter().chain(&settings.additional);
    let mut files: Vec<PathBuf> = pairs.map(|pair| folder.join(&pair.certificate)).collect();
    let own = folder.join(name::SERVER_CERTIFICATE);
    if settings.files.is_none() && own.exists() {
        files.push(own);
    }
    let ends = |file: &PathBuf| Ends::of(file, &keyway_folder::pem::certificates(file)?);
    let ends: Vec<Ends> = files.iter().map(ends).collect::<Result<_, _>>()?;
    Ok(ends.iter().filter_map(|ends| ends.warning(Timestamp::now())).collect())
}
