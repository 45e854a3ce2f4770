//! The page's layout, in 64-bit words of the machine's own byte order.
//!
//! ```text
//! header      8 words: magic, version, process id, start (ms since 1970), counters, shards,
//!             names in use (stored last, with release), 0
//! directory   COUNTERS_MAX names of 8 words, ASCII, padded with zeros
//! shards      SHARDS times COUNTERS_MAX words, each shard on cache lines of its own
//! ```

use crate::limits::{COUNTERS_MAX, NAME_BYTES_MAX, PAGE_BYTES, SHARDS};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub(crate) const MAGIC: u64 = u64::from_ne_bytes(*b"KW meter");
pub(crate) const VERSION: u64 = 1;

pub(crate) const HEADER_WORDS: usize = 8;
pub(crate) const NAME_WORDS: usize = NAME_BYTES_MAX / 8;
pub(crate) const PAGE_WORDS: usize = PAGE_BYTES / 8;

/// The counter that takes what found no room; always the first.
pub(crate) const OVERFLOW: &str = "overflow";

// A shard starts and ends on cache lines of 64 bytes, and an index can be masked.
const _: () = assert!(COUNTERS_MAX.is_power_of_two() && COUNTERS_MAX >= 8);
const _: () = assert!(NAME_BYTES_MAX.is_multiple_of(64));
const _: () =
    assert!(PAGE_WORDS == HEADER_WORDS + COUNTERS_MAX * NAME_WORDS + SHARDS * COUNTERS_MAX);

/// One thread's counters.
pub(crate) type Shard = [AtomicU64; COUNTERS_MAX];
/// One counter's name.
pub(crate) type Name = [AtomicU64; NAME_WORDS];

/// A page seen as its parts. `None` if it has another length.
pub(crate) fn parts(words: &[AtomicU64]) -> Option<(&Header, &[Name], &[Shard])> {
    if words.len() != PAGE_WORDS {
        return None;
    }
    let (header, rest) = words.split_at(HEADER_WORDS);
    let (directory, shards) = rest.split_at(COUNTERS_MAX * NAME_WORDS);
    Some((header.first_chunk()?, directory.as_chunks().0, shards.as_chunks().0))
}

pub(crate) type Header = [AtomicU64; HEADER_WORDS];

/// The header's words, by position.
pub(crate) mod at {
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 1;
    pub const PID: usize = 2;
    pub const STARTED_UNIX_MS: usize = 3;
    pub const COUNTERS: usize = 4;
    pub const SHARDS: usize = 5;
    pub const NAMES_IN_USE: usize = 6;
}

/// Fills in a header of a fresh page, all but the names.
pub(crate) fn stamp(header: &Header, pid: u32, started_unix_ms: u64) {
    let [magic, version, process, started, counters, shards, ..] = header;
    version.store(VERSION, Relaxed);
    process.store(u64::from(pid), Relaxed);
    started.store(started_unix_ms, Relaxed);
    counters.store(COUNTERS_MAX as u64, Relaxed);
    shards.store(SHARDS as u64, Relaxed);
    magic.store(MAGIC, Relaxed);
}

/// Whether a name may stand in the directory: printable ASCII without spaces, not too long.
pub(crate) fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.iter().all(u8::is_ascii_graphic)
}

/// Writes a checked name into a fresh slot.
pub(crate) fn write_name(slot: &Name, name: &str) {
    let mut bytes = [0; NAME_BYTES_MAX];
    for (to, from) in bytes.iter_mut().zip(name.bytes()) {
        *to = from;
    }
    for (word, chunk) in slot.iter().zip(bytes.as_chunks().0) {
        word.store(u64::from_ne_bytes(*chunk), Relaxed);
    }
}

/// Reads a name out of a slot. `None` if no writer of ours could have put it there.
pub(crate) fn read_name(slot: &Name) -> Option<String> {
    let mut bytes = Vec::with_capacity(NAME_BYTES_MAX);
    for word in slot {
        bytes.extend_from_slice(&word.load(Relaxed).to_ne_bytes());
    }
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let (name, padding) = bytes.split_at(end);
    if !is_name(name) || padding.iter().any(|byte| *byte != 0) {
        return None;
    }
    bytes.truncate(end);
    String::from_utf8(bytes).ok()
}
