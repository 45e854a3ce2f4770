//! An attempt at a name, and how its connection has fared before.

use super::limits::CONNECTION_FAILURES_MAX;

/// How a connection has fared with the passwords it tried.
#[derive(Clone, Copy, Debug, Default)]
pub struct BindHistory {
    /// The name whose password it showed last; none if it has failed since.
    pub(super) proven: Option<u64>,
    pub(super) failures: u8,
}

impl BindHistory {
    /// Notes how an attempt ended.
    pub fn ended(&mut self, attempt: &Attempt, right: bool) {
        *self = match right {
            true => BindHistory { proven: Some(attempt.name), failures: 0 },
            false => BindHistory { proven: None, failures: self.failures.saturating_add(1) },
        };
    }

    /// Failures since the last success, as far as they make a difference.
    pub(super) fn failures(&self) -> u8 {
        self.failures.min(CONNECTION_FAILURES_MAX)
    }
}

/// A password that is to be tried. Its names and addresses are keyed hashes.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// The address, or its /64.
    pub(super) source: u64,
    /// Its /48, if it has one.
    pub(super) wide: Option<u64>,
    /// The name as it was asked for, whether or not there is such an entry.
    pub(super) name: u64,
    /// Name and source together.
    pub(super) pair: u64,
    /// Name and source as well, for what is counted only of those that may be recognised.
    pub(super) recognised: u64,
    pub(super) history: BindHistory,
}

impl Attempt {
    /// It comes over a connection that has shown this name's password.
    pub(super) fn by_owner(&self) -> bool {
        self.history.proven == Some(self.name)
    }
}

/// On which way an attempt may come out right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The password is compared with what is known at once, because its source has shown the right one
    /// lately. If that does not recognise it, it goes on as a stranger's, as if nothing had been.
    Recognised,
    /// The password is checked as all others are.
    Stranger,
}
