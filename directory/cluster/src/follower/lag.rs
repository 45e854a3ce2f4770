//! How far a follower is behind.

use std::collections::VecDeque;
use std::time::Duration;

/// How often a writer sends a heartbeat.
pub const HEARTBEAT_EVERY: Duration = Duration::from_secs(2);

/// Positions of the writer that are remembered with their times.
const HEADS_LIMIT: usize = 256;

/// How far a follower is behind.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Lag {
    /// Positions that it knows of and has not applied.
    pub changes: u64,
    /// For how long its contents have been older than the writer's, at most; `None` if it has heard of no writer yet.
    pub time: Option<Duration>,
}

/// The writer's last positions, and when they came to be known.
#[derive(Clone, Default, Debug)]
pub struct Heads {
    waiting: VecDeque<(u64, Duration)>,
    last: u64,
    heard: Option<Duration>,
}

impl Heads {
    /// The writer's last position is this one.
    pub fn at(&mut self, head: u64, applied: u64, now: Duration) {
        self.heard = Some(now);
        self.last = head.max(applied);
        if head > applied && self.waiting.back().is_none_or(|(last, _)| *last < head) {
            let is_full = self.waiting.len() >= HEADS_LIMIT;
            match self.waiting.back_mut() {
                // Too old a time for the later ones: the lag is no greater than it says.
                Some(last) if is_full => last.0 = head,
                _ => self.waiting.push_back((head, now)),
            }
        }
    }

    /// All up to this position is applied.
    pub fn applied(&mut self, position: u64) {
        while self.waiting.front().is_some_and(|(head, _)| *head <= position) {
            self.waiting.pop_front();
        }
    }

    /// There is no connection; another writer may have a lower position.
    pub fn lost(&mut self) {
        self.waiting.truncate(1);
    }

    /// How far a follower is behind that has applied this.
    pub fn lag(&self, applied: u64, is_following: bool, now: Duration) -> Lag {
        let since = |at: &Duration| now.saturating_sub(*at);
        // A writer without changes is heard at each heartbeat.
        let is_late = |silent: &Duration| !is_following || *silent > HEARTBEAT_EVERY * 3 / 2;
        let silent = self.heard.as_ref().map(since).filter(is_late);
        let behind = self.waiting.front().map(|(_, at)| since(at));
        let time = self.heard.map(|_| behind.max(silent).unwrap_or_default());
        Lag { changes: self.last.saturating_sub(applied), time }
    }
}
