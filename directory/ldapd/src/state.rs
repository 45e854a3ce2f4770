//! The state that all connections share.

use crate::budget::Budget;
use crate::crowd::Crowd;
use crate::members::Members;
use crate::meters::Meters;
use crate::peer::Peer;
use crate::registry::Registry;
use crate::request_log::Origin;
use crate::seen::Seen;
use crate::settings::ConnectionSettings;
use crate::slow::Slowest;
use crate::strangers::Source;
use crate::writes::{Elsewhere, Writes};
use crate::written::Written;
use keyway_cluster::message::ClusterRow;
use keyway_lock::Unpoisoned;
use keyway_server::{Directory, Failure};
use std::io;
use std::sync::{Arc, RwLock};
use tokio::sync::watch;

/// The state that all connections share.
pub(crate) struct ServerState {
    pub directory: Arc<Directory>,
    pub settings: RwLock<Arc<ConnectionSettings>>,
    pub meters: Meters,
    pub unfinished: Arc<Budget>,
    pub slowest: Arc<Slowest>,
    pub registry: Arc<Registry>,
    pub crowd: Crowd,
    pub elsewhere: Elsewhere,
    pub written: Written,
    /// The service of other servers of a cluster, if there is one.
    pub members: RwLock<Option<Members>>,
    /// Whether the requests of members on behalf of their clients come to an end. Each connection of them has a receiver.
    pub end_on_behalf: watch::Sender<bool>,
}

impl ServerState {
    /// The settings as they are now.
    pub fn settings(&self) -> Arc<ConnectionSettings> {
        self.settings.read().unpoisoned().clone()
    }

    /// Where changes are made.
    pub fn writes(&self) -> Arc<Writes> {
        self.elsewhere.writes()
    }

    /// Whether that is not here.
    pub fn writes_elsewhere(&self) -> bool {
        self.elsewhere.is_elsewhere()
    }

    /// The service of other servers as it is now.
    pub fn members(&self) -> Option<Members> {
        self.members.read().unpoisoned().clone()
    }

    /// The last position that reads see, and the cluster's row as of then.
    ///
    /// # Errors
    /// The store's.
    pub fn here(&self) -> Result<(u64, Option<ClusterRow>), Failure> {
        let (position, row) = self.directory.position_with(ClusterRow::NAME)?;
        // One that this version does not understand is none to it.
        Ok((position, row.and_then(|row| ClusterRow::parse(&row).ok())))
    }

    /// A connection, as its lines in the log say it.
    pub fn origin(&self, connection: u64, seen: Arc<Seen>) -> Origin {
        let (directory, peer, slowest) = (&self.directory, seen.peer, self.slowest.clone());
        let (log, clock) = (directory.log().clone(), directory.clock());
        Origin { log, clock, connection, peer, seen, slowest }
    }

    /// The visible state of a connection that is opened now.
    pub fn seen(&self, peer: Peer) -> Arc<Seen> {
        let administrators = &self.settings().local.administrators;
        let is_at_home = peer.credentials().is_some_and(|it| administrators.contains(&it.uid));
        Arc::new(Seen::new(peer, is_at_home, self.directory.clock()))
    }

    /// Notes in the error log that the places are taken, as [`Crowd::note`] says.
    pub fn note_crowd(&self, made_room: Option<(Source, usize)>, error: Option<&io::Error>) {
        if made_room.is_some() {
            self.meters.made_room.increment();
        }
        self.crowd.note(self.directory.log(), self.directory.clock(), made_room, error);
    }
}
