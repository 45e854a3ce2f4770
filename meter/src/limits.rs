//! The bounds of the page; all of it is part of the page's layout.

/// Counters a page can name; a power of two. Those that come later share the one named `overflow`.
pub const COUNTERS_MAX: usize = 4096;

/// Shards of a page: one for each counting thread, and the last for all threads beyond that.
pub const SHARDS: usize = 64;

/// Histograms a page can name; a power of two. Those that come later share the one named
/// `overflow`.
pub const HISTOGRAMS_MAX: usize = 512;

/// Buckets of a histogram: values below 8 have one each, then there are 8 to an octave, and the
/// last takes all from 2^41 - 2^37 on (36 minutes, if they are nanoseconds).
pub const HISTOGRAM_BUCKETS: usize = 312;

/// Places that a histogram of every request has in a page, among which the threads are shared out.
pub const HISTOGRAM_STRIPES: usize = 8;

/// Longest name of a counter or histogram, in bytes.
pub const NAME_BYTES_MAX: usize = 128;

/// Size of a page, in bytes (3.8 MiB): a header of 128, the counters' names and shards, the
/// histograms' names and themselves, each 64 bytes and its buckets.
pub const PAGE_BYTES: usize = 128
    + COUNTERS_MAX * NAME_BYTES_MAX
    + SHARDS * COUNTERS_MAX * 8
    + HISTOGRAMS_MAX * NAME_BYTES_MAX
    + HISTOGRAMS_MAX * (64 + HISTOGRAM_BUCKETS * 8);
