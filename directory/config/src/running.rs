//! A server's report in its data folder: the settings that are in force, and what came of the
//! last time it read them. `keyway config` reads it.

use crate::settings::Settings;
use keyway_folder::data::{self, Folder, name};
use keyway_host::failure::Failure;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::Path;

/// The report of a running server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Running {
    /// The process that has the folder's lock, and takes SIGHUP.
    pub holder: u32,
    /// The process that serves.
    pub process: u32,
    /// Where it listens for LDAP.
    #[serde(default)]
    pub ldap: Option<SocketAddr>,
    /// Where it listens for LDAPS.
    #[serde(default)]
    pub ldaps: Option<SocketAddr>,
    /// How often it has read its settings.
    pub reads: u64,
    /// The settings in force.
    pub settings: Settings,
    /// Keys of those that the file has other values for since, and that wait for the next start.
    pub waiting: Vec<String>,
    /// Why it did not take what it read last, if it did not.
    pub refused: Option<String>,
}

impl Running {
    /// The report of the server on a data folder, if one runs there.
    pub fn look(folder: &Path) -> Option<Running> {
        let text = data::read(&folder.join(name::RUNNING)).ok()?;
        let running: Running = serde_json::from_str(&text).ok()?;
        // A server that was killed has left its own behind.
        (data::user_id(folder) == Some(running.holder)).then_some(running)
    }

    /// Says it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn publish(&self, folder: &Folder) -> Result<(), Failure> {
        let text = serde_json::to_vec(self).map_err(Failure::new)?;
        folder.write_secret(name::RUNNING, &text)
    }
}
