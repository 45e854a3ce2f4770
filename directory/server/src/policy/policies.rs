//! The policies there are, as far as they are remembered.

use super::pending::Pending;
use super::rules::Policy;
use keyway_lock::Unpoisoned;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, RwLock};

/// The policies there are, and what has happened to accounts.
pub(crate) struct Policies {
    defaults: RwLock<Defaults>,
    kept: Mutex<Kept>,
    pub pending: Pending,
}

/// The policies for entries that name none.
struct Defaults {
    dn: Option<Arc<str>>,
    built_in: Arc<Policy>,
}

/// Policies of one state of the store, by the names that they were found by.
#[derive(Default)]
pub(crate) struct Kept {
    version: u64,
    policies: HashMap<String, Arc<Policy>>,
    /// The names of policies that were missed, so that it is said once of each.
    pub missed: Vec<String>,
}

impl Policies {
    /// Policies of which the one of this name is that of all entries that name none. Without a name,
    /// these have passwords of at least so many characters.
    pub fn new(dn: Option<&str>, min_length: u32) -> Policies {
        let defaults = RwLock::new(Defaults::new(dn, min_length));
        Policies { defaults, kept: Mutex::default(), pending: Pending::default() }
    }

    /// Takes another default from now on.
    pub fn set(&self, dn: Option<&str>, min_length: u32) {
        *self.defaults.write().unpoisoned() = Defaults::new(dn, min_length);
        *self.kept() = Kept::default();
    }

    /// The name of the policy of entries that name none, and what they have if there is no such policy.
    pub fn defaults(&self) -> (Option<Arc<str>>, Arc<Policy>) {
        let defaults = self.defaults.read().unpoisoned();
        (defaults.dn.clone(), defaults.built_in.clone())
    }

    /// The policies that are remembered.
    pub fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unpoisoned()
    }
}

impl Defaults {
    fn new(dn: Option<&str>, min_length: u32) -> Defaults {
        let built_in = Arc::new(Policy::built_in(min_length));
        Defaults { dn: dn.map(Arc::from), built_in }
    }
}

impl Kept {
    /// The policies that are remembered of this state; of others none are.
    pub fn at(&mut self, version: u64) -> &mut HashMap<String, Arc<Policy>> {
        if self.version != version {
            self.version = version;
            self.policies.clear();
        }
        &mut self.policies
    }
}
