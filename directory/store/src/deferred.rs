//! Postings of entries that were added or listed in this change, put aside to be written in the
//! order of their keys.
//!
//! The entries of a change have many keys in common, parts of values above all: together they are
//! one write for each key and not one for each entry, and those of neighbouring keys find their
//! pages changed already.

use std::collections::HashMap;

use heed::RwTxn;

use crate::limits::DEFERRED_BYTES_MAX;
use crate::posting::Lists;
use crate::{EntryId, Error, KeyRange};

#[derive(Default)]
pub(crate) struct Deferred {
    lists: HashMap<Box<[u8]>, Vec<EntryId>>,
    bytes: usize,
}

impl Deferred {
    pub(crate) fn push(&mut self, key: &[u8], id: EntryId) {
        self.bytes += size_of::<EntryId>();
        if let Some(ids) = self.lists.get_mut(key) {
            return ids.push(id);
        }
        self.bytes += key.len();
        self.lists.insert(key.into(), vec![id]);
    }

    pub(crate) fn is_full(&self) -> bool {
        self.bytes >= DEFERRED_BYTES_MAX
    }

    /// The identifiers put aside for `key` that are greater than `after`, ascending.
    pub(crate) fn list(&self, key: &[u8], after: EntryId) -> Vec<EntryId> {
        let ids = self.lists.get(key).into_iter().flatten();
        let mut ids: Vec<EntryId> = ids.copied().filter(|id| *id > after).collect();
        ids.sort_unstable();
        ids
    }

    /// Whether anything is put aside for `key`.
    pub(crate) fn has(&self, key: &[u8]) -> bool {
        self.lists.contains_key(key)
    }

    pub(crate) fn contains(&self, key: &[u8], id: EntryId) -> bool {
        self.lists.get(key).is_some_and(|ids| ids.contains(&id))
    }

    /// The identifiers put aside for the keys of a range, in no order.
    pub(crate) fn of_range(&self, range: &KeyRange) -> impl Iterator<Item = EntryId> {
        let lists = self.lists.iter().filter(|(key, _)| range.holds(key));
        lists.flat_map(|(_, ids)| ids.iter().copied())
    }

    /// Writes all that was put aside and forgets it.
    pub(crate) fn write(&mut self, lists: Lists, txn: &mut RwTxn<'_>) -> Result<(), Error> {
        self.bytes = 0;
        let mut aside: Vec<_> = self.lists.drain().collect();
        aside.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        for (key, mut ids) in aside {
            ids.sort_unstable();
            ids.dedup();
            lists.add(txn, &key, &ids)?;
        }
        Ok(())
    }
}
