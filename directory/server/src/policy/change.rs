//! A password that is changed: who may, what the new one must be, and what the entry says after it.

use super::account::{Account, LockedTime};
use super::attributes::*;
use super::limits::HISTORY_MAX;
use super::rules::Policy;
use super::time::{self, SECOND};
use super::{history, quality};
use crate::access::Subject;
use crate::failure::{Failure, Result};
use crate::naming::NamingContext;
use crate::state::Snapshot;
use keyway_codec::message::ResultCode;
use keyway_codec::password_policy::PasswordError;
use keyway_schema::{EntryAttributes, base};
use keyway_store::{EntryId, EntryRef, View};
use std::sync::Arc;

/// A change of the password of an entry that there is.
pub(crate) struct PasswordChange<'t> {
    entry: EntryRef<'t>,
    /// The subject that asks for it is the entry.
    is_own: bool,
    policy: Arc<Policy>,
}

impl<'t> PasswordChange<'t> {
    /// A change that the policy has a say in; `None` for one by the administrator, or of one of the
    /// server's own entries.
    pub fn of(
        snapshot: &Snapshot,
        view: View<'_>,
        context: &NamingContext,
        subject: &Subject,
        (id, entry): (EntryId, EntryRef<'t>),
    ) -> Result<Option<PasswordChange<'t>>> {
        if subject.is_administrator() || context.is_system {
            return Ok(None);
        }
        let policy = snapshot.shared.policies.of(snapshot, view, None, subentry(&entry))?;
        let is_own = subject.id() == Some(id);
        Ok(Some(PasswordChange { entry, is_own, policy }))
    }

    /// Whether it may be changed at a time. `gave_old` says whether the old password was given.
    ///
    /// # Errors
    /// `insufficientAccessRights` or `constraintViolation`, and which of the policy's errors it is.
    pub fn allow(&self, snapshot: &Snapshot, gave_old: bool, now: u64) -> Result<()> {
        use PasswordError::*;
        let denied = ResultCode::InsufficientAccessRights;
        let policy = &*self.policy;
        if !self.is_own {
            return Ok(());
        }
        if !policy.allow_user_change {
            let why = "the password policy lets no user change their own password";
            return Err(Failure::policy(denied, PasswordModNotAllowed, why));
        }
        if policy.safe_modify && !gave_old {
            let why = "the password policy wants the old password with the new one";
            return Err(Failure::policy(denied, MustSupplyOldPassword, why));
        }
        if policy.min_age_s == 0 {
            return Ok(());
        }
        let account = Account::read(&snapshot.schema, &self.entry);
        let changed = account.changed.unwrap_or(0);
        if account.reset || now >= changed.saturating_add(policy.min_age_s * SECOND) {
            return Ok(());
        }
        let why = "the password was changed too short a time ago";
        Err(Failure::policy(ResultCode::ConstraintViolation, PasswordTooYoung, why))
    }

    /// Whether a password is good enough.
    ///
    /// # Errors
    /// As [`quality::check`].
    pub fn check_quality(&self, password: &[u8]) -> Result<()> {
        let names = quality::NAMES.iter().flat_map(|name| self.entry.values(name));
        quality::check(&self.policy, password, names)
    }

    /// The stored values that a new password must not be that of.
    pub fn earlier(&self) -> Vec<Vec<u8>> {
        if self.policy.in_history == 0 {
            return Vec::new();
        }
        let history = self.entry.values(HISTORY).map(<[u8]>::to_vec).collect();
        let history = history::newest(history, self.policy.in_history);
        let earlier = history.iter().filter_map(|value| history::stored(value));
        let all = self.entry.values(USER_PASSWORD).chain(earlier);
        all.map(<[u8]>::to_vec).collect()
    }
}

/// Whether a password of a new entry is good enough.
///
/// # Errors
/// As [`quality::check`].
pub(crate) fn check_new(
    policy: &Policy,
    password: &[u8],
    attributes: &EntryAttributes,
) -> Result<()> {
    let named = |name: &str| quality::NAMES.contains(&base(name));
    let names = attributes.iter().filter(|(name, _)| named(name));
    let names = names.flat_map(|(_, values)| values).map(Vec::as_slice);
    quality::check(policy, password, names)
}

/// The refusal of a new password that the account had before.
pub(crate) fn in_history() -> Failure {
    let why = "this password was used before";
    Failure::policy(ResultCode::ConstraintViolation, PasswordError::PasswordInHistory, why)
}

/// The account attributes of an entry after a change.
pub(crate) struct Upkeep<'a> {
    pub snapshot: &'a Snapshot,
    pub view: View<'a>,
    pub context: &'a NamingContext,
    pub subject: &'a Subject,
    pub id: EntryId,
    /// Attributes that the request itself changed.
    pub edited: &'a [&'a str],
    /// When, in microseconds since 1970.
    pub now: u64,
}

impl Upkeep<'_> {
    /// Brings the attributes of the account in line with the others.
    ///
    /// # Errors
    /// The store's.
    pub fn carry_out(&self, old: &EntryRef<'_>, new: &mut EntryAttributes) -> Result<()> {
        if old.values(USER_PASSWORD).ne(values(new, USER_PASSWORD)) {
            return self.changed(old, new);
        }
        // A user who unlocks an account does not want the next wrong password to lock it again.
        if old.has(LOCKED_TIME) && values(new, LOCKED_TIME).next().is_none() {
            remove(new, FAILURE_TIME);
            self.snapshot.shared.policies.pending.forget(self.id);
        }
        Ok(())
    }

    /// It has another password. The notes about the earlier one go; an account that a user has disabled
    /// stays so.
    fn changed(&self, old: &EntryRef<'_>, new: &mut EntryAttributes) -> Result<()> {
        let (snapshot, now) = (self.snapshot, self.now);
        let account = Account::of(&snapshot.schema, new);
        let policy = match self.context.is_system {
            true => Arc::new(Policy::NONE),
            false => snapshot.shared.policies.of(snapshot, self.view, None, subentry(old))?,
        };
        let mut history: Vec<Vec<u8>> = values(new, HISTORY).map(<[u8]>::to_vec).collect();
        // In the order in which they were current, whatever the clock says.
        history = history::newest(history, HISTORY_MAX);
        let at = history.last().and_then(|last| history::time_of(&snapshot.schema, last));
        let at = at.map_or(now, |last| now.max(last + 1));
        history.extend(old.values(USER_PASSWORD).map(|stored| history::value(at, stored)));
        put(new, HISTORY, history::newest(history, policy.in_history));
        let has_one = values(new, USER_PASSWORD).next().is_some();
        put(new, CHANGED_TIME, has_one.then(|| time::seconds(now)));
        remove(new, FAILURE_TIME);
        remove(new, GRACE_USE_TIME);
        if account.locked != Some(LockedTime::ForGood) && !self.edited.contains(&LOCKED_TIME) {
            remove(new, LOCKED_TIME);
        }
        if !self.edited.contains(&RESET) {
            let by_others = self.subject.id() != Some(self.id);
            let reset = by_others && has_one && policy.must_change;
            put(new, RESET, reset.then_some("TRUE"));
        }
        snapshot.shared.policies.pending.forget(self.id);
        Ok(())
    }
}

fn values<'a>(attributes: &'a EntryAttributes, name: &str) -> impl Iterator<Item = &'a [u8]> {
    let found = attributes.iter().find(|(stored, _)| stored == name);
    found.into_iter().flat_map(|(_, values)| values).map(Vec::as_slice)
}
