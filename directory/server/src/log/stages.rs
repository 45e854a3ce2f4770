//! Where an operation's time goes: a timer whose laps are the operation's stages.
//!
//! Work that is done on the spot is timed where it is done. Work that waits for other threads has its timer
//! with it as a task-local value, so that the code that ends a stage can say so.

use keyway_lock::Unpoisoned;
use keyway_password::Lap;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The stages that the time goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Waiting: behind other requests, for the turn of a password check, for the committer.
    Queue,
    /// Understanding the request, rights and the choice of indexes among it.
    Plan,
    /// Reading entries and making answers of them; of a change, its transaction and sync.
    Store,
    /// Passwords.
    Crypto,
    /// Waiting until the client takes answers; of what had to wait, the way back to the connection.
    Write,
}

/// The stages' fields, in the order of [`Stage`].
pub const FIELDS: [&str; 5] = ["queue_us", "plan_us", "store_us", "crypto_us", "write_us"];

/// A timer of stages.
#[derive(Clone, Copy, Debug)]
pub struct Timer {
    started: Instant,
    last: Instant,
    spent: [Duration; FIELDS.len()],
}

impl Timer {
    /// Starts one.
    pub fn start(at: Instant) -> Timer {
        Timer { started: at, last: at, spent: Default::default() }
    }

    /// Counts the time since the last lap for this stage.
    pub fn lap(&mut self, stage: Stage, now: Instant) {
        if let Some(spent) = self.spent.get_mut(stage as usize) {
            *spent += now.saturating_duration_since(self.last);
        }
        self.last = now;
    }

    /// When it was started.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// Nanoseconds from the start to the last lap.
    pub fn total_ns(&self) -> Option<u64> {
        self.last.saturating_duration_since(self.started).as_nanos().try_into().ok()
    }

    /// Microseconds from the start to the last lap.
    pub fn total_us(&self) -> Option<u64> {
        self.last.saturating_duration_since(self.started).as_micros().try_into().ok()
    }

    /// Microseconds of each stage.
    pub fn stages_us(&self) -> [u64; FIELDS.len()] {
        self.spent.map(|spent| spent.as_micros().try_into().unwrap_or(u64::MAX))
    }
}

tokio::task_local! {
    static CURRENT: Arc<SharedTimer>;
}

/// The timer of an operation that several threads have a part in.
pub struct SharedTimer {
    clock: fn() -> Instant,
    timer: Mutex<Timer>,
}

impl SharedTimer {
    /// Goes on with a timer, by this clock.
    pub fn new(clock: fn() -> Instant, timer: Timer) -> Arc<SharedTimer> {
        Arc::new(SharedTimer { clock, timer: Mutex::new(timer) })
    }

    /// Since the last lap, the operation was in this stage.
    pub fn lap(&self, stage: Stage) {
        let now = (self.clock)();
        self.timer.lock().unpoisoned().lap(stage, now);
    }

    /// How it stands.
    pub fn timer(&self) -> Timer {
        *self.timer.lock().unpoisoned()
    }

    /// Does something that is a part of the operation.
    pub fn within<T>(self: &Arc<Self>, work: impl FnOnce() -> T) -> T {
        CURRENT.sync_scope(self.clone(), work)
    }

    /// Does a part of the operation that takes its time.
    pub fn around<T>(self: Arc<Self>, work: impl Future<Output = T>) -> impl Future<Output = T> {
        CURRENT.scope(self, work)
    }
}

/// The timer of the operation that the caller does a part of; `None` if none is timed.
pub fn current() -> Option<Arc<SharedTimer>> {
    CURRENT.try_with(Arc::clone).ok()
}

/// Since the last lap, the operation that the caller does a part of was in this stage.
pub fn lap(stage: Stage) {
    // There is none where the operation is not timed.
    let _ = CURRENT.try_with(|timer| timer.lap(stage));
}

/// As [`lap`], of what a password waits for.
pub(crate) fn lap_of_password(spent: Lap) {
    lap(match spent {
        Lap::Waiting => Stage::Queue,
        Lap::Working => Stage::Crypto,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Clock;

    #[test]
    fn stages_add_up_to_the_whole() {
        let start = (Clock::default().monotonic)();
        let at = |us| start + Duration::from_micros(us);
        let mut timer = Timer::start(at(1_000));
        let laps = [(Stage::Queue, 5), (Stage::Plan, 10), (Stage::Store, 30), (Stage::Write, 60)];
        let mut now = 1_000;
        for (stage, us) in laps.into_iter().chain([(Stage::Store, 40)]) {
            now += us;
            timer.lap(stage, at(now));
        }
        assert_eq!(timer.stages_us(), [5, 10, 70, 0, 60]);
        assert_eq!(timer.total_us(), Some(145));
    }
}
