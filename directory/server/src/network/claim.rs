//! What the check of a password and the policy come to: the end of a bind.

use crate::failure::Failure;
use crate::password::{self, Verdict};
use crate::policy::{Age, Event, Lock, Status, micros};
use crate::{Attempt, Credentials, Directory, Subject};
use keyway_codec::message::{LdapResult, ResultCode};
use keyway_codec::password_policy::{PasswordError, PasswordPolicyResponse, PasswordWarning};
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
}

impl Bound {
    pub fn of(result: impl Into<LdapResult<'static>>, subject: Option<Subject>) -> Bound {
        let (must_change, policy) = (false, PasswordPolicyResponse::default());
        Bound { result: result.into(), subject, must_change, policy }
    }

    /// Nobody, without a word of why.
    fn refused() -> Bound {
        Bound::of(LdapResult::new(ResultCode::InvalidCredentials, ""), None)
    }

    /// The same, and why for those who ask by control: the password was right.
    fn refused_by_policy(error: PasswordError) -> Bound {
        let mut bound = Bound::refused();
        bound.policy.error = Some(error);
        bound
    }
}

impl Claim {
    /// The bind's result, which does not say what was wrong, and who it is.
    pub fn end(mut self, verdict: Result<Verdict, password::Error>) -> Bound {
        let verdict = match verdict {
            Ok(verdict) => verdict,
            Err(error) => return Bound::of(Failure::from(error), None),
        };
        let Some(found) = self.found.take() else { return Bound::refused() };
        let now = micros(self.directory.core().now());
        let status = found.status(now);
        match verdict {
            Verdict::Wrong => {
                self.note_failure(&found, &status, now);
                Bound::refused()
            }
            Verdict::Right { outdated } => {
                let bound = self.right(&found, &status, now);
                if bound.subject.is_some() {
                    self.upgrade(&found, outdated);
                }
                bound
            }
        }
    }

    /// A wrong password counts where that may lock the account, until nobody is told any more.
    fn note_failure(&self, found: &Credentials, status: &Status, now: u64) {
        let counts = matches!(status.lock, None | Some(Lock::Failures { told: true, .. }));
        if let (true, true, Some(id)) = (counts, found.policy.locks(), found.subject.id()) {
            self.directory.note(id, Event::Failure(now));
        }
    }

    /// What a right password is good for.
    fn right(&self, found: &Credentials, status: &Status, now: u64) -> Bound {
        if is_shut(status, self.trusted_since) {
            return Bound::refused_by_policy(PasswordError::AccountLocked);
        }
        let mut bound = Bound::of(LdapResult::success(), Some(found.subject.clone()));
        if let Age::Expired { grace_left: 0 } = status.age {
            return Bound::refused_by_policy(PasswordError::PasswordExpired);
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

/// Whether an account is closed to a source that is known to have its password since then, if it is.
///
/// What strangers did does not lock out who was there before them: his password is compared, and a
/// source that fails itself is a stranger (see [`Passwords::trusted_ms`](crate::password::Passwords)).
pub(super) fn is_shut(status: &Status, trusted_since: Option<u64>) -> bool {
    match status.lock {
        None => false,
        Some(Lock::Deliberate) => true,
        Some(Lock::Failures { since, .. }) => trusted_since.is_none_or(|trusted| trusted >= since),
    }
}
