//! The refusals that get a line in the audit log: those of each user while they are few, and all
//! together.
//!
//! A user, and all users together, have so many lines in hand and get another each time that some
//! seconds have gone by. A refusal without a line is counted, and the count has a line of its own
//! once a minute at most.

use crate::limits::{
    AUDIT_REFUSALS, AUDIT_REFUSALS_ALL, AUDIT_REFUSALS_ALL_S, AUDIT_REFUSALS_S, AUDIT_USERS_MAX,
};
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

#[derive(Default)]
pub(super) struct Refusals {
    all: Allowance,
    users: BTreeMap<u32, Allowance>,
    /// The allowance that all further users share.
    others: Allowance,
}

/// How many refusals have no line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unwritten {
    /// The refused user; none if they were several.
    pub uid: Option<u32>,
    pub count: u64,
    pub since: SystemTime,
}

#[derive(Default)]
struct Allowance {
    /// Lines that were used and not made up for.
    used: u32,
    /// Up to when they were made up for.
    at: Option<SystemTime>,
    unwritten: u64,
    /// Since when there are any, or the last sum.
    since: Option<SystemTime>,
}

impl Allowance {
    fn refill(&mut self, every_s: u64, now: SystemTime) {
        let at = *self.at.get_or_insert(now);
        // A clock that was set back makes nothing up.
        let Ok(gone) = now.duration_since(at) else {
            self.at = Some(now);
            return;
        };
        let more = gone.as_secs() / every_s;
        self.used = self.used.saturating_sub(u32::try_from(more).unwrap_or(u32::MAX));
        self.at = Some(at + Duration::from_secs(more * every_s));
    }

    /// Takes the count, if it is old enough or nothing has come for as long.
    fn sum(&mut self, uid: Option<u32>, now: SystemTime) -> Option<Unwritten> {
        let since = self.since?;
        let is_old = now.duration_since(since).is_ok_and(|it| it.as_secs() >= AUDIT_REFUSALS_S);
        if self.unwritten == 0 || !is_old {
            return None;
        }
        self.since = None;
        Some(Unwritten { uid, count: std::mem::take(&mut self.unwritten), since })
    }
}

impl Refusals {
    /// One came. Says whether it gets a line, and what else is to be written first.
    pub fn came(&mut self, uid: u32, now: SystemTime) -> (bool, Option<Unwritten>) {
        if !self.users.contains_key(&uid) && self.users.len() >= AUDIT_USERS_MAX {
            // A user without a refusal for long begins anew.
            self.users.retain(|_, it| {
                it.refill(AUDIT_REFUSALS_S, now);
                it.used > 0 || it.unwritten > 0
            });
        }
        let is_known = self.users.contains_key(&uid) || self.users.len() < AUDIT_USERS_MAX;
        let (whose, its) = match is_known {
            true => (Some(uid), self.users.entry(uid).or_default()),
            false => (None, &mut self.others),
        };
        its.refill(AUDIT_REFUSALS_S, now);
        self.all.refill(AUDIT_REFUSALS_ALL_S, now);
        let sum = its.sum(whose, now);
        let may = its.used < AUDIT_REFUSALS && self.all.used < AUDIT_REFUSALS_ALL;
        if may {
            its.used += 1;
            self.all.used += 1;
        } else {
            its.unwritten += 1;
            its.since.get_or_insert(now);
        }
        (may, sum)
    }

    /// The counts that are to be written now.
    pub fn due(&mut self, now: SystemTime) -> Vec<Unwritten> {
        let users = self.users.iter_mut().map(|(uid, its)| (Some(*uid), its));
        let all = users.chain([(None, &mut self.others)]);
        all.filter_map(|(uid, its)| its.sum(uid, now)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::UNIX_EPOCH;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn a_flood_has_few_lines_and_a_count() {
        let mut refusals = Refusals::default();
        let written = (0..100_000).filter(|_| refusals.came(7, at(100)).0).count();
        assert_eq!(written, AUDIT_REFUSALS as usize);
        // Another user still has an allowance.
        assert!(refusals.came(8, at(100)).0);
        assert_eq!(refusals.due(at(110)), []);
        let sum = Unwritten { uid: Some(7), count: 100_000 - written as u64, since: at(100) };
        assert_eq!(refusals.due(at(100 + AUDIT_REFUSALS_S)), [sum]);
        assert_eq!(refusals.due(at(100 + 2 * AUDIT_REFUSALS_S)), []);
        assert!(refusals.came(7, at(100 + AUDIT_REFUSALS_S)).0);
        // A clock that is set back opens nothing.
        assert!(!refusals.came(7, at(1)).0);
    }

    #[test]
    fn many_users_share_what_all_have() {
        let mut refusals = Refusals::default();
        let came = (0..100_000).filter(|uid| refusals.came(*uid, at(100)).0).count();
        assert_eq!(came, AUDIT_REFUSALS_ALL as usize);
        assert!(refusals.users.len() <= AUDIT_USERS_MAX);
        let counted: u64 = refusals.due(at(1_000)).iter().map(|it| it.count).sum();
        assert_eq!(counted + came as u64, 100_000);
    }
}
