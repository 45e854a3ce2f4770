//! The clocks that the directory is given.

use std::time::{Instant, SystemTime};

/// Two clocks: one for what is written, one for what is measured.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Reads the wall clock, for stamps on entries and lines of logs, and for rules about dates. An operator
    /// or NTP may step it in either direction.
    pub wall: fn() -> SystemTime,
    /// Reads a clock that never steps, for time limits, stopwatches and idle times.
    pub monotonic: fn() -> Instant,
}

impl Default for Clock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the machine's clocks, where no others are given"
    )]
    fn default() -> Self {
        Clock { wall: SystemTime::now, monotonic: Instant::now }
    }
}
