//! The directory that questions are about.

use super::arguments::Asked;
use keyway_config::Configuration;
use keyway_config::Given;
use keyway_folder::data::{self, name};
use keyway_host::failure::Failure;
use keyway_server::access::Subject;
use keyway_server::{Directory, OpenError};
use keyway_service::instance;
use keyway_service::instance::describe;
use keyway_store::{Options, Store};
use std::path::{Path, PathBuf};

/// A directory, and the file that its rules are in.
pub struct Look {
    pub directory: Directory,
    /// The file of the rules, and its text.
    pub file: PathBuf,
    pub text: String,
}

/// Opens the directory that is asked about.
///
/// # Errors
/// If there is none, or a file makes no sense.
pub(super) fn open(asked: &Asked) -> Result<Look, Failure> {
    open_folder(&asked.data.folder, asked.rules.as_deref())
}

/// Opens the directory of a data folder to read it, with the rules of its configuration or of
/// another file.
///
/// # Errors
/// As [`open`].
pub fn open_folder(folder: &Path, rules: Option<&Path>) -> Result<Look, Failure> {
    let path = folder.join(name::STORE);
    instance::has_store(folder)?;
    let own = folder.join(name::CONFIGURATION);
    let mut configuration = Configuration::ahead(folder, &Given::none())?;
    let file = rules.map_or(own, Path::to_path_buf);
    if let Some(rules) = rules {
        configuration.directory.rules = Configuration::of_file(rules)?.directory.rules;
    }
    let text = if file.exists() { data::read(&file)? } else { String::new() };
    let options = Options { map_bytes_max: configuration.store_bytes_max, ..Options::default() };
    let bad = |why: &dyn std::fmt::Display| Failure::new(format!("{}: {why}", path.display()));
    let store = Store::open_to_read(&path, &options).map_err(|why| bad(&why))?;
    let engine = keyway_drivers::engine();
    let directory = Directory::open_to_read(store, &configuration.directory, engine);
    let directory = directory.map_err(|why| match why {
        OpenError::Settings(why) => Failure::new(format!("{}: {why}", file.display())),
        OpenError::Schema(why) => Failure::new(why),
        why => bad(&why),
    })?;
    Ok(Look { directory, file, text })
}

impl Look {
    /// The client that a name stands for: a DN, a uid, or `anonymous`.
    ///
    /// # Errors
    /// If no entry has that name.
    pub fn subject(&self, who: &str) -> Result<Subject, Failure> {
        if who == "anonymous" {
            return Ok(Subject::anonymous());
        }
        let failed = |why: keyway_server::Failure| Failure::new(describe(&why));
        let dn = match who.contains('=') {
            true => Some(who.to_owned()),
            false => self.directory.dn_of_uid(who).map_err(failed)?,
        };
        let Some(dn) = dn else {
            return Err(Failure::new(format!(
                "no one entry has the uid \"{who}\"; name the client by a DN, by its uid, or say \
                 anonymous"
            )));
        };
        let found = self.directory.credentials(&dn).map_err(failed)?;
        let found = found.ok_or_else(|| Failure::new(format!("there is no entry \"{dn}\"")))?;
        Ok(found.subject)
    }
}
