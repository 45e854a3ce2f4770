//! Settings of files, and those in force.

use keyway_config::{Running, Settings, settings, text_of};
use keyway_folder::data::{self, name};
use keyway_host::failure::Failure;
use std::path::Path;

/// The settings of a file.
pub fn of_file(file: &Path) -> Result<Settings, Failure> {
    of_text(file, &data::read(file)?)
}

/// The settings of a data folder's file.
pub fn of_folder(folder: &Path) -> Result<Settings, Failure> {
    of_text(&folder.join(name::CONFIGURATION), &text_of(folder)?)
}

fn of_text(file: &Path, text: &str) -> Result<Settings, Failure> {
    settings(text).map_err(|why| Failure::new(format!("{}: {why}", file.display())))
}

/// The settings in force, and those that wait for the next start.
pub struct InForce {
    pub settings: Settings,
    pub waiting: Settings,
    pub is_running: bool,
}

impl InForce {
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
