//! The table of the values of large attributes.
//!
//! The values of an attribute are sorted by their keys and cut into chunks. A chunk is one row:
//! entry (8 B BE), slot (4 B BE) and the least key that may be in it (16 B) → `checksum (4 B LE) |
//! (key | varint length | value)…`. The first chunk of an attribute may hold every key below the
//! second, so that each key has its chunk whatever came and went. The checksum is the CRC-32 of the
//! row's key and all that follows it.

use std::ops::Bound;

use heed::types::Bytes;
use heed::{RoRange, RwTxn};

use crate::large::{Large, LargeEdit, ValueKey};
use crate::limits::VALUES_BYTES_MAX;
use crate::lmdb::{self, Table, Txn};
use crate::parts::{RecordError, put_slice, slice, varint_bytes};
use crate::{EntryId, Error};

const CHECKSUM_BYTES: usize = 4;
/// Entry and slot.
const OWNER_BYTES: usize = 8 + 4;
pub(crate) const ROW_BYTES: usize = OWNER_BYTES + ValueKey::BYTES;

/// The entry and attribute whose values lie in a row, and the row's first key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Row {
    pub id: EntryId,
    pub slot: u32,
    pub from: ValueKey,
}

impl Row {
    pub fn parse(bytes: &[u8]) -> Option<Row> {
        let (id, rest) = bytes.split_first_chunk::<8>()?;
        let (slot, from) = rest.split_first_chunk::<4>()?;
        let from = ValueKey(from.try_into().ok()?);
        Some(Row { id: EntryId(u64::from_be_bytes(*id)), slot: u32::from_be_bytes(*slot), from })
    }

    pub fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(ROW_BYTES);
        bytes.extend_from_slice(&self.id.to_bytes());
        bytes.extend_from_slice(&self.slot.to_be_bytes());
        bytes.extend_from_slice(&self.from.0);
        bytes
    }
}

/// Some values of a large attribute, ascending by key, as they lie in a row.
#[derive(Clone, Copy, Debug, Default)]
pub struct ValueChunk<'t> {
    rest: &'t [u8],
}

impl<'t> ValueChunk<'t> {
    /// Checks and reads the stored form of the row of this key.
    ///
    /// The whole of it is walked, so that reading its values cannot fail afterwards.
    pub fn decode(row: &[u8], bytes: &'t [u8]) -> Result<ValueChunk<'t>, RecordError> {
        let chunk = ValueChunk::open(row, bytes)?;
        let (mut rest, mut after) = (chunk.rest, None);
        while !rest.is_empty() {
            let (key, _) = value(&mut rest).ok_or(RecordError::Length)?;
            if after.is_some_and(|after| key <= after) {
                return Err(RecordError::Length);
            }
            after = Some(key);
        }
        Ok(chunk)
    }

    /// Opens a row without the walk: values that make no sense end it.
    fn open(row: &[u8], bytes: &'t [u8]) -> Result<ValueChunk<'t>, RecordError> {
        let (sum, rest) = bytes.split_at_checked(CHECKSUM_BYTES).ok_or(RecordError::Length)?;
        match sum == checksum(row, rest) {
            true => Ok(ValueChunk { rest }),
            false => Err(RecordError::Checksum),
        }
    }

    /// The stored form.
    pub fn encode(row: &[u8], values: &[(ValueKey, &[u8])]) -> Vec<u8> {
        let mut out = vec![0; CHECKSUM_BYTES];
        for (key, value) in values {
            out.extend_from_slice(&key.0);
            put_slice(&mut out, value);
        }
        let (sum, body) = out.split_at_mut(CHECKSUM_BYTES);
        sum.copy_from_slice(&checksum(row, body));
        out
    }
}

impl<'t> Iterator for ValueChunk<'t> {
    type Item = (ValueKey, &'t [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        value(&mut self.rest)
    }
}

#[inline]
fn value<'t>(rest: &mut &'t [u8]) -> Option<(ValueKey, &'t [u8])> {
    let (key, after) = rest.split_first_chunk()?;
    *rest = after;
    Some((ValueKey(*key), slice(rest)?))
}

fn checksum(row: &[u8], body: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut sum = crc32fast::Hasher::new();
    sum.update(row);
    sum.update(body);
    sum.finalize().to_le_bytes()
}

/// Iterator over the values of a large attribute, in the order of their keys.
///
/// After an error it ends. That there are fewer or more than the entry says is one, at the end.
pub struct LargeValues<'t> {
    rows: Option<RoRange<'t, Bytes, Bytes>>,
    chunk: ValueChunk<'t>,
    id: EntryId,
    left: u64,
    map_bytes: usize,
}

