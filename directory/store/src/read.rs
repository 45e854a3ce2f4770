//! Read transactions and what can be asked of one state of the store.

use std::mem::ManuallyDrop;
use std::ops::Bound;
use std::sync::Arc;

use heed::RoRange;
use heed::types::Bytes;

use crate::deferred::Deferred;
use crate::format::{META_EPOCH, META_RENAMES, meta_row, tree_row};
use crate::idle::ReadTxn;
use crate::lmdb::{Tables, Txn};
use crate::posting::Postings;
use crate::shared::Shared;
use crate::values::LargeValues;
use crate::{EntryId, EntryRef, Error, Key, KeyRange, Large, ValueKey, lmdb};

/// A read transaction: one committed state of the store, unchanged for as long as this lives.
///
/// `Send`, so that it can move with its search; it keeps the store's files open. Pages freed since
/// it began cannot be used again while it lives: keep it short, take a new one and resume.
pub struct Read {
    txn: ManuallyDrop<ReadTxn>,
    shared: Arc<Shared>,
}

impl Read {
    pub(crate) fn begin(shared: &Arc<Shared>) -> Result<Read, Error> {
        let txn = match shared.idle.take() {
            Some(txn) => txn,
            None => {
                let read = Read::begin_anew(shared)?;
                shared.idle.meet(read.txn.id());
                return Ok(read);
            }
        };
        Ok(Read { txn: ManuallyDrop::new(txn), shared: Arc::clone(shared) })
    }

    /// Begins one that no other reader has had before.
    pub(crate) fn begin_anew(shared: &Arc<Shared>) -> Result<Read, Error> {
        let begun = shared.env.clone().static_read_txn();
        let txn = begun.map_err(|e| shared.error("beginning a read transaction", e))?;
        Ok(Read { txn: ManuallyDrop::new(txn), shared: Arc::clone(shared) })
    }

    /// The view of this state.
    pub fn view(&self) -> View<'_> {
        View::new(&self.txn, &self.shared, None)
    }

    /// The number of the state: greater for a later one.
    pub fn version(&self) -> u64 {
        self.txn.id() as u64
    }
}

impl Drop for Read {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: it is taken here alone, and this runs once.
        let txn = unsafe { ManuallyDrop::take(&mut self.txn) };
        self.shared.idle.give(txn);
    }
}

/// The number of an epoch, as its row has it.
pub(crate) fn epoch_of(row: &[u8]) -> Result<u64, Error> {
    let row = row.try_into().map(u64::from_be_bytes).ok().filter(|epoch| *epoch < u64::MAX);
    row.ok_or_else(|| Error::damaged("its epoch makes no sense"))
}

/// One state of the store, as a read transaction or a running change sees it.
///
/// Cheap to copy; its results live as long as the transaction is borrowed.
#[derive(Clone, Copy)]
pub struct View<'t> {
    pub(crate) txn: &'t Txn<'t>,
    pub(crate) tables: &'t Tables,
    pub(crate) shared: &'t Shared,
    /// In a change: the number of its present naming, which no other state has, and the postings
    /// that it has put aside.
    pending: Option<(u64, &'t Deferred)>,
}

impl<'t> View<'t> {
    pub(crate) fn new(
        txn: &'t Txn<'t>,
        shared: &'t Shared,
        pending: Option<(u64, &'t Deferred)>,
    ) -> View<'t> {
        View { txn, tables: &shared.tables, shared, pending }
    }

    /// The child of `parent` with this component.
    pub fn child(self, parent: EntryId, component: &[u8]) -> Result<Option<EntryId>, Error> {
        let row = tree_row(parent, component);
        let Some(found) = self.shared.get(self.tables.tree, self.txn, &row)? else {
            return Ok(None);
        };
        EntryId::from_bytes(found)
            .map(Some)
            .ok_or_else(|| Error::damaged("a row of the tree has a wrong length"))
    }

