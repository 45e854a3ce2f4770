//! The directory of a data folder that nobody serves from, for the commands that work on one.

use crate::configuration::Configuration;
use crate::data::{Folder, name};
use crate::failure::Failure;
use crate::instance::Instance;
use crate::moment::Moment;
use std::path::Path;

/// A directory that is there.
pub struct Offline {
    /// The directory.
    pub instance: Instance,
    /// Keeps the folder locked while the directory is open.
    _folder: Folder,
}

/// Opens the directory of a data folder.
///
/// # Errors
/// If there is none, or somebody uses it.
pub fn open(path: &Path) -> Result<Offline, Failure> {
    let folder = Folder::open_existing(path, Moment::now())?;
    if !folder.has(name::STORE) {
        return Err(Failure::new(format!(
            "{} holds no directory yet; fill one with keyway up or keyway directory import",
            folder.path().display()
        )));
    }
    let configuration = Configuration::load(&folder)?;
    let engine = keyway_drivers::engine();
    let instance = Instance::open(&folder, &configuration, &engine)?;
    Ok(Offline { instance, _folder: folder })
}
