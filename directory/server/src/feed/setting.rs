//! How long changes are kept.

use std::time::Duration;

/// How much of the feed is kept. Rows that a reader with a name has not read are kept for it up to
/// [`FEED_KEPT_FOR_READERS`](crate::limits::FEED_KEPT_FOR_READERS) times as long and as many.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FeedRetention {
    /// How long a change is kept.
    pub keep: Duration,
    /// The bytes of all rows together.
    pub bytes_max: u64,
}

impl Default for FeedRetention {
    fn default() -> FeedRetention {
        FeedRetention { keep: Duration::from_secs(7 * 24 * 3600), bytes_max: 1 << 30 }
    }
}
