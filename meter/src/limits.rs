//! What bounds the page; all of it is part of the page's layout.

/// Counters a page can name; a power of two. Those that come later share the one named `overflow`.
pub const COUNTERS_MAX: usize = 1024;

/// Shards of a page: one for each counting thread, and the last for all threads beyond that.
pub const SHARDS: usize = 64;

/// Longest name of a counter, in bytes.
pub const NAME_BYTES_MAX: usize = 64;

/// Size of a page, in bytes: a header of 64, the names, the shards.
pub const PAGE_BYTES: usize = 64 + COUNTERS_MAX * NAME_BYTES_MAX + SHARDS * COUNTERS_MAX * 8;
