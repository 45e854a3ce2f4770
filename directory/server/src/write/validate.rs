//! The check of a new password by the password policy, before it is hashed.

use super::edit;
use super::operation::Operation;
use super::secret::clear_values;
use crate::access::Subject;
use crate::directory::Directory;
use crate::failure::{Failure, Result};
use crate::naming::{self, NamingContext, Place};
use crate::policy::USER_PASSWORD;
use crate::policy::{self, POLICY_SUBENTRY, PasswordChange, RESET, micros};
use crate::state::Snapshot;
use keyway_codec::message::{ChangeOperation, ResultCode};
use keyway_password::limits::STORED_VALUES_MAX;
use keyway_password::{Attempt, BindHistory, Given, PasswordCheck};
use keyway_schema::{EntryName, base};
use keyway_store::{EntryId, EntryRef, View};
use std::net::IpAddr;
use zeroize::Zeroizing;

/// Who changes a password, and how.
pub(super) struct Validation<'a> {
    pub subject: &'a Subject,
    pub from: IpAddr,
    /// The old password was given, and it was right.
    pub gave_old: bool,
    /// The new one needs no check of its quality.
    pub is_good: bool,
}

/// New passwords, and the stored values that they must not be.
pub(super) struct Earlier {
    attempt: Attempt,
    entry: EntryId,
    stored: Vec<Vec<u8>>,
    new: Vec<Zeroizing<Vec<u8>>>,
}

impl Validation<'_> {
    /// Validates the new password of an entry.
    ///
    /// # Errors
    /// A refusal by the policy; `noSuchObject`, or the store's or the engine's.
    pub async fn validate(
        &self,
        directory: &Directory,
        dn: &str,
        new: &Zeroizing<Vec<u8>>,
    ) -> Result<()> {
        let earlier = self.earlier(directory, dn, new)?;
        earlier.validate(&directory.snapshot()).await
    }

    fn earlier(
        &self,
        directory: &Directory,
        dn: &str,
        new: &Zeroizing<Vec<u8>>,
    ) -> Result<Earlier> {
        let snapshot = &*directory.snapshot();
        let name = EntryName::parse(&snapshot.schema, dn)?;
        let contexts = snapshot.shared.contexts();
        let Place::Inside { context, below } = naming::place(&contexts, &name) else {
            return Err(Failure::no_such_object(""));
        };
        let read = directory.store.read()?;
        let id = naming::resolve(read.view(), context, &name, below)?;
        let entry = read.view().entry(id)?.ok_or_else(|| Failure::no_such_object(""))?;
        let found = Found { view: read.view(), context, name: &name, id, entry };
        self.of(snapshot, &found, vec![new.clone()])
    }

    /// Makes those checks that can be made at once.
    fn of(
        &self,
        snapshot: &Snapshot,
        found: &Found<'_>,
        new: Vec<Zeroizing<Vec<u8>>>,
    ) -> Result<Earlier> {
        let attempt = snapshot.shared.passwords.attempt(
            self.from,
            &found.name.canonical(),
            BindHistory::default(),
        );
        let Found { view, context, id: entry, .. } = *found;
        let change = (entry, found.entry);
        let change = PasswordChange::of(snapshot, view, context, self.subject, change)?;
        let Some(change) = change else {
            return Ok(Earlier { attempt, entry, stored: Vec::new(), new });
        };
        change.allow(snapshot, self.gave_old, micros(snapshot.shared.now()))?;
        if new.len() > STORED_VALUES_MAX {
            let text = format!("an entry is given {STORED_VALUES_MAX} passwords at most");
            return Err(Failure::new(ResultCode::AdminLimitExceeded, text));
        }
        if !self.is_good {
            new.iter().try_for_each(|password| change.check_quality(password))?;
        }
        Ok(Earlier { attempt, entry, stored: change.earlier(), new })
    }
}

/// An entry whose password is changed.
struct Found<'t> {
    view: View<'t>,
    context: &'t NamingContext,
    name: &'t EntryName,
    id: EntryId,
    entry: EntryRef<'t>,
}

impl Earlier {
    /// Whether the new passwords are others than the earlier ones.
    async fn validate(&self, snapshot: &Snapshot) -> Result<()> {
        for new in &self.new {
            let passwords = &snapshot.shared.passwords;
            if passwords.is_one_of(self.attempt, self.entry.0, new, &self.stored).await? {
                return Err(policy::in_history());
            }
        }
        Ok(())
    }
}

/// The rest of the work on a modify's passwords before they can be hashed.
pub(super) struct Old {
    earlier: Earlier,
    /// Passwords that are to be deleted, by the number of the edit and of its value.
    deleted: Vec<(usize, usize, Zeroizing<Vec<u8>>)>,
    current: Vec<Vec<u8>>,
}

