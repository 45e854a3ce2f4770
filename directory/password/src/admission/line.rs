//! Who waits to have a password checked or hashed, and who is next.
//!
//! Those whose connection has shown the right password, and new passwords, go before the others, who have
//! one turn of [`TURNS_PER_STRANGER`] nevertheless. Among either the source that had no turn for longest is
//! next; of one source, the connections with the fewest failures; of those, the name that had no
//! turn for longest; and of that, the newest, because the oldest may have given up.

use super::attempt::{Attempt, Way};
use super::brake::Brake;
use super::limits::*;
use keyway_meter::{Gauge, gauge};
use std::cmp::Reverse;
use std::collections::HashMap;

pub struct Line<J> {
    waiting: Vec<Waiting<J>>,
    /// Which turn a source or a name had last, by a part of its key.
    marks: Box<[u64]>,
    turns: u64,
    /// Turns since a stranger had one while others waited.
    since_stranger: u64,
    last_place: u64,
    /// Threads of the slow class that do nothing.
    pub idle_threads: usize,
    pub waiting_max: usize,
    meters: Meters,
}

/// The gauges that show all lines of a process.
struct Meters {
    waiting: Gauge,
    running: Gauge,
    threads: Gauge,
    /// The part of these that is ours.
    ours: [i64; 3],
}

impl Meters {
    fn new(threads: usize) -> Meters {
        let mut meters = Meters {
            waiting: gauge("password.waiting"),
            running: gauge("password.running"),
            threads: gauge("password.threads"),
            ours: [0; 3],
        };
        meters.moved(0, 0, count(threads));
        meters
    }

    fn moved(&mut self, waiting: i64, running: i64, threads: i64) {
        let gauges = [self.waiting, self.running, self.threads];
        let all = gauges.into_iter().zip([waiting, running, threads]).zip(&mut self.ours);
        for ((gauge, by), ours) in all.filter(|((_, by), _)| *by != 0) {
            gauge.move_by(by);
            *ours += by;
        }
    }
}

