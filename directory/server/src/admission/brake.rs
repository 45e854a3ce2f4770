//! The brake on guessing: what has failed, what was right, and when the next attempt may begin.
//!
//! Only failures slow anybody down. A source that has shown a name's right password lately waits
//! for its own failures at this name, and for nothing that others do.

use super::Attempt;
use super::limits::*;
use super::table::Table;

pub struct Brake {
    failures: Table<Failures>,
    /// When a name's right password was shown from a source.
    proven: Table<Proof>,
}

/// Right passwords of one name from one source, none of which came long after the one before.
#[derive(Clone, Copy, Default)]
struct Proof {
    first_ms: u64,
    last_ms: u64,
}

#[derive(Clone, Copy, Default)]
struct Failures {
    count: u8,
    /// Attempts that have begun and not ended. They count as failures.
    under_way: u8,
    /// Since when the next one is being forgotten.
    since_ms: u64,
    /// When the next attempt may begin.
    next_ms: u64,
}

impl Failures {
    /// How many are not forgotten.
    fn left(&self, curve: Curve, now_ms: u64) -> u8 {
        let forgotten = now_ms.saturating_sub(self.since_ms) / curve.forget_ms;
        self.count.saturating_sub(u8::try_from(forgotten).unwrap_or(u8::MAX))
    }

    fn add(&mut self, curve: Curve, now_ms: u64) {
        let left = self.left(curve, now_ms);
        let forgotten = u64::from(self.count - left);
        self.since_ms =
            if left == 0 { now_ms } else { self.since_ms + forgotten * curve.forget_ms };
        self.count = left.saturating_add(1).min(curve.free + FAILURES_COUNTED_MAX);
    }

    fn delay_ms(&self, curve: Curve, now_ms: u64) -> u64 {
        let failures = self.left(curve, now_ms).saturating_add(self.under_way);
        match failures.checked_sub(curve.free) {
            None => 0,
            Some(beyond) => curve.most_ms.min(curve.first_ms << beyond.min(FAILURES_COUNTED_MAX)),
        }
    }
}

impl Brake {
    pub fn new() -> Self {
        Brake { failures: Table::new(FAILURE_SETS), proven: Table::new(PROVEN_SETS) }
    }

    /// Whether the name's right password was shown lately from this source.
    pub fn is_proven(&self, attempt: &Attempt, now_ms: u64) -> bool {
        self.proof(attempt, now_ms).is_some()
    }

    fn proof(&self, attempt: &Attempt, now_ms: u64) -> Option<&Proof> {
        let shown = self.proven.get(attempt.pair);
        shown.filter(|proof| now_ms.saturating_sub(proof.last_ms) < PROVEN_MS)
    }

    /// For how long this source is known to have the name's right password; `None` if it is not, or
    /// has failed at it and that is not forgotten.
    pub fn trusted_ms(&self, attempt: &Attempt, now_ms: u64) -> Option<u64> {
        let failures = self.failures.get(attempt.pair);
        let has_failed = failures.is_some_and(|record| record.left(PAIR, now_ms) > 0);
        let proof = self.proof(attempt, now_ms).filter(|_| !has_failed)?;
        Some(now_ms.saturating_sub(proof.first_ms))
    }

    /// When the attempt may begin; a time that is not later than now if at once.
    pub fn not_before_ms(&self, attempt: &Attempt, now_ms: u64) -> u64 {
        let next = |key| self.failures.get(key).map_or(0, |record| record.next_ms);
        self.applying(attempt, now_ms).map(|(key, _)| next(key)).max().unwrap_or(0)
    }

    /// Begins an attempt: until it ends, others of its kind wait as if it had failed.
    pub fn begin(&mut self, attempt: &Attempt, now_ms: u64) {
        for (key, curve) in keys(attempt, self.pair(attempt, now_ms)) {
            // What is forgotten most slowly is what is worth most.
            let worth = |record: &Failures| (record.left(PAIR, now_ms), record.since_ms);
            if let Some(record) = self.failures.take(key, worth) {
                record.under_way = record.under_way.saturating_add(1);
                record.next_ms = record.next_ms.max(now_ms + record.delay_ms(curve, now_ms));
            }
        }
    }

    /// Notes that the password was right. What this attempt kept waiting goes on.
    pub fn right(&mut self, attempt: &Attempt, now_ms: u64) {
        let held = self.applying(attempt, now_ms).count();
        for (index, (key, _)) in keys(attempt, PAIR).enumerate() {
            if let Some(record) = self.failures.get_mut(key) {
                record.under_way = record.under_way.saturating_sub(1);
                if index < held {
                    record.next_ms = record.next_ms.min(now_ms);
                }
            }
        }
        if let Some(record) = self.failures.get_mut(attempt.pair) {
            *record = Failures { under_way: record.under_way, ..Failures::default() };
        }
        let is_new = !self.is_proven(attempt, now_ms);
        if let Some(proof) = self.proven.take(attempt.pair, |proof| proof.last_ms) {
            proof.last_ms = now_ms;
            proof.first_ms = if is_new { now_ms } else { proof.first_ms };
        }
    }

    /// Notes that it was wrong, or that nobody waited for the answer.
    pub fn wrong(&mut self, attempt: &Attempt, now_ms: u64) {
        for (key, curve) in keys(attempt, self.pair(attempt, now_ms)) {
            if let Some(record) = self.failures.get_mut(key) {
                record.under_way = record.under_way.saturating_sub(1);
                record.add(curve, now_ms);
                record.next_ms = record.next_ms.max(now_ms + record.delay_ms(curve, now_ms));
            }
        }
    }

    /// What the attempt has to wait for.
    fn applying(
        &self,
        attempt: &Attempt,
        now_ms: u64,
    ) -> impl Iterator<Item = (u64, Curve)> + use<> {
        let count = match (attempt.by_owner(), self.is_proven(attempt, now_ms)) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => usize::MAX,
        };
        keys(attempt, self.pair(attempt, now_ms)).take(count)
    }

    /// How failures of this name from this source are held against it.
    fn pair(&self, attempt: &Attempt, now_ms: u64) -> Curve {
        if self.is_proven(attempt, now_ms) { PROVEN } else { PAIR }
    }
}

/// What failures of an attempt are counted under, that of name and source first.
fn keys(attempt: &Attempt, pair: Curve) -> impl Iterator<Item = (u64, Curve)> + use<> {
    let wide = attempt.wide.map(|key| (key, WIDE_SOURCE));
    [(attempt.pair, pair), (attempt.name, NAME), (attempt.source, SOURCE)].into_iter().chain(wide)
}
