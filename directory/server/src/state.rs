//! The state that operations work in: a snapshot of the schema and the indexes, and what all of them share.

use crate::access::Access;
use crate::clock::Clock;
use crate::failure::Result;
use crate::follow::BindsTaker;
use crate::index::{Indexes, InvalidatedIndexes};
use crate::integrity::Integrity;
use crate::learnt::{KnownName, Learnt};
use crate::locate::SpecialEntries;
use crate::log::Log;
use crate::naming::{NamingContext, SYSTEM_DN};
use crate::policy::Policies;
use crate::search::{Cookies, KeptReads, Unindexed};
use crate::settings::Settings;
use crate::virtual_entries::VirtualTrees;
use crate::write::Upgrades;
use keyway_engine::Engine;
use keyway_lock::Unpoisoned;
use keyway_meter::Counter;
use keyway_password::Passwords;
use keyway_schema::operational;
use keyway_schema::{Changes, Composed, EntryName, NameError, Schema, Sources};
use keyway_store::Names;
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Instant, SystemTime};
use tokio::sync::watch;

/// The snapshot that operations begin with. An operation keeps the one it has.
pub(crate) type CurrentSnapshot = Arc<RwLock<Arc<Snapshot>>>;

/// The schema and the indexes at one moment, all that follows from them, and the state that operations share.
#[derive(Clone)]
pub(crate) struct Snapshot {
    pub schema: Arc<Schema>,
    pub integrity: Arc<Integrity>,
    pub indexes: Arc<Indexes>,
    pub special_entries: Arc<SpecialEntries>,
    /// When the schema last changed.
    pub schema_time: String,
    /// How often it has; writes that were prepared under another one are refused.
    pub generation: u64,
    /// The definitions that the schema was made of, and where they come from.
    pub composed: Arc<Composed>,
    pub sources: Sources,
    pub changes: Changes,
    pub shared: Arc<DirectoryState>,
}

/// The state that operations share, also those that wait for the committer. It holds no store, so that the
/// store ends with the directory and not with the last job.
pub(crate) struct DirectoryState {
    pub access: Access,
    pub passwords: Passwords,
    pub upgrade_passwords: AtomicBool,
    pub upgrades: Upgrades,
    pub policies: Policies,
    /// Indexes that were invalidated.
    pub invalidated: Arc<InvalidatedIndexes>,
    /// Whether a thread builds indexes in the background. Held while a piece of it is done, and while
    /// it is settled what is to be built.
    pub building: Mutex<bool>,
    pub engine: Engine,
    pub cookies: Cookies,
    /// The states of the store that entries in pieces are read from.
    pub kept_reads: KeptReads,
    /// Searches that no index helped.
    pub unindexed: Unindexed,
    /// The time that searches take, in nanoseconds.
    pub search_time: Counter,
    pub search_entries_max: AtomicU32,
    pub search_time_max_s: AtomicU32,
    pub log: Log,
    pub virtual_trees: VirtualTrees,
    pub clock: Clock,
    /// The settings that it was told last.
    pub settings: RwLock<Settings>,
    pub administrator: Vec<u8>,
    pub contexts: RwLock<Arc<[Arc<NamingContext>]>>,
    pub adding_context: Mutex<()>,
    pub learnt: Mutex<Vec<Learnt>>,
    /// The last position that reads see, once there was a new one.
    pub positions: watch::Sender<u64>,
    pub binds_taker: RwLock<Option<Arc<dyn BindsTaker>>>,
}

impl DirectoryState {
    /// The naming contexts as they are now.
    pub fn contexts(&self) -> Arc<[Arc<NamingContext>]> {
        self.contexts.read().unpoisoned().clone()
    }

    /// The time as entries are stamped with it.
    pub fn timestamp(&self) -> String {
        operational::generalized_time(self.now())
    }

    /// The time by the wall clock.
    pub fn now(&self) -> SystemTime {
        (self.clock.wall)()
    }

    /// The time by the clock that never steps.
    pub fn monotonic(&self) -> Instant {
        (self.clock.monotonic)()
    }

    /// A fresh UUID in text.
    pub fn uuid(&self) -> Result<String> {
        let mut random = [0; 16];
        self.engine.random(&mut random)?;
        Ok(operational::uuid_v4(random))
    }

    /// Whether a name is one of those that the server itself needs.
    pub fn is_own(&self, name: &EntryName) -> bool {
        let canonical = name.canonical();
        canonical == self.administrator || name.text().eq_ignore_ascii_case(SYSTEM_DN)
    }
}

impl Snapshot {
    /// Lends what others have learnt.
    pub fn with_learnt<T>(&self, f: impl FnOnce(&Learnt) -> T) -> T {
        let lock = || self.shared.learnt.lock().unpoisoned();
        let learnt = lock().pop().unwrap_or_else(|| Learnt::new(&self.schema));
        let result = f(&learnt);
        lock().push(learnt);
        result
    }

    /// Understands the DN of an entry; what is known of the one above it is used.
    ///
    /// # Errors
    /// As [`EntryName::parse`].
    pub fn entry_name(&self, dn: &str) -> std::result::Result<KnownName, NameError> {
        self.with_learnt(|learnt| learnt.parents(&self.schema).child(dn))
    }

    /// Lends the names that others have learnt.
    pub fn with_names<T>(&self, f: impl FnOnce(&RefCell<Names>) -> T) -> T {
        self.with_learnt(|learnt| f(&learnt.names))
    }
}