impl Drop for Meters {
    fn drop(&mut self) {
        let [waiting, running, threads] = self.ours;
        self.moved(-waiting, -running, -threads);
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// One that waits.
pub struct Waiting<J> {
    place: u64,
    /// `None` for a new password: the client that sets one is known.
    pub attempt: Option<Attempt>,
    /// On which way it is to begin, if the brake has not let it yet.
    pub begins: Option<Way>,
    /// It needs a thread of the slow class.
    pub needs_thread: bool,
    since_ms: u64,
    /// The time that the brake named last; it is asked again then.
    not_before_ms: u64,
    pub job: J,
}

/// The smallest is next.
type Rank = (u64, u8, u64, Reverse<u64>);

impl<J> Line<J> {
    pub fn new(idle_threads: usize, waiting_max: usize) -> Self {
        Line {
            waiting: Vec::new(),
            marks: vec![0; TURN_MARKS].into(),
            turns: 0,
            since_stranger: 0,
            last_place: 0,
            meters: Meters::new(idle_threads),
            idle_threads,
            waiting_max,
        }
    }

    /// The line is empty.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// New passwords that wait.
    pub fn hashes(&self) -> usize {
        self.waiting.iter().filter(|waiting| waiting.attempt.is_none()).count()
    }

    /// Lets one wait, and returns its place. If there is no room, the one who would be last
    /// of the source that has the most waiting goes; he is returned, too.
    pub fn enter(
        &mut self,
        attempt: Option<Attempt>,
        begins: Option<Way>,
        needs_thread: bool,
        job: J,
        now_ms: u64,
    ) -> (u64, Option<Waiting<J>>) {
        self.last_place += 1;
        let place = self.last_place;
        let (since_ms, not_before_ms) = (now_ms, 0);
        self.waiting.push(Waiting {
            place,
            attempt,
            begins,
            needs_thread,
            since_ms,
            not_before_ms,
            job,
        });
        self.meters.moved(1, 0, 0);
        // New passwords have a limit of their own.
        let over = self.waiting.len() > self.waiting_max
            && self.waiting.len() - self.hashes() > self.waiting_max;
        (place, if over { self.take_last() } else { None })
    }

    /// Gives up a place, if it is still held.
    pub fn leave(&mut self, place: u64) -> Option<Waiting<J>> {
        let at = self.waiting.iter().position(|waiting| waiting.place == place)?;
        Some(self.take(at))
    }

    /// Takes out the next one, if one may go on now.
    pub fn next(&mut self, brake: &mut Brake, now_ms: u64) -> Option<Waiting<J>> {
        let owner = self.first(brake, now_ms, true);
        let waits = owner.is_some();
        let stranger_first = !waits || self.since_stranger + 1 >= TURNS_PER_STRANGER;
        let stranger = if stranger_first { self.first(brake, now_ms, false) } else { None };
        self.since_stranger = match (stranger, waits) {
            (Some(_), _) => 0,
            (None, true) => self.since_stranger.saturating_add(1),
            (None, false) => self.since_stranger,
        };
        let next = self.take(stranger.or(owner)?);
        self.turns += 1;
        let keys = next.attempt.map_or([0, 0], |attempt| [attempt.source, attempt.name]);
        for key in keys {
            if let Some(mark) = self.marks.get_mut(mark(key)) {
                *mark = self.turns;
            }
        }
        if let (Some(attempt), Some(way)) = (&next.attempt, next.begins) {
            brake.begin(attempt, way, now_ms);
        }
        if next.needs_thread {
            self.idle_threads -= 1;
            self.meters.moved(0, 1, 0);
        }
        Some(next)
    }

    /// A thread has nothing to do any more.
    pub fn idle(&mut self) {
        self.idle_threads += 1;
        self.meters.moved(0, -1, 0);
    }

    fn take(&mut self, at: usize) -> Waiting<J> {
        self.meters.moved(-1, 0, 0);
        self.waiting.swap_remove(at)
    }

    /// Takes out one that has waited for too long.
    pub fn expired(&mut self, now_ms: u64) -> Option<Waiting<J>> {
        let late = |waiting: &Waiting<J>| {
            waiting.attempt.is_some() && now_ms.saturating_sub(waiting.since_ms) >= WAIT_MAX_MS
        };
        let at = self.waiting.iter().position(late)?;
        Some(self.take(at))
    }

    /// Who of the owners, or of the strangers, is first among those who may go on.
    fn first(&mut self, brake: &Brake, now_ms: u64, owners: bool) -> Option<usize> {
        let mut best: Option<(Rank, usize)> = None;
        for (at, waiting) in self.waiting.iter_mut().enumerate() {
            if (waiting.needs_thread && self.idle_threads == 0) || waiting.not_before_ms > now_ms {
                continue;
            }
            let rank = rank(&self.marks, waiting);
            if best.is_some_and(|(best, _)| best <= rank) || is_owner(waiting) != owners {
                continue;
            }
            if let (Some(attempt), Some(way)) = (&waiting.attempt, waiting.begins) {
                waiting.not_before_ms = brake.not_before_ms(attempt, way);
                if waiting.not_before_ms > now_ms {
                    continue;
                }
            }
            best = Some((rank, at));
        }
        best.map(|(_, at)| at)
    }

    /// Takes out who would be last of the source that has the most waiting.
    fn take_last(&mut self) -> Option<Waiting<J>> {
        let mut waiting: HashMap<u64, usize> = HashMap::new();
        let attempts = || self.waiting.iter().filter_map(|waiting| waiting.attempt);
        for attempt in attempts() {
            *waiting.entry(attempt.source).or_default() += 1;
        }
        let (source, _) = waiting.into_iter().max_by_key(|(_, waiting)| *waiting)?;
        let of_it =
            |waiting: &Waiting<J>| waiting.attempt.is_some_and(|attempt| attempt.source == source);
        let those = self.waiting.iter().enumerate().filter(|(_, waiting)| of_it(waiting));
        let (at, _) = those.max_by_key(|(_, waiting)| rank(&self.marks, waiting))?;
        Some(self.take(at))
    }
}

/// A source's right passwords make no difference here: else a wrong one would end sooner.
fn is_owner<J>(waiting: &Waiting<J>) -> bool {
    waiting.attempt.as_ref().is_none_or(Attempt::by_owner)
}

fn rank<J>(marks: &[u64], waiting: &Waiting<J>) -> Rank {
    let turn = |key| marks.get(mark(key)).copied().unwrap_or_default();
    match &waiting.attempt {
        // New passwords are hashed in the order in which they came.
        None => (turn(0), 0, 0, Reverse(u64::MAX - waiting.place)),
        Some(attempt) => (
            turn(attempt.source),
            attempt.history.failures(),
            turn(attempt.name),
            Reverse(waiting.place),
        ),
    }
}

fn mark(key: u64) -> usize {
    (key >> 32) as usize & (TURN_MARKS - 1)
}
