//! The entry that a bind names: its passwords, its account, and the right to set them.

use crate::access::{Rights, Subject};
use crate::candidate::Candidate;
use crate::directory::Directory;
use crate::failure::{Failure, Result};
use crate::learnt::KnownName;
use crate::naming::{self, Place};
use crate::policy::{self, Account, Policy, Status, USER_PASSWORD};
use keyway_schema::EntryName;
use std::sync::Arc;

/// All that a bind needs to know of an entry.
#[derive(Clone)]
pub struct Credentials {
    /// The user that the entry stands for.
    pub subject: Subject,
    /// The entry's DN as it is written in the directory.
    pub dn: String,
    /// Its stored passwords.
    pub passwords: Vec<Vec<u8>>,
    pub(crate) account: Account,
    pub(crate) policy: Arc<Policy>,
}

impl Credentials {
    /// The account's status now.
    pub(crate) fn status(&self, now: u64) -> Status {
        self.account.status(&self.policy, now)
    }
}

impl Directory {
    /// The entry that a bind as this DN is checked against; `None` if there is no such entry.
    ///
    /// # Errors
    /// `invalidDNSyntax`, or the store's.
    pub fn credentials(&self, dn: &str) -> Result<Option<Credentials>> {
        self.credentials_of(&self.entry_name(dn)?)
    }

    /// Understands the DN of an entry; what is known of the one above it is used.
    ///
    /// # Errors
    /// `invalidDNSyntax`.
    pub fn entry_name(&self, dn: &str) -> Result<KnownName> {
        Ok(self.snapshot().entry_name(dn)?)
    }

    /// As [`Directory::credentials`], for a name that has been understood.
    ///
    /// # Errors
    /// The store's.
    pub fn credentials_of(&self, name: &KnownName) -> Result<Option<Credentials>> {
        let pending = &self.shared.policies.pending;
        loop {
            let written = pending.written();
            let found = self.stored_credentials(name)?.map(|mut found| {
                if let (false, Some(id)) = (found.subject.is_administrator(), found.subject.id()) {
                    found.account = pending.apply(&found.policy, id, found.account);
                }
                found
            });
            // An event that was written meanwhile is in neither of the two.
            if pending.written() == written {
                return Ok(found);
            }
        }
    }

    /// Whether the password policy lets a subject do nothing before it has changed its password. Where
    /// that cannot be known it does not.
    pub fn must_change(&self, subject: &Subject) -> bool {
        let Some(dn) = subject.name() else { return false };
        match self.credentials(&dn) {
            Ok(Some(found)) => found.status(policy::micros(self.snapshot().shared.now())).reset,
            _ => true,
        }
    }

    /// Whether a DN is that of a subject's own entry.
    pub fn is_entry_of(&self, subject: &Subject, dn: &str) -> bool {
        let found = self.credentials(dn).ok().flatten();
        found.is_some_and(|found| found.subject.id() == subject.id())
    }

    fn stored_credentials(&self, known: &KnownName) -> Result<Option<Credentials>> {
        let snapshot = &*self.snapshot();
        let (name, contexts) = (known.name(), snapshot.shared.contexts());
        let Place::Inside { context, below } = naming::place(&contexts, name) else {
            return Ok(None);
        };
        let read = self.store.read()?;
        let view = read.view();
        let Some(id) = known.find(&read, context, below)? else { return Ok(None) };
        let Some(entry) = view.entry(id)? else { return Ok(None) };
        let dn = snapshot.with_names(|names| view.dn_of(&entry, &mut names.borrow_mut()))?;
        let passwords = entry.values(USER_PASSWORD).map(<[u8]>::to_vec).collect();
        let subject = match name.canonical() == snapshot.shared.administrator {
            true => Subject::administrator(&dn, id),
            false => Subject::user(&dn, id),
        };
        // The server's own entries have no policy: the administrator has to get in to mend things.
        let (policy, account) = match context.is_system {
            true => (Arc::new(Policy::NONE), Account::default()),
            false => {
                let own = policy::subentry(&entry);
                let policy =
                    snapshot.shared.policies.of(snapshot, view, Some(read.version()), own)?;
                (policy, Account::read(&snapshot.schema, &entry))
            }
        };
        Ok(Some(Credentials { subject, dn, passwords, account, policy }))
    }

    /// Whether the subject may set the password of this entry.
    ///
    /// # Errors
    /// `insufficientAccessRights` if not, or `noSuchObject` if the subject may not know of the entry,
    /// `invalidDNSyntax`, or the store's.
    pub fn may_set_password(&self, subject: &Subject, dn: &str) -> Result<()> {
        let snapshot = &*self.snapshot();
        let name = EntryName::parse(&snapshot.schema, dn)?;
        let contexts = snapshot.shared.contexts();
        let denied = || Failure::denied("set this password");
        let Place::Inside { context, below } = naming::place(&contexts, &name) else {
            return Err(denied());
        };
        self.refresh(subject)?;
        let rights = snapshot.permissions(subject, context.place());
        let read = self.store.read()?;
        let view = read.view();
        let told = |failure| snapshot.disclosed(view, &rights, (context, &name, below), failure);
        let id = naming::resolve(view, context, &name, below).map_err(told)?;
        let entry = view.entry(id)?.ok_or_else(denied)?;
        let allowed = snapshot.with_names(|names| {
            let candidate = Candidate::stored(snapshot, id, entry, view, names);
            let may = rights.may(Rights::WRITE, USER_PASSWORD, &candidate)?
                || rights.may(Rights::RESET, USER_PASSWORD, &candidate)?;
            if may { Ok(()) } else { Err(denied()) }
        });
        allowed.map_err(told)
    }
}