impl<'t> LargeValues<'t> {
    fn step(&mut self) -> Result<Option<(ValueKey, &'t [u8])>, Error> {
        loop {
            if let Some(value) = self.chunk.next() {
                self.left = self.left.checked_sub(1).ok_or_else(|| miscounted(self.id))?;
                return Ok(Some(value));
            }
            let next = self.rows.as_mut().and_then(Iterator::next).transpose();
            let next = next.map_err(|e| lmdb::error("reading values", self.map_bytes, e))?;
            match next {
                // Rows that make no sense are noticed by the number of values at the end.
                Some((row, bytes)) => {
                    let chunk = ValueChunk::open(row, bytes);
                    self.chunk = chunk.map_err(|why| spoilt(self.id, why))?;
                }
                None if self.left == 0 => return Ok(None),
                None => return Err(miscounted(self.id)),
            }
        }
    }
}

impl<'t> Iterator for LargeValues<'t> {
    type Item = Result<(ValueKey, &'t [u8]), Error>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let next = self.step();
        if next.is_err() {
            (self.rows, self.chunk, self.left) = (None, ValueChunk::default(), 0);
        }
        next.transpose()
    }
}

fn miscounted(id: EntryId) -> Error {
    Error::damaged(format!("entry {id} has more or fewer values than it says"))
}

fn chunk<'t>(id: EntryId, row: &[u8], bytes: &'t [u8]) -> Result<ValueChunk<'t>, Error> {
    ValueChunk::decode(row, bytes).map_err(|why| spoilt(id, why))
}

pub(crate) fn spoilt(id: EntryId, why: RecordError) -> Error {
    Error::damaged_entry(id, format!("values of entry {id}: {why}"))
}

/// Hears of each value that goes.
pub(crate) type Gone<'g> = &'g mut dyn FnMut(ValueKey, &[u8]);

/// Hears of each value that comes, goes or takes the place of another one: the one before and the one after.
type Changed<'c> = &'c mut dyn FnMut(ValueKey, Option<&[u8]>, Option<&[u8]>);

/// The table and what its errors are told with.
#[derive(Clone, Copy)]
pub(crate) struct ValueTable {
    pub table: Table<'static>,
    pub map_bytes: usize,
}

/// By how much an edit has changed an attribute.
#[derive(Clone, Copy, Default)]
pub(crate) struct Change {
    pub count: i64,
    pub bytes: i64,
    /// Roughly what was put.
    pub put_bytes: usize,
}