impl Directory {
    /// Vets the passwords of an operation of a client; what of it takes time is returned.
    ///
    /// # Errors
    /// A refusal by the policy or by an access rule, or the store's.
    pub(super) fn validate(&self, operation: &mut Operation, from: IpAddr) -> Result<Option<Old>> {
        let snapshot = &*self.snapshot();
        match operation {
            Operation::Add(add) => {
                add.validate(snapshot, self.store.read()?.view())?;
                Ok(None)
            }
            Operation::Modify(modify) if modify.changes_password() => {
                let read = self.store.read()?;
                // Work is not done for those who may not have it done.
                let (id, entry) = modify.check_rights(snapshot, read.view())?;
                let request = &modify.request;
                let (context, name) = (&*request.context, &request.name);
                let found = Found { view: read.view(), context, name, id, entry };
                let new = clear_values(&snapshot.shared.passwords, modify);
                let (subject, gave_old) = (&request.subject, modify.gave_old);
                let validation = Validation { subject, from, gave_old, is_good: false };
                let earlier = validation.of(snapshot, &found, new)?;
                let deleted = deleted(snapshot, modify);
                if deleted.is_empty() && earlier.stored.is_empty() {
                    return Ok(None);
                }
                let current = entry.values(USER_PASSWORD).map(<[u8]>::to_vec).collect();
                Ok(Some(Old { earlier, deleted, current }))
            }
            _ => Ok(None),
        }
    }
}

/// The passwords that a modify wants deleted, as many as an entry can have.
fn deleted(snapshot: &Snapshot, modify: &super::Modify) -> Vec<(usize, usize, Zeroizing<Vec<u8>>)> {
    let mut found = Vec::new();
    for (at, edit) in modify.edits.iter().enumerate() {
        if edit.operation != ChangeOperation::Delete || base(&edit.name) != USER_PASSWORD {
            continue;
        }
        for (index, value) in edit.values.iter().enumerate() {
            if let Ok(Given::Password(password)) = snapshot.shared.passwords.classify(value) {
                found.push((at, index, Zeroizing::new(password.to_vec())));
            }
        }
    }
    found.truncate(STORED_VALUES_MAX);
    found
}

impl Old {
    /// Puts stored values in the place of the passwords that are to be deleted and are those of
    /// one, and sees that the new ones are others than the earlier ones. A value that is the password of
    /// none stays as it is, and is missed when the change is made.
    pub async fn settle(self, snapshot: &Snapshot, operation: &mut Operation) -> Result<()> {
        let Old { earlier, deleted, current } = self;
        for (at, index, password) in deleted {
            let stored = match_of(snapshot, &earlier, &password, &current).await?;
            let Operation::Modify(modify) = &mut *operation else { continue };
            let edit = modify.edits.get_mut(at);
            let value = edit.and_then(|edit| edit.values.get_mut(index));
            if let (Some(value), Some(stored)) = (value, stored) {
                *value = stored;
            }
        }
        earlier.validate(snapshot).await
    }
}

/// The stored value that a password is that of. It is an attempt like that of a bind.
async fn match_of(
    snapshot: &Snapshot,
    earlier: &Earlier,
    password: &Zeroizing<Vec<u8>>,
    current: &[Vec<u8>],
) -> Result<Option<Vec<u8>>> {
    for stored in current {
        let (passwords, values) = (&snapshot.shared.passwords, std::slice::from_ref(stored));
        let entry = Some(earlier.entry.0);
        let verdict = match passwords.check(earlier.attempt, entry, password.clone(), values)? {
            PasswordCheck::Known(verdict) => verdict,
            PasswordCheck::Pending(pending) => pending.await?,
        };
        if verdict.is_right() {
            return Ok(Some(stored.clone()));
        }
    }
    Ok(None)
}

impl super::Add {
    /// Validates the passwords of a new entry, and marks them as set by another user if they must be changed.
    fn validate(&mut self, snapshot: &Snapshot, view: View<'_>) -> Result<()> {
        let Some(passwords) = edit::values(&self.attributes, USER_PASSWORD) else { return Ok(()) };
        if self.request.context.is_system || self.request.is_relaxed {
            return Ok(());
        }
        let own = edit::values(&self.attributes, POLICY_SUBENTRY);
        let own = own.and_then(|values| str::from_utf8(values.first()?).ok());
        let policy = snapshot.shared.policies.of(snapshot, view, None, own)?;
        if !self.request.subject.is_administrator() {
            for value in passwords {
                if let Ok(Given::Password(password)) = snapshot.shared.passwords.classify(value) {
                    policy::check_new(&policy, password, &self.attributes)?;
                }
            }
        }
        if policy.must_change && edit::values(&self.attributes, RESET).is_none() {
            edit::set(&mut self.attributes, RESET, "TRUE");
            self.keys = snapshot.indexes.all_keys(&snapshot.schema, &self.attributes);
        }
        Ok(())
    }
}
