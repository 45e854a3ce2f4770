//! The state that is noted of an account, and its consequences by a policy at a moment.
//!
//! Everything here is a function of its arguments. Times are microseconds since 1970.

use super::attributes::*;
use super::limits::LAST_SUCCESS_S;
use super::rules::Policy;
use super::time::{self, SECOND};
use keyway_codec::password_policy::{AccountUsability, Unusable};
use keyway_schema::{EntryAttributes, Schema};
use keyway_store::EntryRef;

/// The operational attributes of an entry that are about its password.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    pub changed: Option<u64>,
    pub locked: Option<LockedTime>,
    /// `nsAccountLock` is TRUE.
    pub disabled: bool,
    /// Failed binds, ascending.
    pub failures: Vec<u64>,
    /// Binds with the expired password.
    pub graces: Vec<u64>,
    pub reset: bool,
    pub start: Option<u64>,
    pub end: Option<u64>,
    pub last_success: Option<u64>,
}

/// `pwdAccountLockedTime`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockedTime {
    /// `000001010000Z`: a user has disabled the account.
    ForGood,
    Since(u64),
}

/// The events of an account that are not in its entry yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// A bind succeeded before the failures below.
    pub cleared: bool,
    pub failures: Vec<u64>,
    pub graces: Vec<u64>,
    pub last_success: Option<u64>,
}

impl Events {
    /// Adds events that came after these.
    pub fn append(&mut self, later: Events) {
        if later.cleared {
            self.cleared = true;
            self.failures.clear();
        }
        self.failures.extend(later.failures);
        self.graces.extend(later.graces);
        self.last_success = later.last_success.or(self.last_success);
    }
}

/// Why no client may bind as the account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// A user locked it, or the time is not right, or it was unused for too long.
    Deliberate,
    /// Too many failed.
    Failures {
        since: u64,
        /// When it ends by itself.
        until: Option<u64>,
        /// Whether a right password may still be told from a wrong one.
        told: bool,
    },
}

/// How it is with a password's age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Age {
    /// It does not expire.
    Ageless,
    /// It expires in so many seconds.
    ExpiresIn(u64),
    /// It has expired; so many binds are let through.
    Expired { grace_left: u64 },
}

/// The condition of an account at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    pub lock: Option<Lock>,
    /// The password must be changed before anything else.
    pub reset: bool,
    pub age: Age,
}

impl Account {
    /// The state that an entry has of itself.
    pub fn read(schema: &Schema, entry: &EntryRef<'_>) -> Account {
        let mut account = Account::default();
        for (name, values) in entry.attributes() {
            if is_state(name) {
                values.for_each(|value| account.take(schema, name, value));
            }
        }
        account.failures.sort_unstable();
        account
    }

    /// The state that an entry has which is being changed.
    pub fn of(schema: &Schema, attributes: &EntryAttributes) -> Account {
        let mut account = Account::default();
        for (name, values) in attributes.iter().filter(|(name, _)| is_state(name)) {
            values.iter().for_each(|value| account.take(schema, name, value));
        }
        account.failures.sort_unstable();
        account
    }

    fn take(&mut self, schema: &Schema, name: &str, value: &[u8]) {
        let time = || time::parse(schema, value);
        match name {
            CHANGED_TIME => self.changed = time(),
            // Any time of the year 0 is before there were passwords.
            LOCKED_TIME if value.starts_with(b"0000") => self.locked = Some(LockedTime::ForGood),
            LOCKED_TIME => self.locked = time().map(LockedTime::Since),
            ACCOUNT_LOCK => self.disabled = value.eq_ignore_ascii_case(b"TRUE"),
            FAILURE_TIME => self.failures.extend(time()),
            GRACE_USE_TIME => self.graces.extend(time()),
            RESET => self.reset = value.eq_ignore_ascii_case(b"TRUE"),
            START_TIME => self.start = time(),
            END_TIME => self.end = time(),
            LAST_SUCCESS => self.last_success = time(),
            _ => {}
        }
    }

    /// The account after what has happened to it.
    #[must_use]
    pub fn after(mut self, policy: &Policy, events: &Events) -> Account {
        if events.cleared {
            self.failures.clear();
            self.locked = self.locked.filter(|locked| *locked == LockedTime::ForGood);
        }
        for failure in &events.failures {
            self.fail(policy, *failure);
        }
        let new = events.graces.iter().filter(|grace| !self.graces.contains(grace));
        let new: Vec<u64> = new.copied().collect();
        self.graces.extend(new);
        self.last_success = events.last_success.or(self.last_success);
        self
    }

    /// A failure that is in the entry already does not happen twice.
    fn fail(&mut self, policy: &Policy, now: u64) {
        if self.failures.contains(&now) {
            return;
        }
        if let Some(end) = self.lapsed(policy, now) {
            self.locked = None;
            self.failures.retain(|failure| *failure >= end);
        }
        if self.locked.is_none() && policy.failure_interval_s > 0 {
            let from = now.saturating_sub(policy.failure_interval_s * SECOND);
            self.failures.retain(|failure| *failure > from);
        }
        self.failures.push(now);
        let kept = told_max(policy);
        self.failures.drain(..self.failures.len().saturating_sub(kept));
        if self.locked.is_none() && policy.locks() && self.failures.len() >= policy.failures_max {
            self.locked = Some(LockedTime::Since(now / SECOND * SECOND));
        }
    }

