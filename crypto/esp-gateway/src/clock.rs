//! The gateway's clock: it never goes back, and knows how long ago a time of day was.

use keyway_esp::Time;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A clock that was set by the system's when it was made.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// What it showed when it was made: time since 1970.
    set: Duration,
    made: Instant,
}

impl Clock {
    /// Sets one.
    pub fn set() -> Clock {
        let set = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock { set, made: Instant::now() }
    }

    /// The time that it shows: since 1970, unless the system's clock was set since.
    pub fn shows(self) -> Duration {
        self.set + self.made.elapsed()
    }

    /// That, as security associations count it.
    pub fn now(self) -> Time {
        time(self.shows())
    }
}

/// A time since 1970, as security associations count it.
pub fn time(since_1970: Duration) -> Time {
    Time(u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX))
}
