//! The page's layout, in 64-bit words of the machine's own byte order.
//!
//! ```text
//! header      16 words: magic, version, process id, start (ms since 1970), counters, shards,
//!             histograms, buckets, names of counters in use, names of histograms in use (each
//!             stored last, with release), 0...
//! names       COUNTERS_MAX names of 16 words, ASCII, padded with zeros
//! shards      SHARDS times COUNTERS_MAX words, each shard on cache lines of its own
//! names       HISTOGRAMS_MAX names of 16 words
//! histograms  each 8 words: sum, complement of the least value, greatest value, 0...; and its
//!             HISTOGRAM_BUCKETS words
//! ```

use crate::limits::{
    COUNTERS_MAX, HISTOGRAM_BUCKETS, HISTOGRAMS_MAX, NAME_BYTES_MAX, PAGE_BYTES, SHARDS,
};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub(crate) const MAGIC: u64 = u64::from_ne_bytes(*b"KW meter");
pub(crate) const VERSION: u64 = 2;

pub(crate) const HEADER_WORDS: usize = 16;
pub(crate) const NAME_WORDS: usize = NAME_BYTES_MAX / 8;
pub(crate) const EXTREMES_WORDS: usize = 8;
pub(crate) const HISTOGRAM_WORDS: usize = EXTREMES_WORDS + HISTOGRAM_BUCKETS;

/// Where each part begins, in words.
pub(crate) const COUNTER_NAMES: usize = HEADER_WORDS;
pub(crate) const SHARDS_AT: usize = COUNTER_NAMES + COUNTERS_MAX * NAME_WORDS;
pub(crate) const HISTOGRAM_NAMES: usize = SHARDS_AT + SHARDS * COUNTERS_MAX;
pub(crate) const HISTOGRAMS_AT: usize = HISTOGRAM_NAMES + HISTOGRAMS_MAX * NAME_WORDS;
pub(crate) const PAGE_WORDS: usize = HISTOGRAMS_AT + HISTOGRAMS_MAX * HISTOGRAM_WORDS;

/// The counter, or histogram, that takes what found no room; always the first.
pub(crate) const OVERFLOW: &str = "overflow";

// Shards and histograms start and end on cache lines of 64 bytes, and an index can be masked.
const _: () = assert!(COUNTERS_MAX.is_power_of_two() && COUNTERS_MAX >= 8);
const _: () = assert!(HISTOGRAMS_MAX.is_power_of_two() && HISTOGRAM_WORDS.is_multiple_of(8));
const _: () = assert!(NAME_BYTES_MAX.is_multiple_of(64));
const _: () = assert!(PAGE_WORDS * 8 == PAGE_BYTES);

pub(crate) type Header = [AtomicU64; HEADER_WORDS];
/// One counter's or histogram's name.
pub(crate) type Name = [AtomicU64; NAME_WORDS];
/// One thread's counters.
pub(crate) type Shard = [AtomicU64; COUNTERS_MAX];
/// One histogram.
pub(crate) type Cells = [AtomicU64; HISTOGRAM_WORDS];

/// A page seen as its parts.
pub(crate) struct Parts<'a> {
    pub header: &'a Header,
    pub counter_names: &'a [Name],
    pub shards: &'a [Shard],
    pub histogram_names: &'a [Name],
    pub histograms: &'a [Cells],
}

/// `None` if it has another length.
pub(crate) fn parts(words: &[AtomicU64]) -> Option<Parts<'_>> {
    if words.len() != PAGE_WORDS {
        return None;
    }
    Some(Parts {
        header: words.first_chunk()?,
        counter_names: words[COUNTER_NAMES..SHARDS_AT].as_chunks().0,
        shards: words[SHARDS_AT..HISTOGRAM_NAMES].as_chunks().0,
        histogram_names: words[HISTOGRAM_NAMES..HISTOGRAMS_AT].as_chunks().0,
        histograms: words[HISTOGRAMS_AT..].as_chunks().0,
    })
}

/// The header's words, by position.
pub(crate) mod at {
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 1;
    pub const PID: usize = 2;
    pub const STARTED_UNIX_MS: usize = 3;
    pub const COUNTERS: usize = 4;
    pub const SHARDS: usize = 5;
    pub const HISTOGRAMS: usize = 6;
    pub const BUCKETS: usize = 7;
    pub const COUNTERS_IN_USE: usize = 8;
    pub const HISTOGRAMS_IN_USE: usize = 9;
}

/// The page's dimensions as a header of this version states them.
pub(crate) const DIMENSIONS: [(usize, usize); 4] = [
    (at::COUNTERS, COUNTERS_MAX),
    (at::SHARDS, SHARDS),
    (at::HISTOGRAMS, HISTOGRAMS_MAX),
    (at::BUCKETS, HISTOGRAM_BUCKETS),
];

/// Fills in a header of a fresh page, all but the names.
pub(crate) fn stamp(header: &Header, pid: u32, started_unix_ms: u64) {
    header[at::VERSION].store(VERSION, Relaxed);
    header[at::PID].store(u64::from(pid), Relaxed);
    header[at::STARTED_UNIX_MS].store(started_unix_ms, Relaxed);
    for (word, dimension) in DIMENSIONS {
        header[word].store(dimension as u64, Relaxed);
    }
    header[at::MAGIC].store(MAGIC, Relaxed);
}

/// Whether a name may stand in the page: printable ASCII without spaces, not too long.
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

/// Reads a name out of a slot's words. `None` if no writer of ours could have put it there.
pub(crate) fn read_name(slot: [u64; NAME_WORDS]) -> Option<String> {
    let mut bytes = slot.map(u64::to_ne_bytes).concat();
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let (name, padding) = bytes.split_at(end);
    if !is_name(name) || padding.iter().any(|byte| *byte != 0) {
        return None;
    }
    bytes.truncate(end);
    String::from_utf8(bytes).ok()
}