    /// When the lock has ended by itself, if it has.
    fn lapsed(&self, policy: &Policy, now: u64) -> Option<u64> {
        let Some(LockedTime::Since(since)) = self.locked else { return None };
        let end = end_of(policy, since)?;
        (now >= end).then_some(end)
    }

    /// Whether something is left of failed binds, so that a success has something to clear.
    pub fn has_failed(&self) -> bool {
        !self.failures.is_empty() || matches!(self.locked, Some(LockedTime::Since(_)))
    }

    /// Whether the last success that is noted is old enough to note another.
    pub fn success_is_old(&self, policy: &Policy, now: u64) -> bool {
        let exact_s = LAST_SUCCESS_S.min(policy.max_idle_s / 4);
        now >= self.last_success.unwrap_or(0).saturating_add(exact_s * SECOND)
    }

    /// The condition of the account now.
    pub fn status(&self, policy: &Policy, now: u64) -> Status {
        let lock = self.lock(policy, now);
        Status { lock, reset: self.reset && policy.must_change, age: self.age(policy, now) }
    }

    fn lock(&self, policy: &Policy, now: u64) -> Option<Lock> {
        let past = |time: Option<u64>, span_s: u64| {
            time.is_some_and(|time| span_s > 0 && now > time.saturating_add(span_s * SECOND))
        };
        if self.disabled
            || self.locked == Some(LockedTime::ForGood)
            || self.start.is_some_and(|start| now < start)
            || self.end.is_some_and(|end| now >= end)
            || past(self.last_success, policy.max_idle_s)
        {
            return Some(Lock::Deliberate);
        }
        let Some(LockedTime::Since(since)) = self.locked else { return None };
        if self.lapsed(policy, now).is_some() {
            return None;
        }
        if self.failures.is_empty() {
            return Some(Lock::Deliberate);
        }
        if !policy.locks() {
            // It was the policy that locked it, and does so no more.
            return None;
        }
        let told = self.failures.len() < told_max(policy);
        // The failure that locked it is known more exactly.
        let last = self.failures.get(policy.failures_max.saturating_sub(1)).copied();
        let exact = last.filter(|last| last / SECOND * SECOND == since).unwrap_or(since);
        Some(Lock::Failures { since: exact, until: end_of(policy, since), told })
    }

    fn age(&self, policy: &Policy, now: u64) -> Age {
        let Some(changed) = self.changed.filter(|_| policy.max_age_s > 0) else {
            return Age::Ageless;
        };
        let end = changed.saturating_add(policy.max_age_s * SECOND);
        if now < end {
            return Age::ExpiresIn((end - now).div_ceil(SECOND));
        }
        let is_over = policy.grace_expiry_s > 0 && now >= end + policy.grace_expiry_s * SECOND;
        let used = u64::try_from(self.graces.len()).unwrap_or(u64::MAX);
        let left = if is_over { 0 } else { policy.grace_max.saturating_sub(used) };
        Age::Expired { grace_left: left }
    }

    /// Writes what failures, grace and the last success have become into an entry.
    pub fn put(&self, attributes: &mut EntryAttributes) {
        put(attributes, FAILURE_TIME, self.failures.iter().map(|time| time::exact(*time)));
        put(attributes, GRACE_USE_TIME, self.graces.iter().map(|time| time::exact(*time)));
        put(attributes, LAST_SUCCESS, self.last_success.map(time::seconds));
        match self.locked {
            // As it is written there.
            Some(LockedTime::ForGood) => {}
            Some(LockedTime::Since(since)) => put(attributes, LOCKED_TIME, [time::seconds(since)]),
            None => remove(attributes, LOCKED_TIME),
        }
    }
}

/// Failures that are kept of a locked account. Until there are so many, a right password is
/// compared, so that its owner can be told; further ones would be guesses for nothing.
fn told_max(policy: &Policy) -> usize {
    2 * policy.failures_max.max(1)
}

fn end_of(policy: &Policy, since: u64) -> Option<u64> {
    let duration = policy.lockout_duration_s;
    (duration > 0).then(|| since.saturating_add(duration * SECOND))
}

impl Status {
    /// The value of the account usability control.
    pub fn usability(&self, now: u64) -> AccountUsability {
        let number = |number: u64| u32::try_from(number).unwrap_or(i32::MAX as u32);
        let expired = matches!(self.age, Age::Expired { .. });
        if self.lock.is_none() && !self.reset && !expired {
            let expires_in_s = match self.age {
                Age::ExpiresIn(seconds) => Some(number(seconds)),
                _ => None,
            };
            return AccountUsability::Available { expires_in_s };
        }
        AccountUsability::NotAvailable(Unusable {
            inactive: self.lock.is_some(),
            reset: self.reset,
            expired,
            grace_left: match self.age {
                Age::Expired { grace_left } if grace_left > 0 => Some(number(grace_left)),
                _ => None,
            },
            unlocked_in_s: match self.lock {
                Some(Lock::Failures { until: Some(until), .. }) => {
                    Some(number(until.saturating_sub(now).div_ceil(SECOND)))
                }
                _ => None,
            },
        })
    }
}
