//! The times at which requests are due.

use crate::replay::Speed;
use std::time::{Duration, Instant};

/// When what was captured at a time is due.
#[derive(Clone, Copy)]
pub(super) struct Timetable {
    /// When the first of them is.
    pub begin: Instant,
    /// When that was captured, in nanoseconds since 1970.
    pub first_ns: u64,
    pub speed: Speed,
}

impl Timetable {
    pub fn due(&self, time_ns: u64) -> Instant {
        let since_ns = self.speed.due_ns(time_ns.saturating_sub(self.first_ns));
        self.begin + Duration::from_nanos(since_ns)
    }

    pub async fn wait_until(&self, time_ns: u64) {
        let due = self.due(time_ns);
        if due > Instant::now() {
            tokio::time::sleep_until(due.into()).await;
        }
    }
}
