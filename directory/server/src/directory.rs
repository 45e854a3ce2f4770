//! The directory: a store, and what its entries mean.

use crate::access::Subject;
use crate::clock::Clock;
use crate::failure::Result;
use crate::index::Builder;
use crate::log::Log;
use crate::state::{CurrentSnapshot, DirectoryState, Snapshot};
use keyway_engine::Engine;
use keyway_lock::Unpoisoned;
use keyway_password::Passwords;
use keyway_schema::Schema;
use keyway_store::{EntryId, Key, Store};
use std::sync::Arc;
use std::time::SystemTime;

/// A directory on a store. All threads use it at once; a request while it writes sees the last
/// committed state.
pub struct Directory {
    // It works on the store, so it goes first.
    pub(crate) builder: Builder,
    pub(crate) store: Store,
    pub(crate) shared: Arc<DirectoryState>,
    pub(crate) current: CurrentSnapshot,
}

impl Directory {
    /// The state of the schema as it is now.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.current.read().unpoisoned().clone()
    }

    /// Definitions of the schema's files and sets that are taken for something else than they say, for people.
    pub fn schema_warnings(&self) -> Vec<String> {
        let snapshot = self.snapshot();
        let of_files = snapshot.composed.warnings.iter().cloned();
        of_files.chain(snapshot.schema.warnings().iter().map(ToString::to_string)).collect()
    }

    /// Ends it: accepted changes are on the disk when this returns, and the store can be opened
    /// again.
    ///
    /// # Errors
    /// The store's; acknowledged changes are safe all the same.
    pub fn close(self) -> Result<()> {
        self.builder.stop();
        Ok(self.store.close()?)
    }

    /// Why the store takes no more changes, if it does not: the directory has to be opened again.
    pub fn failed(&self) -> Option<String> {
        self.store.failed()
    }

    /// How passwords are made and checked.
    pub fn passwords(&self) -> &Passwords {
        &self.shared.passwords
    }

    /// The schema as it is now.
    pub fn schema(&self) -> Arc<Schema> {
        self.snapshot().schema.clone()
    }

    /// The log that the settings gave it.
    pub fn log(&self) -> &Log {
        &self.shared.log
    }

    /// The engine that does its cryptography.
    pub fn engine(&self) -> &Engine {
        &self.shared.engine
    }

    /// The clocks that the settings gave it.
    pub fn clock(&self) -> Clock {
        self.shared.clock
    }

    /// The time, by its wall clock.
    pub fn now(&self) -> SystemTime {
        self.shared.now()
    }

    /// DNs of the naming contexts of users.
    pub fn naming_contexts(&self) -> Vec<String> {
        let contexts = self.shared.contexts();
        let own = contexts.iter().filter(|context| !context.is_system);
        own.map(|context| context.text.clone()).collect()
    }

    /// DNs of all naming contexts, the server's own among them.
    pub fn all_naming_contexts(&self) -> Vec<String> {
        self.shared.contexts().iter().map(|context| context.text.clone()).collect()
    }

    /// How many entries there are in the naming contexts of users.
    ///
    /// # Errors
    /// The store's.
    pub fn entry_count(&self) -> Result<u64> {
        let read = self.store.read()?;
        let view = read.view();
        let mut own = 0;
        for context in self.shared.contexts().iter().filter(|context| context.is_system) {
            if let Some(top) = view.child(EntryId::ROOT, &context.component)? {
                own += view.postings(&Key::subtree(top), EntryId::ROOT)?.count() as u64;
            }
        }
        Ok(view.entry_count()?.saturating_sub(own))
    }

    /// Looks up again what access rules say of a subject, if they or a group have changed.
    ///
    /// # Errors
    /// The store's.
    pub fn refresh(&self, subject: &Subject) -> Result<()> {
        if self.shared.access.is_fresh(subject) {
            return Ok(());
        }
        self.snapshot().look_up(subject, self.store.read()?.view())
    }
}
