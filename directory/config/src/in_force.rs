//! Settings of files, and those in force.

use crate::configuration::text_of;
use crate::running::Running;
use crate::settings::{Settings, settings};
use keyway_folder::data::{self, name};
use keyway_host::failure::Failure;
use std::path::Path;

/// The settings of a file.
///
/// # Errors
/// If it cannot be read, or is no configuration.
pub fn of_file(file: &Path) -> Result<Settings, Failure> {
    of_text(file, &data::read(file)?)
}

/// The settings of a data folder's file.
///
/// # Errors
/// As [`of_file`].
pub fn of_folder(folder: &Path) -> Result<Settings, Failure> {
    of_text(&folder.join(name::CONFIGURATION), &text_of(folder)?)
}

fn of_text(file: &Path, text: &str) -> Result<Settings, Failure> {
    settings(text).map_err(|why| Failure::new(format!("{}: {why}", file.display())))
}

/// The settings in force, and those that wait for the next start.
pub struct InForce {
    /// Those in force; of the file, if no server runs.
    pub settings: Settings,
    /// Those of the file that a running server takes at its next start.
    pub waiting: Settings,
    /// Whether a server runs.
    pub is_running: bool,
}

impl InForce {
    /// Those of a data folder.
    ///
    /// # Errors
    /// As [`of_folder`], if no server runs.
    pub fn look(folder: &Path) -> Result<InForce, Failure> {
        let Some(running) = Running::look(folder) else {
            let settings = of_folder(folder)?;
            return Ok(InForce { settings, waiting: Settings::new(), is_running: false });
        };
        let mut waiting = of_folder(folder).unwrap_or_default();
        waiting.retain(|key, _| running.waiting.contains(key));
        Ok(InForce { settings: running.settings, waiting, is_running: true })
    }
}
