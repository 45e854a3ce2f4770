//! Every bound of this crate, named, with its unit.

/// Longest message, and longest part of a MAC beside it, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 1 << 30;
/// Most requests that are encrypted before the first of them is authenticated: so many that lanes
/// seldom run empty, so few that small requests are still in the cache.
pub const MIXED_JOBS_MAX: usize = 64;
/// Most packets of a batch that are worked on together before the next are looked at: their
/// headers, tags and samples stay in the cache, and the next keys are known.
pub const PACKETS_AT_ONCE: usize = 64;
