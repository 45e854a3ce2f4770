//! The brake on guessing: what has failed, what was right, and when the next attempt may begin.
//!
//! Only failures cost time. An attempt has two ways to come out right. As a stranger's it waits
//! for all failures that concern it, and that way is the same for every name: so the time of a wrong
//! password says nothing of the name. If its source has shown the name's right password lately, it may
//! be recognised before, which waits for failures at this name from this source only. Nothing that
//! happens on the second way, nor a right password on either, changes when a wrong one is answered.

use super::attempt::{Attempt, Way};
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
    /// has failed at it since and that is not forgotten.
    pub fn trusted_ms(&self, attempt: &Attempt, now_ms: u64) -> Option<u64> {
        let failures = self.failures.get(attempt.recognised);
        let has_failed = failures.is_some_and(|record| record.left(RECOGNISED, now_ms) > 0);
        let proof = self.proof(attempt, now_ms).filter(|_| !has_failed)?;
        Some(now_ms.saturating_sub(proof.first_ms))
    }

    /// When the attempt may begin; a time that is not later than now if at once.
    pub fn not_before_ms(&self, attempt: &Attempt, way: Way) -> u64 {
        if waits_for_nothing(attempt, way) {
            return 0;
        }
        let next = |key| self.failures.get(key).map_or(0, |record| record.next_ms);
        keys(attempt, way).map(|(key, _)| next(key)).max().unwrap_or(0)
    }

    /// Begins an attempt: until it ends, others of its kind wait as if it had failed.
    pub fn begin(&mut self, attempt: &Attempt, way: Way, now_ms: u64) {
        for (key, curve) in keys(attempt, way) {
            // The record that is forgotten most slowly is worth most.
            let worth = |record: &Failures| (record.left(PAIR, now_ms), record.since_ms);
            if let Some(record) = self.failures.take(key, worth) {
                record.under_way = record.under_way.saturating_add(1);
                record.next_ms = record.next_ms.max(now_ms + record.delay_ms(curve, now_ms));
            }
        }
    }

    /// Notes that the password was right. Attempts that this one kept waiting go on.
    pub fn right(&mut self, attempt: &Attempt, way: Way, now_ms: u64) {
        let held = !waits_for_nothing(attempt, way);
        for (key, _) in keys(attempt, way) {
            if let Some(record) = self.failures.get_mut(key) {
                record.under_way = record.under_way.saturating_sub(1);
                if held {
                    record.next_ms = record.next_ms.min(now_ms);
                }
            }
        }
        if let Some(record) = self.failures.get_mut(attempt.recognised) {
            *record = Failures { under_way: record.under_way, ..Failures::default() };
        }
        let is_new = !self.is_proven(attempt, now_ms);
        if let Some(proof) = self.proven.take(attempt.pair, |proof| proof.last_ms) {
            proof.last_ms = now_ms;
            proof.first_ms = if is_new { now_ms } else { proof.first_ms };
        }
    }

    /// Notes that it was wrong, or that its client did not wait for the answer.
    pub fn wrong(&mut self, attempt: &Attempt, way: Way, now_ms: u64) {
        for (key, curve) in keys(attempt, way) {
            if let Some(record) = self.failures.get_mut(key) {
                record.under_way = record.under_way.saturating_sub(1);
                record.add(curve, now_ms);
                record.next_ms = record.next_ms.max(now_ms + record.delay_ms(curve, now_ms));
            }
        }
    }
}

/// Whether others' failures do not hold it up: its connection has shown the password.
fn waits_for_nothing(attempt: &Attempt, way: Way) -> bool {
    way == Way::Stranger && attempt.by_owner()
}

/// The keys that failures of an attempt are counted under.
fn keys(attempt: &Attempt, way: Way) -> impl Iterator<Item = (u64, Curve)> + use<> {
    let stranger = [(attempt.pair, PAIR), (attempt.name, NAME), (attempt.source, SOURCE)];
    let wide = attempt.wide.map(|key| (key, WIDE_SOURCE));
    let (recognised, stranger) = match way {
        Way::Recognised => (Some((attempt.recognised, RECOGNISED)), None),
        Way::Stranger => (None, Some(stranger.into_iter().chain(wide))),
    };
    recognised.into_iter().chain(stranger.into_iter().flatten())
}
