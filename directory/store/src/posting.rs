//! Posting lists: for a key, the ascending identifiers of the entries it stands for.
//!
//! A list is cut into chunks. A chunk is one row of a plain table: key and first identifier
//! (8 B BE) → the gaps to the following identifiers as LEB128, at most [`CHUNK_BYTES_MAX`].
//! Keys are free of prefixes, so the rows of a list lie together, and a seek to "key, identifier"
//! finds the chunk that an identifier belongs to.
//!
//! Chosen by measurement: 100 000 entries with 44 keys each (people with 22 substring keys), 10 000
//! entries a commit, no syncs, one core of a virtual machine. `DUPSORT` is LMDB's own way, but our
//! binding cannot seek inside its duplicates, so a search could not resume.
//!
//! | | data file | µs a posting | same, sorted per commit | scan, ns an id | contains |
//! | --- | --- | --- | --- | --- | --- |
//! | row per posting | 343 MB | 0.91 | 0.68 | 26 | 325 ns |
//! | `DUPSORT`, `DUPFIXED` | 192 MB | 0.65 | 0.57 | 11 | – |
//! | chunks of 256 B | 90 MB | 0.90 | 0.35 | 1.1 | 374 ns |
//! | chunks of 1000 B | 89 MB | 1.29 | 0.34 | 0.9 | 709 ns |

use std::iter::Peekable;
use std::ops::Bound;
use std::vec::IntoIter;

use heed::types::Bytes;
use heed::{RoRange, RwTxn};

use crate::limits::CHUNK_BYTES_MAX;
use crate::lmdb::{Table, Txn};
use crate::parts::{put_varint, varint, varint_bytes};
use crate::{EntryId, Error, KeyRange, lmdb};

/// Iterator over the identifiers of a posting list, ascending.
///
/// After an error it ends.
pub struct Postings<'t> {
    rows: RoRange<'t, Bytes, Bytes>,
    chunk: Chunk<'t>,
    after: EntryId,
    key_bytes: usize,
    map_bytes: usize,
    /// Ascending: the next of the table, if it was looked at, and what is not in the table yet.
    ahead: Option<EntryId>,
    aside: Peekable<IntoIter<EntryId>>,
}

impl Postings<'_> {
    /// The lesser of what comes next in the table and aside of it; an id in both comes once.
    fn step(&mut self) -> Result<Option<EntryId>, Error> {
        let Some(&aside) = self.aside.peek() else {
            return match self.ahead.take() {
                Some(id) => Ok(Some(id)),
                None => self.step_table(),
            };
        };
        if self.ahead.is_none() {
            self.ahead = self.step_table()?;
        }
        if self.ahead.is_none_or(|id| aside <= id) {
            self.aside.next();
        }
        if self.ahead.is_some_and(|id| id <= aside) {
            return Ok(self.ahead.take());
        }
        Ok(Some(aside))
    }

    fn step_table(&mut self) -> Result<Option<EntryId>, Error> {
        loop {
            while let Some(id) = self.chunk.next()? {
                if id > self.after {
                    return Ok(Some(id));
                }
            }
            let Some(row) = self.rows.next() else { return Ok(None) };
            let (row, gaps) =
                row.map_err(|e| lmdb::error("reading an index", self.map_bytes, e))?;
            self.chunk = Chunk::of_row(row, self.key_bytes, gaps)?;
        }
    }
}

impl Iterator for Postings<'_> {
    type Item = Result<EntryId, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step().transpose()
    }
}

/// One chunk, read from its first identifier on.
#[derive(Clone, Copy)]
pub(crate) struct Chunk<'t> {
    next: Option<u64>,
    gaps: &'t [u8],
}

impl<'t> Chunk<'t> {
    const EMPTY: Chunk<'static> = Chunk { next: None, gaps: &[] };

    /// The chunk in a row whose key has this length.
    pub(crate) fn of_row(row: &[u8], key_bytes: usize, gaps: &'t [u8]) -> Result<Self, Error> {
        let first = row.get(key_bytes..).and_then(EntryId::from_bytes);
        let first = first.ok_or_else(|| Error::damaged("a row of an index has a wrong length"))?;
        Ok(Chunk { next: Some(first.0), gaps })
    }

