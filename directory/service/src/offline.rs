//! The directory of a data folder that no process serves, for the commands that work on one; and beside the
//! server, for those that only read.

use crate::instance::{self, Instance};
use crate::limits::{RELOAD_LOOK_EVERY, START_WAIT};
use keyway_config::Configuration;
use keyway_config::Given;
use keyway_config::Running;
use keyway_engine::Engine;
use keyway_folder::data::{self, Folder, name};
use keyway_host::failure::Failure;
use keyway_host::timestamp::Timestamp;
use keyway_store::{Damage, Options, Store};
use std::path::Path;
use std::thread;
use std::time::Instant;

/// Damaged places that are kept to be told; the rest are counted.
const DAMAGE_KEPT_MAX: usize = 100;

/// A directory that is there.
pub struct Offline {
    /// The directory.
    pub instance: Instance,
    /// The engine for its cryptography.
    pub engine: Engine,
    /// How it is configured.
    pub configuration: Configuration,
    /// Its folder, locked while this is open.
    pub folder: Folder,
}

/// Opens the directory of a data folder.
///
/// # Errors
/// If there is none, or another process uses it.
pub fn open(path: &Path) -> Result<Offline, Failure> {
    open_in(folder(path)?)
}

/// Takes a data folder that holds a directory for this process.
///
/// # Errors
/// If it holds none, or another process uses it.
pub fn folder(path: &Path) -> Result<Folder, Failure> {
    let folder = Folder::open_existing(path, Timestamp::now())?;
    instance::has_store(folder.path())?;
    Ok(folder)
}

/// Opens the directory of a folder that this process has.
///
/// # Errors
/// Whatever keeps it from being opened.
pub fn open_in(folder: Folder) -> Result<Offline, Failure> {
    let configuration = Configuration::load(&folder)?;
    let engine = keyway_drivers::engine();
    let instance = Instance::open(&folder, &configuration, &engine, false)?;
    Ok(Offline { instance, engine, configuration, folder })
}

/// Opens the directory of a folder that a server serves from, to read it; `None` if none does.
///
/// # Errors
/// Whatever keeps it from being opened.
pub fn beside_server(path: &Path) -> Result<Option<Instance>, Failure> {
    if !is_served(path)? {
        return Ok(None);
    }
    let configuration = Configuration::ahead(path, &Given::none())?;
    Instance::open_to_read(path, &configuration, &keyway_drivers::engine()).map(Some)
}

/// Opens the store of a folder to read it alone, also while a server serves from it. What the configuration says of it
/// does not matter.
///
/// # Errors
/// Whatever keeps it from being opened.
pub fn store_to_read(path: &Path) -> Result<Store, Failure> {
    data::may_look(path)?;
    is_served(path)?;
    instance::has_store(path)?;
    let map_bytes_max = Configuration::ahead(path, &Given::none())
        .map_or(Options::default().map_bytes_max, |configuration| configuration.store_bytes_max);
    let options = Options { map_bytes_max, ..Options::default() };
    Store::open_to_read(&path.join(name::STORE), &options)
        .map_err(|why| instance::cannot_open(path, &why))
}

/// Whether a server serves from a folder. One that has taken the folder and is not ready is waited for.
fn is_served(path: &Path) -> Result<bool, Failure> {
    let begun = Instant::now();
    loop {
        if Running::look(path).is_some() {
            return Ok(true);
        }
        let Some(user) = data::user(path) else { return Ok(false) };
        if begun.elapsed() > START_WAIT {
            let path = path.display();
            return Err(Failure::new(format!(
                "{path} is in use by {user}, which does not serve from it: it is still starting, or at other \
                 work; try again when it has ended that"
            )));
        }
        thread::sleep(RELOAD_LOOK_EVERY);
    }
}

/// Damaged pages of a data file.
#[derive(Default)]
pub struct Inspected {
    /// The first of them.
    pub first: Vec<Damage>,
    /// How many there are.
    pub places: u64,
}

/// Looks at every page of the data file, without mapping it.
///
/// # Errors
/// If it cannot be opened.
pub fn inspect(folder: &Folder) -> Result<Inspected, Failure> {
    let path = folder.file(name::STORE);
    let mut inspected = Inspected::default();
    let note = &mut |damage| {
        inspected.places += 1;
        if inspected.first.len() < DAMAGE_KEPT_MAX {
            inspected.first.push(damage);
        }
    };
    keyway_store::inspect(&path, note).map_err(|why| instance::cannot_open(folder.path(), &why))?;
    Ok(inspected)
}
