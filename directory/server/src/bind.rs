//! A bind with a password: what its check and the password policy come to.

use crate::access::Subject;
use crate::credentials::Credentials;
use crate::directory::Directory;
use crate::failure::{Failure, Result};
use crate::policy::{Age, Event, Events, Lock, Status, micros};
use keyway_codec::message::{LdapResult, ResultCode};
use keyway_codec::password_policy::{PasswordError, PasswordPolicyResponse, PasswordWarning};
use keyway_password::{Attempt, CheckOutcome, PasswordCheck};
use std::sync::Arc;
use zeroize::Zeroizing;

/// A password that is being checked.
pub struct PendingBind {
    /// The attempt at it.
    pub attempt: Attempt,
    directory: Arc<Directory>,
    /// The entry; `None` if there is no such one.
    found: Option<Credentials>,
    password: Zeroizing<Vec<u8>>,
    /// Since when this source is known to have the right password, in microseconds since 1970.
    trusted_since: Option<u64>,
}

/// How a bind ended.
pub struct BindOutcome {
    /// The result to answer with.
    pub result: LdapResult<'static>,
    /// Who it is.
    pub subject: Option<Subject>,
    /// It may do nothing else before it has changed its password.
    pub must_change: bool,
    /// The password policy's words.
    pub policy: PasswordPolicyResponse,
    /// Why it was refused, for the log: its client is not told.
    pub reason: Option<&'static str>,
    /// The account that this failure has locked.
    pub locked: Option<String>,
}

impl BindOutcome {
    /// A bind that needed no check: its result, and its subject.
    pub fn of(result: impl Into<LdapResult<'static>>, subject: Option<Subject>) -> BindOutcome {
        let (must_change, policy) = (false, PasswordPolicyResponse::default());
        let result = result.into();
        BindOutcome { result, subject, must_change, policy, reason: None, locked: None }
    }

    /// No user, without a word of why but in the log.
    fn refused(reason: &'static str) -> BindOutcome {
        let bound = BindOutcome::of(LdapResult::new(ResultCode::InvalidCredentials, ""), None);
        BindOutcome { reason: Some(reason), ..bound }
    }

    /// As [`BindOutcome::refused`], and why for those that ask by control: the password was right.
    fn refused_by_policy(error: PasswordError, reason: &'static str) -> BindOutcome {
        let mut bound = BindOutcome::refused(reason);
        bound.policy.error = Some(error);
        bound
    }
}

impl Directory {
    /// Begins to check the password of a bind against the entry that was found. An account that is to look as if it
    /// were not there is not compared with, which takes as long.
    ///
    /// # Errors
    /// `busy`, or the engine's.
    pub fn check_bind(
        self: &Arc<Self>,
        attempt: Attempt,
        found: Option<Credentials>,
        password: &[u8],
    ) -> Result<(PasswordCheck, PendingBind)> {
        let passwords = self.passwords();
        let password = Zeroizing::new(password.to_vec());
        let entry = found.as_ref().and_then(|found| found.subject.id());
        let now = micros(self.now());
        let trusted_since = match &found {
            Some(found) if found.policy.locks() => passwords.trusted_ms(&attempt),
            _ => None,
        };
        // Rather too late: the brake's clock goes by milliseconds.
        let trusted_since =
            trusted_since.map(|ms| now.saturating_sub(ms.saturating_sub(1) * 1_000));
        let is_there = |found: &&Credentials| {
            let status = found.status(now);
            let told = !matches!(status.lock, Some(Lock::Failures { told: false, .. }));
            told || !is_shut(&status, trusted_since)
        };
        let compared = found.as_ref().filter(is_there);
        let values = compared.map_or(&[][..], |found| &found.passwords);
        let check = passwords.check(attempt, entry.map(|id| id.0), password.clone(), values)?;
        let directory = self.clone();
        Ok((check, PendingBind { attempt, directory, found, password, trusted_since }))
    }

    /// Whether an account is closed to its own user, however it proves who it is.
    pub fn is_disabled(&self, found: &Credentials) -> bool {
        found.status(micros(self.now())).lock == Some(Lock::Deliberate)
    }
}

impl PendingBind {
    /// The bind's result, which does not say what was wrong, and its subject.
    pub fn end(mut self, verdict: Result<CheckOutcome, keyway_password::Error>) -> BindOutcome {
        let verdict = match verdict {
            Ok(verdict) => verdict,
            Err(error) => return BindOutcome::of(Failure::from(error), None),
        };
        let Some(found) = self.found.take() else {
            return BindOutcome::refused("there is no such entry");
        };
        let now = micros(self.directory.now());
        let status = found.status(now);
        match verdict {
            CheckOutcome::Wrong => {
                let locked = self.note_failure(&found, &status, now);
                let reason = match is_shut(&status, self.trusted_since) {
                    true => shut_because(&status),
                    false if found.passwords.is_empty() => "the entry has no password",
                    false => "the password is wrong",
                };
                BindOutcome {
                    locked: locked.then(|| found.dn.clone()),
                    ..BindOutcome::refused(reason)
                }
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

    /// A wrong password counts where that may lock the account, until no client is told any more. Whether
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

    /// The outcome of a right password.
    fn right(&self, found: &Credentials, status: &Status, now: u64) -> BindOutcome {
        if is_shut(status, self.trusted_since) {
            return BindOutcome::refused_by_policy(
                PasswordError::AccountLocked,
                shut_because(status),
            );
        }
        let mut bound = BindOutcome::of(LdapResult::success(), Some(found.subject.clone()));
        if let Age::Expired { grace_left: 0 } = status.age {
            let reason = "the password is right, and has expired";
            return BindOutcome::refused_by_policy(PasswordError::PasswordExpired, reason);
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

    /// Most binds leave no note.
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
/// Strangers do not lock out a user that was there before them: its password is compared, and a
/// source that fails itself is a stranger (see [`Passwords::trusted_ms`](keyway_password::Passwords)).
fn is_shut(status: &Status, trusted_since: Option<u64>) -> bool {
    match status.lock {
        None => false,
        Some(Lock::Deliberate) => true,
        Some(Lock::Failures { since, .. }) => trusted_since.is_none_or(|trusted| trusted >= since),
    }
}