impl ValueTable {
    /// The value of this key.
    pub fn get<'t>(
        self,
        txn: &'t Txn<'_>,
        id: EntryId,
        slot: u32,
        key: ValueKey,
    ) -> Result<Option<&'t [u8]>, Error> {
        let Some((_, mut chunk)) = self.chunk_of(txn, Row { id, slot, from: key })? else {
            return Ok(None);
        };
        let found = chunk.find(|(found, _)| *found >= key);
        Ok(found.filter(|(found, _)| *found == key).map(|(_, value)| value))
    }

    /// All values of an attribute.
    pub fn all<'t>(
        self,
        txn: &'t Txn<'_>,
        id: EntryId,
        large: &Large<'_>,
    ) -> Result<LargeValues<'t>, Error> {
        let rows = self.rows(txn, id, large.slot).map(Some)?;
        let (chunk, left, map_bytes) = (ValueChunk::default(), large.count, self.map_bytes);
        Ok(LargeValues { rows, chunk, id, left, map_bytes })
    }

    /// Those of an attribute behind a key, of which there are `large.count`.
    pub fn after<'t>(
        self,
        txn: &'t Txn<'_>,
        id: EntryId,
        large: &Large<'_>,
        after: ValueKey,
    ) -> Result<LargeValues<'t>, Error> {
        let wanted = Row { id, slot: large.slot, from: after };
        let Some((row, mut chunk)) = self.chunk_of(txn, wanted)? else {
            return self.all(txn, id, large);
        };
        while let Some((key, _)) = chunk.clone().next()
            && key <= after
        {
            chunk.next();
        }
        let (low, greatest) = (row.to_bytes(), ValueKey([0xFF; ValueKey::BYTES]));
        let high = Row { from: greatest, ..row }.to_bytes();
        let bounds = (Bound::Excluded(low.as_slice()), Bound::Included(high.as_slice()));
        let rows = self.table.range(txn, &bounds).map_err(|e| self.error(e))?;
        let (left, map_bytes) = (large.count, self.map_bytes);
        Ok(LargeValues { rows: Some(rows), chunk, id, left, map_bytes })
    }

    /// The rows of an attribute.
    fn rows<'t>(
        self,
        txn: &'t Txn<'_>,
        id: EntryId,
        slot: u32,
    ) -> Result<RoRange<'t, Bytes, Bytes>, Error> {
        let low = Row { id, slot, from: ValueKey::LEAST }.to_bytes();
        let greatest = ValueKey([0xFF; ValueKey::BYTES]);
        let high = Row { id, slot, from: greatest }.to_bytes();
        let bounds = (Bound::Included(low.as_slice()), Bound::Included(high.as_slice()));
        self.table.range(txn, &bounds).map_err(|e| self.error(e))
    }

    /// Removes the values of an attribute. `gone` hears of each.
    pub fn drop(
        self,
        txn: &mut RwTxn<'_>,
        id: EntryId,
        slot: u32,
        mut gone: Option<Gone<'_>>,
    ) -> Result<(), Error> {
        let mut rows = Vec::new();
        for row in self.rows(txn, id, slot)? {
            let (row, bytes) = row.map_err(|e| self.error(e))?;
            if let Some(gone) = &mut gone {
                chunk(id, row, bytes)?.for_each(|(key, value)| gone(key, value));
            }
            rows.push(row.to_vec());
        }
        for row in rows {
            self.table.delete(txn, &row).map_err(|e| self.error(e))?;
        }
        Ok(())
    }

    /// Changes the values of an attribute; each chunk that is concerned is read and written once. `changed` hears of
    /// each value that comes, goes or takes the place of another one: the one before and the one after.
    pub fn edit(
        self,
        txn: &mut RwTxn<'_>,
        id: EntryId,
        slot: u32,
        edit: &LargeEdit,
        changed: Changed<'_>,
    ) -> Result<Change, Error> {
        let outcomes = edit.outcomes();
        let (mut rest, mut change) = (outcomes.as_slice(), Change::default());
        while let Some((first, _)) = rest.first() {
            let wanted = Row { id, slot, from: *first };
            let (row, old) = match self.chunk_of(txn, wanted)? {
                Some((row, chunk)) => (row, chunk.rest.to_vec()),
                None => (Row { from: ValueKey::LEAST, ..wanted }, Vec::new()),
            };
            let here = match (rest, self.next_row(txn, row)?) {
                ([_], _) | (_, None) => rest.len(),
                (_, Some(next)) => rest.partition_point(|(key, _)| *key < next.from),
            };
            let (outcomes, others) = rest.split_at(here);
            let values = merge(ValueChunk { rest: &old }, outcomes, &mut change, changed);
            change.put_bytes += self.write(txn, row, &values)?;
            rest = others;
        }
        Ok(change)
    }

    /// Writes values as one chunk or, when one does not hold them, as several of about one size that
    /// have some room left.
    fn write(
        self,
        txn: &mut RwTxn<'_>,
        row: Row,
        values: &[(ValueKey, &[u8])],
    ) -> Result<usize, Error> {
        if values.is_empty() && row.from != ValueKey::LEAST {
            self.table.delete(txn, &row.to_bytes()).map_err(|e| self.error(e))?;
            return Ok(0);
        }
        let all: usize = values.iter().map(stored_bytes).sum();
        let chunks = match all <= VALUES_BYTES_MAX {
            true => 1,
            false => all.div_ceil(VALUES_BYTES_MAX * 3 / 4),
        };
        let (enough, mut put, mut row, mut rest) = (all / chunks, 0, row, values);
        loop {
            let mut bytes = 0;
            let here = rest.iter().take_while(|value| {
                let fits = bytes < enough || chunks == 1;
                bytes += stored_bytes(value);
                fits
            });
            let (chunk, others) = rest.split_at(here.count());
            let key = row.to_bytes();
            let encoded = ValueChunk::encode(&key, chunk);
            self.table.put(txn, &key, &encoded).map_err(|e| self.error(e))?;
            put += key.len() + encoded.len();
            let Some((next, _)) = others.first() else { return Ok(put) };
            (row, rest) = (Row { from: *next, ..row }, others);
        }
    }

    /// The chunk that a key belongs to: the last that begins at or before it.
    fn chunk_of<'t>(
        self,
        txn: &'t Txn<'_>,
        wanted: Row,
    ) -> Result<Option<(Row, ValueChunk<'t>)>, Error> {
        let found = self.table.get_lower_than_or_equal_to(txn, &wanted.to_bytes());
        let Some((row, bytes)) = found.map_err(|e| self.error(e))? else { return Ok(None) };
        match Row::parse(row).filter(|found| (found.id, found.slot) == (wanted.id, wanted.slot)) {
            Some(found) => Ok(Some((found, chunk(found.id, row, bytes)?))),
            None => Ok(None),
        }
    }

    /// The next row of the same attribute.
    fn next_row(self, txn: &Txn<'_>, row: Row) -> Result<Option<Row>, Error> {
        let found = self.table.get_greater_than(txn, &row.to_bytes()).map_err(|e| self.error(e))?;
        let found = found.and_then(|(found, _)| Row::parse(found));
        Ok(found.filter(|found| (found.id, found.slot) == (row.id, row.slot)))
    }

    fn error(self, error: heed::Error) -> Error {
        lmdb::error("using the table of values", self.map_bytes, error)
    }
}

fn stored_bytes((_, value): &(ValueKey, &[u8])) -> usize {
    ValueKey::BYTES + varint_bytes(value.len() as u64) + value.len()
}

/// The values of a chunk after an edit.
fn merge<'v>(
    old: ValueChunk<'v>,
    outcomes: &[(ValueKey, Option<&'v [u8]>)],
    change: &mut Change,
    changed: Changed<'_>,
) -> Vec<(ValueKey, &'v [u8])> {
    let (mut values, mut old) = (Vec::new(), old.peekable());
    for (key, outcome) in outcomes {
        while let Some(before) = old.next_if(|(found, _)| found < key) {
            values.push(before);
        }
        let gone = old.next_if(|(found, _)| found == key).map(|(_, value)| value);
        if let Some(gone) = gone {
            change.count -= 1;
            change.bytes -= gone.len() as i64;
        }
        if gone != *outcome {
            changed(*key, gone, *outcome);
        }
        if let Some(value) = outcome {
            values.push((*key, *value));
            change.count += 1;
            change.bytes += value.len() as i64;
        }
    }
    values.extend(old);
    values
}