    pub(crate) fn next(&mut self) -> Result<Option<EntryId>, Error> {
        let Some(id) = self.next else { return Ok(None) };
        self.next = match self.gaps.is_empty() {
            true => None,
            false => Some(self.after_gap(id).ok_or_else(bad_gap)?),
        };
        Ok(Some(EntryId(id)))
    }

    fn after_gap(&mut self, id: u64) -> Option<u64> {
        let gap = varint(&mut self.gaps)?;
        id.checked_add(gap).filter(|_| gap > 0)
    }

    /// How many identifiers it has, without reading them: as many as gaps end, and the first.
    fn count(&self) -> usize {
        let ends = self.gaps.iter().filter(|byte| **byte < 0x80).count();
        usize::from(self.next.is_some()) + ends
    }

    fn last(mut self) -> Result<Option<EntryId>, Error> {
        let mut last = None;
        while let Some(id) = self.next()? {
            last = Some(id);
        }
        Ok(last)
    }

    fn collect(mut self) -> Result<Vec<EntryId>, Error> {
        let mut ids = Vec::with_capacity(1 + self.gaps.len());
        while let Some(id) = self.next()? {
            ids.push(id);
        }
        Ok(ids)
    }
}

fn bad_gap() -> Error {
    Error::damaged("a gap in an index is malformed")
}

/// The table of posting lists and what its errors are told with.
#[derive(Clone, Copy)]
pub(crate) struct Lists {
    pub table: Table<'static>,
    pub map_bytes: usize,
}

