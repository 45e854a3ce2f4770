//! `keyway config check`.

use super::arguments::Check;
use crate::authority;
use crate::configuration::Configuration;
use crate::data::{self, name};
use crate::failure::Failure;
use crate::output;
use crate::schema::Given;
use crate::timestamp::Timestamp;
use crate::tls::{Ends, ServerKey};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Checks a configuration.
///
/// # Errors
/// What is wrong with it.
pub fn run(arguments: &Check) -> Result<(), Failure> {
    let folder = &arguments.data.folder;
    let file = arguments.file.clone().unwrap_or_else(|| folder.join(name::CONFIGURATION));
    let text = data::read(&file)?;
    let configuration = Configuration::of_text_in(folder, &file, &text, &Given::none())?;
    if let Some((_, why)) = configuration.unknown.first() {
        let note = "unless the store knows it from a change over LDAP";
        output::note(format_args!("{}: {why}, {note}", file.display()));
    }
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

/// Reads the certificates and keys that it names, and says which end soon.
fn certificates(folder: &Path, configuration: &Configuration) -> Result<Vec<String>, Failure> {
    let settings = &configuration.tls;
    let mut files: Vec<PathBuf> = Vec::new();
    for pair in settings.files.iter().chain(&settings.additional) {
        files.push(folder.join(&pair.certificate));
        if let ServerKey::File(key) = &pair.key {
            crate::own_keys::read(&folder.join(key))?;
        }
    }
    let own = folder.join(name::SERVER_CERTIFICATE);
    if settings.files.is_none() && own.exists() {
        files.push(own);
    }
    for file in settings.client_ca.iter().map(|file| folder.join(file)) {
        authority::certificates(&file)?;
    }
    let ends = |file: &PathBuf| Ends::of(file, &authority::certificates(file)?);
    let ends: Vec<Ends> = files.iter().map(ends).collect::<Result<_, _>>()?;
    Ok(ends.iter().filter_map(|ends| ends.warning(Timestamp::now())).collect())
}
