//! Rows of the feed: sealed when they are written, checked when they are read.
//!
//! Position (8 B BE) → `checksum (4 B LE) | digest of the row before (32 B) | varint changes before it | varint jobs |
//! (slice note | varint changes | change…)…`. The checksum is the CRC-32 of the word `feed`, the position and all
//! that follows it; the word keeps a row from being taken for an entry.

use std::ops::Bound;

use heed::RoRange;
use heed::types::Bytes;
use sha2::{Digest, Sha256};

use super::change::Change;
use super::head::{FeedDigest, FeedHead, read_head};
use crate::format::META_FEED;
use crate::parts::{RecordError, put_varint, slice, varint};
use crate::{Error, View, lmdb};

const CHECKSUM_BYTES: usize = 4;
const CHECKSUM_WORD: &[u8] = b"feed";

/// A commit, as it was read back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FeedRow {
    /// Its position.
    pub position: u64,
    /// Of the row before it.
    pub before: FeedDigest,
    /// Its own.
    pub digest: FeedDigest,
    /// The number of its first change; those of all rows are counted together, from 1.
    pub first_change: u64,
    /// Its bytes in the store, with its key.
    pub bytes: u64,
    /// Its jobs that have changed something, in their order.
    pub jobs: Vec<FeedJob>,
}

/// The changes of one job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FeedJob {
    /// The caller's, from `Write::note`.
    pub note: Vec<u8>,
    /// In their order.
    pub changes: Vec<Change>,
}

impl FeedRow {
    /// Checks and reads the stored form.
    ///
    /// # Errors
    /// If the bytes are not those that were written at this position.
    pub fn decode(position: u64, bytes: &[u8]) -> Result<FeedRow, RecordError> {
        let (sum, body) = bytes.split_at_checked(CHECKSUM_BYTES).ok_or(RecordError::Length)?;
        if sum != checksum(position, body) {
            return Err(RecordError::Checksum);
        }
        let digest = digest(position, bytes);
        let (before, mut rest) = body.split_first_chunk().ok_or(RecordError::Length)?;
        let rest = &mut rest;
        let changes_before = varint(rest).ok_or(RecordError::Length)?;
        let count = varint(rest).ok_or(RecordError::Length)?;
        let mut jobs = Vec::new();
        for _ in 0..count {
            let note = slice(rest).ok_or(RecordError::Length)?.to_vec();
            let count = varint(rest).ok_or(RecordError::Length)?;
            let mut changes = Vec::new();
            for _ in 0..count {
                changes.push(Change::read(rest)?);
            }
            jobs.push(FeedJob { note, changes });
        }
        let first_change = changes_before.checked_add(1).ok_or(RecordError::Length)?;
        let (before, bytes) = (FeedDigest(*before), row_bytes(bytes));
        match rest.is_empty() {
            true => Ok(FeedRow { position, before, digest, first_change, bytes, jobs }),
            false => Err(RecordError::Length),
        }
    }

    /// How many changes it has.
    pub fn changes(&self) -> u64 {
        self.jobs.iter().map(|job| job.changes.len() as u64).sum()
    }
}

/// The key of a row.
pub(crate) fn feed_key(position: u64) -> [u8; 8] {
    position.to_be_bytes()
}

/// The bytes of a row with its key.
pub(crate) fn row_bytes(row: &[u8]) -> u64 {
    (size_of::<u64>() + row.len()) as u64
}

/// The row behind this head that ends with these jobs, and its digest.
pub(crate) fn seal(head: &FeedHead, jobs: &[u8]) -> (Vec<u8>, FeedDigest) {
    let position = head.position + 1;
    let mut row = Vec::with_capacity(CHECKSUM_BYTES + FeedDigest::BYTES + 10 + jobs.len());
    row.extend_from_slice(&[0; CHECKSUM_BYTES]);
    row.extend_from_slice(&head.digest.0);
    put_varint(&mut row, head.changes);
    row.extend_from_slice(jobs);
    let (sum, body) = row.split_at_mut(CHECKSUM_BYTES);
    sum.copy_from_slice(&checksum(position, body));
    let digest = digest(position, &row);
    (row, digest)
}

