//! Postings of entries that were added or listed in this change, put aside to be written in the
//! order of their keys.
//!
//! The entries of a change have many keys in common, parts of values above all: together they are
//! one write for each key and not one for each entry, and those of neighbouring keys find their
//! pages changed already.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use heed::RwTxn;

use crate::limits::DEFERRED_BYTES_MAX;
use crate::posting::Lists;
use crate::{EntryId, Error, KeyRange};

#[derive(Default)]
pub(crate) struct Deferred {
    lists: HashMap<Box<[u8]>, Ids, RandomState>,
    bytes: usize,
}

/// The identifiers of one key. Of most keys there is one.
enum Ids {
    One(EntryId),
    Many(Vec<EntryId>),
}

impl Ids {
    fn push(&mut self, id: EntryId) {
        match self {
            Ids::Many(ids) => ids.push(id),
            Ids::One(first) => *self = Ids::Many(vec![*first, id]),
        }
    }

    fn as_slice(&self) -> &[EntryId] {
        match self {
            Ids::One(id) => std::slice::from_ref(id),
            Ids::Many(ids) => ids,
        }
    }

    /// Ascending, each once.
    fn sort(&mut self) -> &[EntryId] {
        if let Ids::Many(ids) = self {
            ids.sort_unstable();
            ids.dedup();
        }
        self.as_slice()
    }
}

impl Deferred {
    pub(crate) fn push(&mut self, key: &[u8], id: EntryId) {
        if let Some(ids) = self.lists.get_mut(key) {
            if ids.as_slice().last() != Some(&id) {
                self.bytes += size_of::<EntryId>();
                ids.push(id);
            }
            return;
        }
        self.bytes += size_of::<EntryId>() + key.len();
        self.lists.insert(key.into(), Ids::One(id));
    }

    pub(crate) fn is_full(&self) -> bool {
        self.bytes >= DEFERRED_BYTES_MAX
    }

    /// The identifiers put aside for `key` that are greater than `after`, ascending.
    pub(crate) fn list(&self, key: &[u8], after: EntryId) -> Vec<EntryId> {
        let ids = self.lists.get(key).into_iter().flat_map(Ids::as_slice);
        let mut ids: Vec<EntryId> = ids.copied().filter(|id| *id > after).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// Whether anything is put aside for `key`.
    pub(crate) fn has(&self, key: &[u8]) -> bool {
        self.lists.contains_key(key)
    }

    pub(crate) fn contains(&self, key: &[u8], id: EntryId) -> bool {
        self.lists.get(key).is_some_and(|ids| ids.as_slice().contains(&id))
    }

    /// The identifiers put aside for the keys of a range, in no order.
    pub(crate) fn of_range(&self, range: &KeyRange) -> impl Iterator<Item = EntryId> {
        let lists = self.lists.iter().filter(|(key, _)| range.holds(key));
        lists.flat_map(|(_, ids)| ids.as_slice().iter().copied())
    }

    /// Writes all that was put aside and forgets it.
    pub(crate) fn write(&mut self, lists: Lists, txn: &mut RwTxn<'_>) -> Result<(), Error> {
        self.bytes = 0;
        let mut aside: Vec<_> = self.lists.drain().collect();
        aside.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        for (key, mut ids) in aside {
            lists.add(txn, &key, ids.sort())?;
        }
        Ok(())
    }
}
