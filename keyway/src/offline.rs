//! The directory of a data folder that nobody serves from, for the commands that work on one.

use crate::configuration::Configuration;
use crate::data::{Folder, name};
use crate::failure::Failure;
use crate::instance::Instance;
use crate::moment::Moment;
use keyway_engine::Engine;
use std::path::Path;

/// A directory that is there.
pub struct Offline {
    /// The directory.
    pub instance: Instance,
    /// What its cryptography is done by.
    pub engine: Engine,
    /// How it is configured.
    pub configuration: Configuration,
    /// Its folder, locked while this is open.
    pub folder: Folder,
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
    Ok(Offline { instance, engine, configuration, folder })
}
