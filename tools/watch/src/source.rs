//! The server that is looked at: one of this machine, or another over LDAP.

use crate::folder_source::{FolderSource, ServerFolder};
use crate::ldap::{ConnectOptions, Login, ServerUrl};
use crate::ldap_source::LdapSource;
use crate::snapshot::ServerSnapshot;
use keyway_host::failure::Failure;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// A server, and how to look at it.
pub enum SnapshotSource {
    /// The processes that run on a data folder.
    Folder(FolderSource),
    /// One that is reached over LDAP.
    Server(LdapSource),
}

impl SnapshotSource {
    /// The processes on a data folder. Lists come from its own LDAPS port, as its administrator or by another login.
    #[must_use]
    pub fn folder(folder: ServerFolder, options: ConnectOptions, login: Login) -> SnapshotSource {
        SnapshotSource::Folder(FolderSource::new(folder, options, login))
    }

    /// A server by its address.
    #[must_use]
    pub fn server(url: ServerUrl, options: ConnectOptions, login: Login) -> SnapshotSource {
        SnapshotSource::Server(LdapSource::new(Some(url), options, login))
    }

    /// Looks at it; at connections only if they are wanted.
    ///
    /// # Errors
    /// Why nothing is seen.
    pub fn look(&mut self, connections: bool) -> Result<ServerSnapshot, Failure> {
        match self {
            SnapshotSource::Folder(folder) => folder.look(connections),
            SnapshotSource::Server(server) => server.with(|remote| remote.look(connections)),
        }
    }

    /// Looks at its counters only, which costs a server of this machine nothing.
    ///
    /// # Errors
    /// As [`SnapshotSource::look`].
    pub fn counters(&mut self) -> Result<ServerSnapshot, Failure> {
        match self {
            SnapshotSource::Folder(folder) => folder.pages(),
            SnapshotSource::Server(server) => server.with(|remote| remote.look(false)),
        }
    }

    /// Looks again and again, and tells; ends when no receiver is left.
    pub fn watch(
        mut self,
        number: usize,
        interval: Duration,
        connections: &Arc<AtomicBool>,
        tell: &Sender<(usize, Result<ServerSnapshot, String>)>,
    ) {
        let mut next = Instant::now();
        loop {
            let snapshot = self.look(connections.load(Ordering::Relaxed));
            if tell.send((number, snapshot.map_err(|why| why.to_string()))).is_err() {
                return;
            }
            next = (next + interval).max(Instant::now());
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
        }
    }
}
