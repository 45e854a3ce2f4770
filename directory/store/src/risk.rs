//! The changes that were answered and are not on the disk yet, and the waits for that: of the committer, which makes them,
//! and of the thread that brings them to the disk.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use keyway_lock::Unpoisoned;

use crate::limits::{RELAXED_GROWTH_BYTES_MAX, RELAXED_GROWTH_BYTES_MIN};

/// How much may be lost by a cut of power although it was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relaxed {
    /// Changes of entries.
    pub changes_max: u64,
    /// The age of the oldest of them.
    pub age_max: Duration,
}

/// The changes that are not on the disk yet.
#[derive(Default)]
pub(crate) struct Risk {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    limits: Option<Relaxed>,
    /// Changes that were committed since the mode began, and those of them that are on the disk.
    committed: u64,
    durable: u64,
    /// When the oldest was committed that is not on the disk.
    oldest: Option<Instant>,
    /// When the first was committed that the sync under way may not have.
    behind: Option<Instant>,
    is_syncing: bool,
    /// The committer waits for room.
    is_urgent: bool,
    /// The length of the data file, now and at the last sync: pages that a sync would let go of make it longer.
    bytes: u64,
    bytes_synced: u64,
    /// The map's length, which the file cannot exceed.
    bytes_max: u64,
    is_ending: bool,
    has_failed: bool,
}

impl State {
    fn at_risk(&self) -> u64 {
        self.committed - self.durable
    }

    /// Whether the file has become so much longer that what a sync lets go of matters.
    fn has_grown(&self) -> bool {
        let allowed = self.bytes_synced / 4;
        let allowed = allowed.clamp(RELAXED_GROWTH_BYTES_MIN, RELAXED_GROWTH_BYTES_MAX);
        self.bytes.saturating_sub(self.bytes_synced) > allowed.min(self.bytes_max / 8)
    }

    /// When the thread is to begin, so that it has done within the limits; `None` if there is nothing to do.
    fn due(&self) -> Option<Instant> {
        let (limits, oldest) = (self.limits?, self.oldest?);
        let is_half_full = self.at_risk() >= limits.changes_max.div_ceil(2);
        let is_now = self.is_urgent || is_half_full || self.has_grown();
        Some(if is_now { oldest } else { oldest + limits.age_max / 2 })
    }
}

impl Risk {
    /// Nothing is at risk, and from now on it may be, in a file of this length, which can grow to the other.
    pub fn begin(&self, limits: Relaxed, bytes: u64, bytes_max: u64) {
        self.change(|state| {
            let bytes_synced = bytes;
            let limits = Some(limits);
            *state = State { limits, bytes, bytes_synced, bytes_max, ..State::default() };
        });
    }

    /// Other limits from now on.
    pub fn limit(&self, limits: Relaxed) {
        self.change(|state| state.limits = Some(limits));
    }

    /// The thread is to end.
    pub fn end(&self) {
        self.change(|state| state.is_ending = true);
    }

    /// The disk has failed: there is nothing to wait for.
    pub fn fail(&self) {
        self.change(|state| state.has_failed = true);
    }

    /// How many changes are at risk.
    pub fn at_risk(&self) -> u64 {
        self.state().at_risk()
    }

    /// Nothing is at risk any more.
    pub fn clear(&self) {
        self.change(|state| *state = State::default());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unpoisoned()
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.changed.notify_all();
    }

    /// Waits until so many changes more are within the limits, or none is left that could be lost. For the committer.
    pub fn make_room(&self, changes: u64) {
        let mut state = self.state();
        loop {
            let Some(limits) = state.limits else { return };
            let is_old = state.oldest.is_some_and(|oldest| oldest.elapsed() > limits.age_max);
            let is_full = state.at_risk().saturating_add(changes) > limits.changes_max;
            if state.has_failed || state.at_risk() == 0 || !is_old && !is_full {
                state.is_urgent = false;
                return;
            }
            state.is_urgent = true;
            self.changed.notify_all();
            state = self.changed.wait(state).unpoisoned();
        }
    }

    /// Notes changes that were committed, and waits for the disk if they are more than may be at risk. For the committer.
    /// `bytes` is the length of the data file. How many are at risk.
    pub fn note(&self, changes: u64, bytes: u64) -> u64 {
        let mut state = self.state();
        let due = state.due();
        state.bytes = bytes;
        let Some(limits) = state.limits else { return 0 };
        state.committed += changes;
        let now = Instant::now();
        state.oldest.get_or_insert(now);
        if state.is_syncing {
            state.behind.get_or_insert(now);
        }
        // The thread is not to be woken by each commit.
        if state.due() != due {
            self.changed.notify_all();
        }
        let committed = state.committed;
        while changes > limits.changes_max && state.durable < committed && !state.has_failed {
            state.is_urgent = true;
            self.changed.notify_all();
            state = self.changed.wait(state).unpoisoned();
        }
        state.is_urgent = false;
        state.at_risk()
    }

    /// Waits until there is something to bring to the disk. How many changes that are; `None` at the end.
    pub fn begin_sync(&self) -> Option<u64> {
        let mut state = self.state();
        loop {
            if state.is_ending {
                return None;
            }
            let left = state.due().map(|due| due.saturating_duration_since(Instant::now()));
            match left {
                Some(Duration::ZERO) => break,
                Some(left) => {
                    state = self.changed.wait_timeout(state, left).unpoisoned().0;
                }
                None => state = self.changed.wait(state).unpoisoned(),
            }
        }
        state.is_syncing = true;
        state.behind = None;
        Some(state.committed)
    }

    pub fn end_sync(&self, durable: u64) {
        self.change(|state| {
            state.is_syncing = false;
            state.durable = durable;
            state.bytes_synced = state.bytes;
            state.oldest = state.behind.take();
        });
    }
}