impl Lists {
    /// The identifiers of `key` greater than `after`, and those of `aside`, which ascend.
    pub(crate) fn list<'t>(
        self,
        txn: &'t Txn<'_>,
        key: &[u8],
        after: EntryId,
        aside: Vec<EntryId>,
    ) -> Result<Postings<'t>, Error> {
        let first = match after {
            EntryId::ROOT => None,
            _ => self.chunk_of(txn, key, after)?.map(|(first, _)| first),
        };
        let low = row(key, first.unwrap_or(EntryId::ROOT));
        let high = row(key, EntryId(u64::MAX));
        let bounds = (Bound::Included(low.as_slice()), Bound::Included(high.as_slice()));
        let rows = self.table.range(txn, &bounds).map_err(|e| self.error(e))?;
        let (key_bytes, map_bytes) = (key.len(), self.map_bytes);
        let aside = aside.into_iter().peekable();
        let (chunk, ahead) = (Chunk::EMPTY, None);
        Ok(Postings { rows, chunk, after, key_bytes, map_bytes, ahead, aside })
    }

    /// How many identifiers `key` has. Whole chunks are counted, until there are `n` or more.
    pub(crate) fn count(self, txn: &Txn<'_>, key: &[u8], n: usize) -> Result<usize, Error> {
        let (low, high) = (row(key, EntryId::ROOT), row(key, EntryId(u64::MAX)));
        let bounds = (Bound::Included(low.as_slice()), Bound::Included(high.as_slice()));
        self.count_rows(txn, &bounds, n)
    }

    /// Counts the identifiers of all keys in `range`; one that is listed under several of them counts
    /// several times.
    pub(crate) fn count_range(
        self,
        txn: &Txn<'_>,
        range: &KeyRange,
        n: usize,
    ) -> Result<usize, Error> {
        self.count_rows(txn, &bounds_of(range), n)
    }

    fn count_rows(
        self,
        txn: &Txn<'_>,
        bounds: &(Bound<&[u8]>, Bound<&[u8]>),
        n: usize,
    ) -> Result<usize, Error> {
        let mut count = 0;
        if n == 0 {
            return Ok(count);
        }
        for row in self.table.range(txn, bounds).map_err(|e| self.error(e))? {
            let (row, gaps) = row.map_err(|e| self.error(e))?;
            count += Chunk::of_row(row, row.len().saturating_sub(8), gaps)?.count();
            if count >= n {
                break;
            }
        }
        Ok(count)
    }

    /// Removes lists of keys in `range`, at most so many rows of them; whether some are left.
    pub(crate) fn drop_range(
        self,
        txn: &mut RwTxn<'_>,
        range: &KeyRange,
        rows_max: usize,
    ) -> Result<bool, Error> {
        let rows = self.table.range(txn, &bounds_of(range)).map_err(|e| self.error(e))?;
        let rows =
            rows.take(rows_max.saturating_add(1)).map(|row| row.map(|(row, _)| row.to_vec()));
        let mut rows: Vec<Vec<u8>> = rows.collect::<Result<_, _>>().map_err(|e| self.error(e))?;
        let more = rows.len() > rows_max;
        rows.truncate(rows_max);
        for row in rows {
            self.table.delete(txn, &row).map_err(|e| self.error(e))?;
        }
        Ok(more)
    }

    /// Whether `id` is listed under `key`.
    pub(crate) fn contains(self, txn: &Txn<'_>, key: &[u8], id: EntryId) -> Result<bool, Error> {
        let Some((_, mut chunk)) = self.chunk_of(txn, key, id)? else { return Ok(false) };
        while let Some(found) = chunk.next()? {
            if found >= id {
                return Ok(found == id);
            }
        }
        Ok(false)
    }

    /// The identifiers of all keys in `range` and those of `aside`, ascending and each once; `None`
    /// if the lists together hold more than `ids_max`.
    pub(crate) fn collect_range(
        self,
        txn: &Txn<'_>,
        range: &KeyRange,
        ids_max: usize,
        aside: Vec<EntryId>,
    ) -> Result<Option<Vec<EntryId>>, Error> {
        let bounds = bounds_of(range);
        let mut ids = aside;
        if ids.len() > ids_max {
            return Ok(None);
        }
        for row in self.table.range(txn, &bounds).map_err(|e| self.error(e))? {
            let (row, gaps) = row.map_err(|e| self.error(e))?;
            let mut chunk = Chunk::of_row(row, row.len().saturating_sub(8), gaps)?;
            while let Some(id) = chunk.next()? {
                if ids.len() == ids_max {
                    return Ok(None);
                }
                ids.push(id);
            }
        }
        ids.sort_unstable();
        ids.dedup();
        Ok(Some(ids))
    }

    /// Lists `ids`, which ascend, under `key`; those that are listed already stay so.
    pub(crate) fn add(
        self,
        txn: &mut RwTxn<'_>,
        key: &[u8],
        mut ids: &[EntryId],
    ) -> Result<(), Error> {
        while let Some((&id, others)) = ids.split_first() {
            // The identifiers before the next chunk join this one; a lone identifier needs no look.
            let joining = match others.is_empty() {
                true => 1,
                false => match self.first_after(txn, key, id)? {
                    Some(next) => ids.partition_point(|id| *id < next),
                    None => ids.len(),
                },
            };
            let (joining, rest) = ids.split_at(joining);
            match self.chunk_of(txn, key, id)? {
                None => self.write(txn, key, joining)?,
                Some((first, chunk)) => {
                    let gaps = chunk.gaps.to_vec();
                    self.join(txn, key, first, gaps, joining)?;
                }
            }
            ids = rest;
        }
        Ok(())
    }

    /// Takes `id` from the list of `key`, if it is there.
    pub(crate) fn remove(self, txn: &mut RwTxn<'_>, key: &[u8], id: EntryId) -> Result<(), Error> {
        let Some((first, chunk)) = self.chunk_of(txn, key, id)? else { return Ok(()) };
        let mut ids = chunk.collect()?;
        let Ok(at) = ids.binary_search(&id) else { return Ok(()) };
        ids.remove(at);
        if ids.first() != Some(&first) {
            self.table.delete(txn, &row(key, first)).map_err(|e| self.error(e))?;
        }
        self.write(txn, key, &ids)
    }

    /// Puts a chunk back with more identifiers, all of which belong between it and the next.
    fn join(
        self,
        txn: &mut RwTxn<'_>,
        key: &[u8],
        first: EntryId,
        gaps: Vec<u8>,
        joining: &[EntryId],
    ) -> Result<(), Error> {
        let chunk = Chunk { next: Some(first.0), gaps: &gaps };
        let last = chunk.last()?.unwrap_or(first);
        if joining.first().is_some_and(|id| *id > last) {
            return self.append(txn, key, first, gaps, last, joining);
        }
        let mut ids = chunk.collect()?;
        let before = ids.len();
        ids.extend_from_slice(joining);
        ids.sort_unstable();
        ids.dedup();
        match ids.len() == before {
            true => Ok(()),
            false => self.write(txn, key, &ids),
        }
    }

    /// Writes identifiers as one chunk or, when one does not hold them, from two halves: there is
    /// room then for more in between.
    fn write(self, txn: &mut RwTxn<'_>, key: &[u8], ids: &[EntryId]) -> Result<(), Error> {
        let gap_bytes = ids.windows(2).map(|pair| match pair {
            [a, b] => varint_bytes(b.0 - a.0),
            _ => 0,
        });
        let middle = match gap_bytes.sum::<usize>() > CHUNK_BYTES_MAX {
            true => ids.len() / 2,
            false => 0,
        };
        let (left, right) = ids.split_at(middle);
        for half in [left, right] {
            if let Some((&first, others)) = half.split_first() {
                self.append(txn, key, first, Vec::new(), first, others)?;
            }
        }
        Ok(())
    }

    /// Writes the chunk that begins with `first` and ends with `last`, and `ids` behind it; a chunk
    /// that is full is left so, and the next one begins.
    fn append(
        self,
        txn: &mut RwTxn<'_>,
        key: &[u8],
        mut first: EntryId,
        mut gaps: Vec<u8>,
        mut last: EntryId,
        ids: &[EntryId],
    ) -> Result<(), Error> {
        for &id in ids {
            let gap = id.0 - last.0;
            if gaps.len() + varint_bytes(gap) > CHUNK_BYTES_MAX {
                self.put_row(txn, &row(key, first), &gaps)?;
                gaps.clear();
                first = id;
            } else {
                put_varint(&mut gaps, gap);
            }
            last = id;
        }
        self.put_row(txn, &row(key, first), &gaps)
    }

    fn put_row(self, txn: &mut RwTxn<'_>, row: &[u8], gaps: &[u8]) -> Result<(), Error> {
        self.table.put(txn, row, gaps).map_err(|e| self.error(e))
    }

    /// The chunk that `id` belongs to: the last that begins at or before it.
    fn chunk_of<'t>(
        self,
        txn: &'t Txn<'_>,
        key: &[u8],
        id: EntryId,
    ) -> Result<Option<(EntryId, Chunk<'t>)>, Error> {
        let found = self.table.get_lower_than_or_equal_to(txn, &row(key, id));
        let Some((row, gaps)) = found.map_err(|e| self.error(e))? else { return Ok(None) };
        Ok(first_of(row, key).map(|first| (first, Chunk { next: Some(first.0), gaps })))
    }

    /// Where the first chunk begins that begins after `id`.
    fn first_after(self, txn: &Txn<'_>, key: &[u8], id: EntryId) -> Result<Option<EntryId>, Error> {
        let found = self.table.get_greater_than(txn, &row(key, id)).map_err(|e| self.error(e))?;
        Ok(found.and_then(|(row, _)| first_of(row, key)))
    }

    fn error(self, error: heed::Error) -> Error {
        lmdb::error("using an index", self.map_bytes, error)
    }
}

/// The rows that a range is about.
fn bounds_of(range: &KeyRange) -> (Bound<&[u8]>, Bound<&[u8]>) {
    let high = match range.high.is_empty() {
        true => Bound::Unbounded,
        false => Bound::Excluded(range.high.as_slice()),
    };
    (Bound::Included(range.low.as_slice()), high)
}

/// The first identifier of a chunk, if the row is one of `key`.
fn first_of(row: &[u8], key: &[u8]) -> Option<EntryId> {
    row.strip_prefix(key).and_then(EntryId::from_bytes)
}

fn row(key: &[u8], id: EntryId) -> Vec<u8> {
    [key, &id.to_bytes()].concat()
}