fn checksum(position: u64, body: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut sum = crc32fast::Hasher::new();
    sum.update(CHECKSUM_WORD);
    sum.update(&feed_key(position));
    sum.update(body);
    sum.finalize().to_le_bytes()
}

fn digest(position: u64, row: &[u8]) -> FeedDigest {
    FeedDigest(Sha256::new().chain_update(feed_key(position)).chain_update(row).finalize().into())
}

/// Iterator over rows of the feed, in the order of their positions. A row whose predecessor it has read, and that
/// does not follow it, is an error.
pub struct FeedRows<'t> {
    rows: Option<RoRange<'t, Bytes, Bytes>>,
    /// Position and digest of the row before the next one; the digest once it is known.
    last: (u64, Option<FeedDigest>),
    head: FeedHead,
    map_bytes: usize,
}

/// A row in its stored form, for another store in the state before it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RawRow {
    row: FeedRow,
    bytes: Vec<u8>,
}

impl RawRow {
    /// Checks and reads the stored form of a position.
    ///
    /// # Errors
    /// If the bytes are not those that were written at this position.
    pub fn parse(position: u64, bytes: &[u8]) -> Result<RawRow, RecordError> {
        Ok(RawRow { row: FeedRow::decode(position, bytes)?, bytes: bytes.to_vec() })
    }

    /// Its position.
    pub fn position(&self) -> u64 {
        self.row.position
    }

    /// The stored form.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The notes of its jobs.
    pub fn notes(&self) -> impl Iterator<Item = &[u8]> {
        self.row.jobs.iter().map(|job| &*job.note)
    }

    /// Its changes, in their order.
    pub fn changes(&self) -> impl Iterator<Item = &Change> {
        self.row.jobs.iter().flat_map(|job| &job.changes)
    }

    /// The digest of the row before it.
    pub fn before(&self) -> FeedDigest {
        self.row.before
    }

    /// Its own digest.
    pub fn digest(&self) -> FeedDigest {
        self.row.digest
    }

    /// All of it.
    pub(crate) fn row(&self) -> &FeedRow {
        &self.row
    }
}

impl<'t> FeedRows<'t> {
    fn step(&mut self) -> Result<Option<(FeedRow, &'t [u8])>, Error> {
        let next = self.rows.as_mut().and_then(Iterator::next).transpose();
        let next = next.map_err(|e| lmdb::error("reading the feed", self.map_bytes, e))?;
        let (last, digest) = self.last;
        let Some((key, bytes)) = next else {
            let is_end =
                last == self.head.position && digest.is_none_or(|it| it == self.head.digest);
            return match is_end {
                true => Ok(None),
                false => Err(Error::damaged("the feed ends before its end, or at another row")),
            };
        };
        let position = last + 1;
        if key != feed_key(position) {
            return Err(Error::damaged(format!("position {position} of the feed is missing")));
        }
        let row = FeedRow::decode(position, bytes)
            .map_err(|why| Error::damaged(format!("position {position} of the feed: {why}")))?;
        if digest.is_some_and(|digest| digest != row.before) {
            let what = format!("position {position} of the feed does not follow the one before it");
            return Err(Error::damaged(what));
        }
        self.last = (position, Some(row.digest));
        Ok(Some((row, bytes)))
    }

    fn advance(&mut self) -> Option<Result<(FeedRow, &'t [u8]), Error>> {
        let next = self.step().transpose();
        if !matches!(next, Some(Ok(_))) {
            // It ends here, also after an error.
            self.rows = None;
            self.last = (self.head.position, None);
        }
        next
    }

