//! What the check of a password and the policy come to: the end of a bind.

use crate::failure::Failure;
use crate::policy::{Age, Event, Events, Lock, Status, micros};
use crate::{Credentials, Directory, Subject};
use keyway_codec::message::{LdapResult, ResultCode};
use keyway_codec::password_policy::{PasswordError, PasswordPolicyResponse, PasswordWarning};
use keyway_password::{Attempt, CheckOutcome};
use std::sync::Arc;
use zeroize::Zeroizing;

/// A password that is being checked.
pub(super) struct Claim {
    pub attempt: Attempt,
    pub directory: Arc<Directory>,
    /// The entry; `None` if there is no such one.
    pub found: Option<Credentials>,
    pub password: Zeroizing<Vec<u8>>,
    /// Since when this source is known to have the right password, in microseconds since 1970.
    pub trusted_since: Option<u64>,
}

/// How a bind ended.
pub(super) struct Bound {
    pub result: LdapResult<'static>,
    /// Who it is.
    pub subject: Option<Subject>,
    /// He may do nothing else before he has changed his password.
    pub must_change: bool,
    /// What the password policy has to say.
    pub policy: PasswordPolicyResponse,
    /// Why it was refused, for the log: its client is not told.
    pub reason: Option<&'static str>,
    /// The account that this failure has locked.
    pub locked: Option<String>,
}

impl Bound {
    pub fn of(result: impl Into<LdapResult<'static>>, subject: Option<Subject>) -> Bound {
        let (must_change, policy) = (false, PasswordPolicyResponse::default());
        let result = result.into();
        Bound { result, subject, must_change, policy, reason: None, locked: None }
    }

    /// Nobody, without a word of why but in the log.
    fn refused(reason: &'static str) -> Bound {
        let bound = Bound::of(LdapResult::new(ResultCode::InvalidCredentials, ""), None);
        Bound { reason: Some(reason), ..bound }
    }

    /// The same, and why for those who ask by control: the password was right.
    fn refused_by_policy(error: PasswordError, reason: &'static str) -> Bound {
        let mut bound = Bound::refused(reason);
        bound.policy.error = Some(error);
        bound
    }
}

impl Claim {
    /// The bind's result, which does not say what was wrong, and who it is.
    pub fn end(mut self, verdict: Result<CheckOutcome, keyway_password::Error>) -> Bound {
        let verdict = match verdict {
            Ok(verdict) => verdict,
            Err(error) => return Bound::of(Failure::from(error), None),
        };
        let Some(found) = self.found.take() else {
            return Bound::refused("there is no such entry");
        };
        let now = micros(self.directory.core().now());
        let status = found.status(now);
        match verdict {
            CheckOutcome::Wrong => {
                let locked = self.note_failure(&found, &status, now);
                let reason = match is_shut(&status, self.trusted_since) {
                    true => shut_because(&status),
                    false if found.passwords.is_empty() => "the entry has no password",
                    false => "the password is wrong",
                };
                Bound { locked: locked.then(|| found.dn.clone()), ..Bound::refused(reason) }
            }
            CheckOutcome::Right { outdated } => {
                let bound = self.right(&found, &status, now);
                if bound.subject.is_some() {
                    self.upgrade(&found, outdated);
                }
                bound
            }
        }
    }

    /// A wrong password counts where that may lock the account, until nobody is told any more. Whether
    /// it has locked it.
    fn note_failure(&self, found: &Credentials, status: &Status, now: u64) -> bool {
        let counts = matches!(status.lock, None | Some(Lock::Failures { told: true, .. }));
        let (true, true, Some(id)) = (counts, found.policy.locks(), found.subject.id()) else {
            return false;
        };
        self.directory.note(id, Event::Failure(now));
        let events = Events { failures: vec![now], ..Events::default() };
        let after = found.account.clone().after(&found.policy, &events);
        status.lock.is_none() && after.status(&found.policy, now).lock.is_some()
    }

    /// What a right password is good for.
    fn right(&self, found: &Credentials, status: &Status, now: u64) -> Bound {
        if is_shut(status, self.trusted_since) {
            return Bound::refused_by_policy(PasswordError::AccountLocked, shut_because(status));
        }
        let mut bound = Bound::of(LdapResult::success(), Some(found.subject.clone()));
        if let Age::Expired { grace_left: 0 } = status.age {
            let reason = "the password is right, and has expired";
            return Bound::refused_by_policy(PasswordError::PasswordExpired, reason);
        }
        let warning_s = found.policy.expire_warning_s;
        let seconds = |seconds| u32::try_from(seconds).unwrap_or(i32::MAX as u32);
        bound.policy.warning = match status.age {
            Age::Expired { grace_left } => {
                Some(PasswordWarning::GraceLeft(seconds(grace_left - 1)))
            }
            Age::ExpiresIn(left) if left <= warning_s => {
                Some(PasswordWarning::ExpiresIn(seconds(left)))
            }
            _ => None,
        };
        if status.reset {
            bound.must_change = true;
            bound.policy.error = Some(PasswordError::ChangeAfterReset);
        }
        self.note_success(found, status, now);
        bound
    }

    /// Nothing is noted of most binds.
    fn note_success(&self, found: &Credentials, status: &Status, now: u64) {
        let account = &found.account;
        let grace = matches!(status.age, Age::Expired { .. });
        // A lock that holds all others holds after its owner was let through.
        let clears = status.lock.is_none() && account.has_failed();
        let notes = found.policy.max_idle_s > 0 && account.success_is_old(&found.policy, now);
        if let (true, Some(id)) = (grace || clears || notes, found.subject.id()) {
            self.directory.note(id, Event::Success { now, clears, grace, notes });
        }
    }

    fn upgrade(self, found: &Credentials, outdated: Option<usize>) {
        let upgrade = outdated
            .and_then(|outdated| self.directory.upgrade_password(found, outdated, self.password));
        if let Some(upgrade) = upgrade {
            tokio::spawn(upgrade);
        }
    }

    /// Looks again at an account that others may have locked while its password was derived.
    pub fn look_again(&mut self) {
        let Some(found) = self.found.as_ref().filter(|found| found.policy.locks()) else { return };
        if let Ok(Some(found)) = self.directory.credentials(&found.dn) {
            self.found = Some(found);
        }
    }
}

fn shut_because(status: &Status) -> &'static str {
    match status.lock {
        Some(Lock::Failures { .. }) => "the account is locked: too many binds have failed",
        _ => "the account is disabled, or it is not its time",
    }
}

/// Whether an account is closed to a source that is known to have its password since then, if it is.
///
/// What strangers did does not lock out who was there before them: his password is compared, and a
/// source that fails itself is a stranger (see [`Passwords::trusted_ms`](keyway_password::Passwords)).
pub(super) fn is_shut(status: &Status, trusted_since: Option<u64>) -> bool {
    match status.lock {
        None => false,
        Some(Lock::Deliberate) => true,
        Some(Lock::Failures { since, .. }) => trusted_since.is_none_or(|trusted| trusted >= since),
    }
}
