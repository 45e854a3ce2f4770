//! The slowest operations of the last minutes, kept so that they can be looked at now.
//!
//! Each minute has its own list, so that an old one does not keep newer ones out. An operation that is not
//! among the slowest of its minute costs two loads.

use crate::limits::{SLOWEST_MAX, SLOWEST_MINUTES};
use keyway_lock::Unpoisoned;
use keyway_server::log::stages::FIELDS;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

/// An operation, without any value that a client has sent but the name of its entry.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    /// When it was answered, or looked at.
    pub at: SystemTime,
    pub connection: u64,
    pub id: u32,
    pub from: String,
    pub who: Option<String>,
    pub operation: &'static str,
    pub dn: String,
    pub result: Option<u32>,
    pub total_us: u64,
    pub stages_us: [u64; FIELDS.len()],
    pub search: Option<Searched>,
}

/// The facts of a search.
#[derive(Clone, Debug)]
pub(crate) struct Searched {
    pub scope: &'static str,
    pub filter: String,
    pub candidates: u64,
    pub returned: u32,
    /// Where candidates came from.
    pub access_path: String,
}

/// The list of all connections.
pub(crate) struct Slowest {
    /// Since when [`Self::ends_us`] counts.
    start: Instant,
    /// The time that an operation must take to be among those of this minute, in microseconds.
    floor_us: AtomicU64,
    /// When the minute is over, in microseconds since the start.
    ends_us: AtomicU64,
    minutes: Mutex<VecDeque<Minute>>,
}

/// The slowest operations of a minute, in no order.
struct Minute {
    began: Instant,
    /// Each with the time at which it ended.
    slowest: Vec<(Instant, Arc<Operation>)>,
}

const MINUTE: Duration = Duration::from_secs(60);

impl Slowest {
    /// An empty list, by a clock that shows `start` now.
    pub fn new(start: Instant) -> Slowest {
        let (floor_us, ends_us) = Default::default();
        Slowest { start, floor_us, ends_us, minutes: Mutex::default() }
    }

    /// Whether an operation that has ended now is to be noted; one that took no time never is but as the first.
    #[inline]
    pub fn wants(&self, total_us: u64, now: Instant) -> bool {
        total_us > self.floor_us.load(Ordering::Relaxed)
            || self.micros(now) >= self.ends_us.load(Ordering::Relaxed)
    }

    /// Notes one that has ended now.
    pub fn note(&self, now: Instant, operation: Operation) {
        let mut minutes = self.lock();
        self.turn(&mut minutes, now);
        let Some(Minute { slowest, .. }) = minutes.back_mut() else { return };
        slowest.push((now, Arc::new(operation)));
        if slowest.len() > SLOWEST_MAX {
            let fastest = slowest.iter().enumerate().min_by_key(|(_, (_, one))| one.total_us);
            if let Some((at, _)) = fastest {
                slowest.swap_remove(at);
            }
        }
        if slowest.len() == SLOWEST_MAX {
            let least = slowest.iter().map(|(_, one)| one.total_us).min();
            self.floor_us.store(least.unwrap_or_default(), Ordering::Relaxed);
        }
    }

    /// Begins another minute if the last one is over.
    fn turn(&self, minutes: &mut VecDeque<Minute>, now: Instant) {
        let is_over = |minute: &Minute| now.saturating_duration_since(minute.began) >= MINUTE;
        if minutes.back().is_some_and(|minute| !is_over(minute)) {
            return;
        }
        minutes.push_back(Minute { began: now, slowest: Vec::new() });
        if minutes.len() > SLOWEST_MINUTES {
            minutes.pop_front();
        }
        self.floor_us.store(0, Ordering::Relaxed);
        self.ends_us.store(self.micros(now + MINUTE), Ordering::Relaxed);
    }

    /// Those of the last minutes, the slowest first.
    pub fn all(&self, now: Instant) -> Vec<Arc<Operation>> {
        let oldest = now.checked_sub(MINUTE * SLOWEST_MINUTES as u32);
        let is_recent = |at: Instant| oldest.is_none_or(|oldest| at >= oldest);
        let minutes = self.lock();
        let all =
            minutes.iter().flat_map(|minute| &minute.slowest).filter(|(at, _)| is_recent(*at));
        let mut all: Vec<_> = all.map(|(_, one)| one.clone()).collect();
        drop(minutes);
        all.sort_by_key(|one| std::cmp::Reverse(one.total_us));
        all
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Minute>> {
        self.minutes.lock().unpoisoned()
    }

    fn micros(&self, time: Instant) -> u64 {
        let since = time.saturating_duration_since(self.start);
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn operation(total_us: u64) -> Operation {
        Operation {
            at: SystemTime::UNIX_EPOCH,
            connection: 1,
            id: 1,
            from: String::new(),
            who: None,
            operation: "search",
            dn: String::new(),
            result: Some(0),
            total_us,
            stages_us: Default::default(),
            search: None,
        }
    }

    proptest! {
        /// For each minute it has the operations that sorting all of that minute gives.
        #[test]
        fn it_has_the_slowest_of_each_minute(
            times in prop::collection::vec((0_u64..90_000, 1_u64..1_000), 0..2_000),
        ) {
            let start = Instant::now();
            let slowest = Slowest::new(start);
            let mut now = start + MINUTE * 60;
            let (mut began, mut minutes) = (None, Vec::<Vec<u64>>::new());
            for (pause_ms, total_us) in times {
                now += Duration::from_millis(pause_ms / 100);
                let is_over = |began: Instant| now >= began + MINUTE;
                if began.is_none_or(is_over) {
                    (began, minutes) = (Some(now), [minutes, vec![Vec::new()]].concat());
                }
                minutes.last_mut().unwrap().push(total_us);
                if slowest.wants(total_us, now) {
                    slowest.note(now, operation(total_us));
                }
            }
            let mut expected: Vec<u64> = Vec::new();
            for minute in minutes.iter_mut().rev().take(SLOWEST_MINUTES) {
                minute.sort_by_key(|us| std::cmp::Reverse(*us));
                expected.extend(minute.iter().take(SLOWEST_MAX));
            }
            expected.sort_by_key(|us| std::cmp::Reverse(*us));
            // Operations that are too old are not shown; at the beginning none was.
            let all: Vec<u64> = slowest.all(start + MINUTE * 60).iter().map(|it| it.total_us).collect();
            prop_assert_eq!(all, expected);
        }
    }
}
