//! Numbers that are leased ahead, so that no key sees one twice, whenever the process or the machine ends.
//!
//! A record is on the disk *before* a number below its end is used. A start takes the numbers from that end on: those
//! that were leased and not used are lost. A record that cannot be read, or is not whole, is an error and no fresh
//! start.

use crate::limits::{LEASE_FAST, LEASE_MAX, LEASE_MIN};
use crate::state::Records;
use keyway_host::failure::plain;
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// The first line of a record.
const HEAD: &str = "keyway esp 1";

/// The use of a key, as it is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Of a key that seals, the first number that is not leased; of one that opens, the highest that was seen.
    pub number: u64,
    /// Added to the number, wrapping, it makes the IV of an AEAD.
    pub iv_base: u64,
    /// When the key was first used, in seconds since 1970.
    pub since: u64,
    /// Packets and bytes that it has done, about.
    pub packets: u64,
    /// See `packets`.
    pub bytes: u64,
}

impl Kept {
    /// The record: a line for each number, and a checksum.
    pub fn encode(&self) -> String {
        let Kept { number, iv_base, since, packets, bytes } = self;
        let text = format!(
            "{HEAD}\nnumber {number}\niv_base {iv_base}\nsince {since}\npackets {packets}\nbytes {bytes}\n"
        );
        format!("{text}crc32 {:08x}\n", crc32fast::hash(text.as_bytes()))
    }

    /// Reads what [`encode`](Self::encode) wrote, and nothing else.
    pub fn decode(record: &[u8]) -> Option<Kept> {
        let mut lines = std::str::from_utf8(record).ok()?.lines().skip(1);
        let mut next = |name| lines.next()?.strip_prefix(name)?.strip_prefix(' ')?.parse().ok();
        let kept = Kept {
            number: next("number")?,
            iv_base: next("iv_base")?,
            since: next("since")?,
            packets: next("packets")?,
            bytes: next("bytes")?,
        };
        // The head and the checksum, and that nothing is behind it.
        (kept.encode().as_bytes() == record).then_some(kept)
    }
}

/// Why there is no lease, or no record.
#[derive(Debug)]
pub enum LeaseError {
    /// The system refuses to read or to write.
    System(io::Error),
    /// A record is not whole.
    Damaged,
}

impl fmt::Display for LeaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LeaseError::System(why) => f.write_str(&plain(why)),
            LeaseError::Damaged => f.write_str(
                "it is damaged, so nothing says which numbers were used; give both sides a new key",
            ),
        }
    }
}

impl std::error::Error for LeaseError {}

impl From<io::Error> for LeaseError {
    fn from(why: io::Error) -> LeaseError {
        LeaseError::System(why)
    }
}

/// The record of a key.
pub struct Record<R> {
    records: Arc<R>,
    name: String,
    kept: Kept,
}

impl<R: Records> Record<R> {
    /// The record of a name; `fresh` where there is none, which is not written yet.
    ///
    /// # Errors
    /// If there is one that cannot be read.
    pub fn open(
        records: Arc<R>,
        name: String,
        fresh: impl FnOnce() -> Result<Kept, LeaseError>,
    ) -> Result<Record<R>, LeaseError> {
        let kept = match records.read(&name)? {
            Some(record) => Kept::decode(&record).ok_or(LeaseError::Damaged)?,
            None => fresh()?,
        };
        Ok(Record { records, name, kept })
    }

    /// Its file's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The use of the key, as the disk has it.
    pub fn kept(&self) -> &Kept {
        &self.kept
    }

    /// Keeps this from now on. It is on the disk when this returns.
    ///
    /// # Errors
    /// The system's. Then the disk may have either.
    pub fn keep(&mut self, kept: Kept) -> io::Result<()> {
        if kept != self.kept {
            self.records.write(&self.name, kept.encode().as_bytes())?;
            self.kept = kept;
        }
        Ok(())
    }
}

/// The numbers of a key that seals.
pub struct Lease<R> {
    record: Record<R>,
    size: u64,
    /// When numbers were last taken, on the caller's clock.
    last: Option<Duration>,
}

impl<R: Records> Lease<R> {
    /// The numbers from where the record ends.
    pub fn new(record: Record<R>) -> Lease<R> {
        Lease { record, size: LEASE_MIN, last: None }
    }

    /// Its record.
    pub fn record(&self) -> &Record<R> {
        &self.record
    }

    /// Takes the numbers that follow. They may be used when this returns, for this key and no other; where it fails, none
    /// of them may. Of a key that needs them fast it takes more from time to time. `done`: packets and bytes that the key
    /// has done in all. `now` is the caller's monotonic clock.
    ///
    /// # Errors
    /// The system's.
    pub fn take(&mut self, done: (u64, u64), now: Duration) -> io::Result<Range<u64>> {
        let is_fast = self.last.is_some_and(|last| now.saturating_sub(last) < LEASE_FAST);
        let size = if is_fast { (self.size * 2).min(LEASE_MAX) } else { self.size };
        let start = self.record.kept.number;
        let end = start.saturating_add(size);
        let (packets, bytes) = done;
        self.record.keep(Kept { number: end, packets, bytes, ..self.record.kept })?;
        (self.size, self.last) = (size, Some(now));
        Ok(start..end)
    }

    /// Keeps how much the key has done in all.
    ///
    /// # Errors
    /// The system's.
    pub fn note(&mut self, (packets, bytes): (u64, u64)) -> io::Result<()> {
        self.record.keep(Kept { packets, bytes, ..self.record.kept })
    }
}