    /// The rows in their stored form.
    pub fn raw(mut self) -> impl Iterator<Item = Result<RawRow, Error>> + use<'t> {
        let raw = |(row, bytes): (FeedRow, &[u8])| RawRow { row, bytes: bytes.to_vec() };
        std::iter::from_fn(move || self.advance()).map(move |next| next.map(raw))
    }
}

impl Iterator for FeedRows<'_> {
    type Item = Result<FeedRow, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.advance().map(|next| next.map(|(row, _)| row))
    }
}

impl<'t> View<'t> {
    /// How far the feed has come in this state; `None` for a store that has never been opened with one.
    ///
    /// # Errors
    /// [`Error::Damaged`], or the system's.
    pub fn feed_head(self) -> Result<Option<FeedHead>, Error> {
        self.shared.get(self.tables.meta, self.txn, META_FEED)?.map(read_head).transpose()
    }

    /// The rows behind a position, up to the last one.
    ///
    /// # Errors
    /// [`Error::FeedTrimmed`] if rows behind it are not kept any more, and [`Error::FeedAhead`] if the store has
    /// not come so far: then the position is another store's, or that of a later state.
    pub fn feed_after(self, position: u64) -> Result<FeedRows<'t>, Error> {
        let head = self.feed_head()?.unwrap_or_else(FeedHead::of_an_older_store);
        if position > head.position {
            return Err(Error::FeedAhead { position, last: head.position });
        }
        if position.saturating_add(1) < head.first {
            return Err(Error::FeedTrimmed { position, first: head.first });
        }
        let low = feed_key(position);
        let bounds = (Bound::Excluded(low.as_slice()), Bound::Unbounded);
        let rows = self.tables.feed.map(|table| table.range(self.txn, &bounds)).transpose();
        let rows = rows.map_err(|e| self.shared.error("reading the feed", e))?;
        Ok(FeedRows { rows, last: (position, None), head, map_bytes: self.shared.map_bytes })
    }

    /// The position of the row that has the change of this number, if it is kept.
    ///
    /// # Errors
    /// As [`View::feed_head`].
    pub fn feed_position(self, change: u64) -> Result<Option<u64>, Error> {
        let Some(head) = self.feed_head()? else { return Ok(None) };
        if head.is_empty() || change == 0 || change > head.changes {
            return Ok(None);
        }
        // The last row whose changes begin at or before it.
        let (mut low, mut high) = (head.first, head.position);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            match self.changes_before(middle)? < change {
                true => low = middle,
                false => high = middle - 1,
            }
        }
        Ok((self.changes_before(low)? < change).then_some(low))
    }

    /// The note of the first job of a row that is kept, without a look at the rest of it: its checksum is not checked.
    ///
    /// # Errors
    /// As [`View::feed_head`].
    pub fn feed_note(self, position: u64) -> Result<Option<&'t [u8]>, Error> {
        let Some(table) = self.tables.feed else { return Ok(None) };
        let row = self.shared.get(table, self.txn, &feed_key(position))?;
        Ok(row.and_then(|row| {
            let mut rest = row.get(CHECKSUM_BYTES + FeedDigest::BYTES..)?;
            let (_changes, _jobs) = (varint(&mut rest)?, varint(&mut rest)?);
            slice(&mut rest)
        }))
    }

    /// How many changes there are before a row that is kept, without a look at the rest of it.
    ///
    /// # Errors
    /// As [`View::feed_head`].
    pub fn changes_before(self, position: u64) -> Result<u64, Error> {
        let missing = || Error::damaged(format!("position {position} of the feed is missing"));
        let table = self.tables.feed.ok_or_else(missing)?;
        let row = self.shared.get(table, self.txn, &feed_key(position))?.ok_or_else(missing)?;
        row.get(CHECKSUM_BYTES + FeedDigest::BYTES..)
            .and_then(|mut rest| varint(&mut rest))
            .ok_or_else(|| Error::damaged(format!("position {position} of the feed is too short")))
    }
}