    /// The entry, checked against its checksum.
    pub fn entry(self, id: EntryId) -> Result<Option<EntryRef<'t>>, Error> {
        let Some(bytes) = self.shared.get(self.tables.entry, self.txn, &id.to_bytes())? else {
            return Ok(None);
        };
        decode(id, bytes).map(Some)
    }

    /// The value of a large attribute that has this key. The entry was read through this view.
    pub fn large_value(
        self,
        id: EntryId,
        large: &Large<'_>,
        key: ValueKey,
    ) -> Result<Option<&'t [u8]>, Error> {
        self.shared.values()?.get(self.txn, id, large.slot, key)
    }

    /// All values of a large attribute of an entry that was read through this view, in the order of
    /// their keys.
    pub fn large_values(self, id: EntryId, large: &Large<'_>) -> Result<LargeValues<'t>, Error> {
        self.shared.values()?.all(self.txn, id, large)
    }

    /// All values of a large attribute behind this key, of which there are `large.count`.
    pub fn large_values_after(
        self,
        id: EntryId,
        large: &Large<'_>,
        after: ValueKey,
    ) -> Result<LargeValues<'t>, Error> {
        self.shared.values()?.after(self.txn, id, large, after)
    }

    /// All entries with identifiers greater than `after`, ascending.
    pub fn entries(self, after: EntryId) -> Result<Entries<'t>, Error> {
        let low = after.to_bytes();
        let bounds = (Bound::Excluded(low.as_slice()), Bound::Unbounded);
        let rows = self.tables.entry.range(self.txn, &bounds);
        let rows = rows.map_err(|e| self.shared.error("reading entries", e))?;
        Ok(Entries { rows, map_bytes: self.shared.map_bytes })
    }

    /// The greatest identifier of an entry; [`EntryId::ROOT`] if there is none.
    pub fn last_entry(self) -> Result<EntryId, Error> {
        let last = self.tables.entry.last(self.txn);
        match last.map_err(|e| self.shared.error("reading entries", e))? {
            None => Ok(EntryId::ROOT),
            Some((id, _)) => EntryId::from_bytes(id)
                .ok_or_else(|| Error::damaged("a row of the entries has a wrong length")),
        }
    }

    /// See [`Store::epoch`](crate::Store::epoch).
    pub(crate) fn epoch(self) -> Result<u64, Error> {
        let row = self.shared.get(self.tables.meta, self.txn, META_EPOCH)?;
        row.map_or(Ok(1), epoch_of)
    }

    /// How many entries there are.
    pub fn entry_count(self) -> Result<u64, Error> {
        self.tables.entry.len(self.txn).map_err(|e| self.shared.error("counting entries", e))
    }

    /// The identifiers listed under `key` that are greater than `after`, ascending.
    ///
    /// To resume later, in this transaction or another, pass the last identifier seen.
    pub fn postings(self, key: &Key, after: EntryId) -> Result<Postings<'t>, Error> {
        let aside = self.deferred().map(|aside| aside.list(key.as_bytes(), after));
        let lists = self.shared.lists();
        lists.list(self.txn, key.as_bytes(), after, aside.unwrap_or_default())
    }

    /// Whether `id` is listed under `key`.
    pub fn contains(self, key: &Key, id: EntryId) -> Result<bool, Error> {
        if self.deferred().is_some_and(|aside| aside.contains(key.as_bytes(), id)) {
            return Ok(true);
        }
        self.shared.lists().contains(self.txn, key.as_bytes(), id)
    }

    /// How many identifiers are listed under `key`, counting no further than `n`. It costs a look at
    /// some rows of hundreds of identifiers each.
    pub fn count_at_most(self, key: &Key, n: usize) -> Result<usize, Error> {
        // Identifiers put aside may be in the table as well, so each is counted by itself.
        if self.deferred().is_some_and(|aside| aside.has(key.as_bytes())) {
            let mut count = 0;
            for id in self.postings(key, EntryId::ROOT)?.take(n) {
                id?;
                count += 1;
            }
            return Ok(count);
        }
        Ok(self.shared.lists().count(self.txn, key.as_bytes(), n)?.min(n))
    }

    /// How many identifiers are listed under the keys of `range`, counting no further than `n`; one
    /// that is listed under several of them counts several times.
    pub fn count_range_at_most(self, range: &KeyRange, n: usize) -> Result<usize, Error> {
        let aside = self.deferred().map_or(0, |aside| aside.of_range(range).count());
        let listed = self.shared.lists().count_range(self.txn, range, n.saturating_sub(aside))?;
        Ok((aside + listed).min(n))
    }

    /// The identifiers listed under the keys of `range`, ascending and each once; `None` if its
    /// lists together hold more than `ids_max`.
    pub fn collect_range(
        self,
        range: &KeyRange,
        ids_max: usize,
    ) -> Result<Option<Vec<EntryId>>, Error> {
        let aside = self.deferred().map(|aside| aside.of_range(range).collect());
        self.shared.lists().collect_range(self.txn, range, ids_max, aside.unwrap_or_default())
    }

    fn deferred(self) -> Option<&'t Deferred> {
        self.pending.map(|(_, deferred)| deferred)
    }

    /// How many children `id` has.
    pub fn child_count(self, id: EntryId) -> Result<u64, Error> {
        match self.shared.get(self.tables.children, self.txn, &id.to_bytes())? {
            None => Ok(0),
            Some(count) => number(count),
        }
    }

    /// The value that was put under `name` with `Write::meta_put`.
    pub fn meta_get(self, name: &str) -> Result<Option<&'t [u8]>, Error> {
        self.shared.get(self.tables.meta, self.txn, &meta_row(name))
    }

    /// A number that no state with other names has.
    pub(crate) fn stamp(self) -> Stamp {
        match self.pending {
            Some((naming, _)) => Stamp::Pending(naming),
            None => Stamp::Committed(self.txn.id()),
        }
    }

    /// How often names had changed before this state.
    pub(crate) fn name_changes(self) -> Result<u64, Error> {
        let changes = self.shared.get(self.tables.meta, self.txn, META_RENAMES)?;
        changes.map_or(Ok(0), number)
    }
}

/// A number that states with other names do not have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stamp {
    /// A committed state, by the number of its transaction.
    Committed(usize),
    /// A state inside a write, by a number that it got when names changed in it last.
    Pending(u64),
}

/// Iterator over entries, ascending by identifier.
pub struct Entries<'t> {
    rows: RoRange<'t, Bytes, Bytes>,
    map_bytes: usize,
}

impl<'t> Iterator for Entries<'t> {
    type Item = Result<(EntryId, EntryRef<'t>), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let (id, bytes) = match self.rows.next()? {
            Ok(row) => row,
            Err(error) => return Some(Err(lmdb::error("reading entries", self.map_bytes, error))),
        };
        let Some(id) = EntryId::from_bytes(id) else {
            return Some(Err(Error::damaged("a row of the entries has a wrong length")));
        };
        Some(decode(id, bytes).map(|entry| (id, entry)))
    }
}

fn decode(id: EntryId, bytes: &[u8]) -> Result<EntryRef<'_>, Error> {
    EntryRef::decode(id, bytes).map_err(|e| Error::damaged_entry(id, format!("entry {id}: {e}")))
}

pub(crate) fn number(bytes: &[u8]) -> Result<u64, Error> {
    let bytes = bytes.try_into().map_err(|_| Error::damaged("a counter has a wrong length"))?;
    Ok(u64::from_be_bytes(bytes))
}
