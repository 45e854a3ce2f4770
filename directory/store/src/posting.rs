//! Posting lists: for a key, the ascending identifiers of the entries it stands for.

use std::ops::Bound;

use heed::RoRange;
use heed::types::Bytes;

use crate::lmdb::{Table, Txn};
use crate::{EntryId, Error, Key, KeyRange, lmdb};

/// Iterator over the identifiers of a posting list, ascending.
pub struct Postings<'t> {
    rows: RoRange<'t, Bytes, Bytes>,
    key_bytes: usize,
    map_bytes: usize,
}

impl Iterator for Postings<'_> {
    type Item = Result<EntryId, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.rows.next()? {
            Ok((row, _)) => Some(id_of(row, self.key_bytes)),
            Err(error) => Some(Err(lmdb::error("reading an index", self.map_bytes, error))),
        }
    }
}

fn id_of(row: &[u8], key_bytes: usize) -> Result<EntryId, Error> {
    row.get(key_bytes..)
        .and_then(EntryId::from_bytes)
        .ok_or_else(|| Error::damaged("a row of an index has a wrong length"))
}

/// The table's row for `key` and `id`.
pub(crate) fn row(key: &Key, id: EntryId) -> Vec<u8> {
    let mut row = Vec::with_capacity(key.as_bytes().len() + 8);
    row.extend_from_slice(key.as_bytes());
    row.extend_from_slice(&id.to_bytes());
    row
}

/// The identifiers of `key` greater than `after`.
pub(crate) fn list<'t>(
    table: Table<'static>,
    txn: &'t Txn<'_>,
    key: &Key,
    after: EntryId,
    map_bytes: usize,
) -> Result<Postings<'t>, Error> {
    let (low, high) = (row(key, after), row(key, EntryId(u64::MAX)));
    let bounds = (Bound::Excluded(low.as_slice()), Bound::Included(high.as_slice()));
    let rows =
        table.range(txn, &bounds).map_err(|e| lmdb::error("reading an index", map_bytes, e))?;
    Ok(Postings { rows, key_bytes: key.as_bytes().len(), map_bytes })
}

/// The identifiers of all keys in `range`, ascending and each once; `None` if there are more than
/// `rows_max` rows.
pub(crate) fn collect_range(
    table: Table<'static>,
    txn: &Txn<'_>,
    range: &KeyRange,
    rows_max: usize,
    map_bytes: usize,
) -> Result<Option<Vec<EntryId>>, Error> {
    let high = match range.high.is_empty() {
        true => Bound::Unbounded,
        false => Bound::Excluded(range.high.as_slice()),
    };
    let rows = table
        .range(txn, &(Bound::Included(range.low.as_slice()), high))
        .map_err(|e| lmdb::error("reading an index", map_bytes, e))?;
    let mut ids = Vec::new();
    for row in rows {
        let (row, _) = row.map_err(|e| lmdb::error("reading an index", map_bytes, e))?;
        if ids.len() == rows_max {
            return Ok(None);
        }
        ids.push(id_of(row, row.len().saturating_sub(8))?);
    }
    ids.sort_unstable();
    ids.dedup();
    Ok(Some(ids))
}
