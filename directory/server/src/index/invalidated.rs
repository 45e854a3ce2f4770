//! Indexes that were invalidated while a search may still go by them.
//!
//! A search keeps the indexes that it began with. Before the keys of one are dropped it is noted
//! here: a search that has taken a read transaction and finds it not noted sees all of its keys.

use super::{IndexKind, Kinds};
use keyway_lock::Unpoisoned;
use std::collections::HashMap;
use std::sync::RwLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// All indexes that a directory has invalidated since it was opened.
#[derive(Default)]
pub(crate) struct InvalidatedIndexes {
    /// How often some were.
    epoch: AtomicU64,
    /// When each was last, by that count.
    when: RwLock<HashMap<(String, IndexKind), u64>>,
}

impl InvalidatedIndexes {
    /// How often indexes were invalidated so far.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Invalidates some.
    pub fn invalidate(&self, kinds: &Kinds) {
        if kinds.is_empty() {
            return;
        }
        let mut when = self.when.write().unpoisoned();
        let epoch = self.epoch() + 1;
        when.extend(kinds.iter().map(|kind| (kind.clone(), epoch)));
        self.epoch.store(epoch, Ordering::Release);
    }

    /// Whether an index was invalidated since there had been so many.
    pub fn has(&self, since: u64, attribute: &str, kind: IndexKind) -> bool {
        if self.epoch() == since {
            return false;
        }
        let when = self.when.read().unpoisoned();
        when.get(&(attribute.to_owned(), kind)).is_some_and(|at| *at > since)
    }
}
