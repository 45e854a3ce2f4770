//! The server's own entries: its naming context and the administrator.

use crate::access::Subject;
use crate::controls::RequestControls;
use crate::directory::{ADMINISTRATOR_DN, Core, Directory, USER_PASSWORD};
use crate::failure::{Failure, Result};
use crate::names::SYSTEM_DN;
use crate::write::{Add, Modify, Operation, Source};
use keyway_codec::message::ResultCode;
use keyway_store::{EntryId, Write};
use std::borrow::Cow;

impl Directory {
    /// Whether there is an administrator.
    ///
    /// # Errors
    /// The store's.
    pub fn has_administrator(&self) -> Result<bool> {
        Ok(self.credentials(ADMINISTRATOR_DN)?.is_some())
    }

    /// Gives the administrator this password, which is hashed already; makes his entry, and the
    /// one above, if they are not there. Blocks until it is on the disk.
    ///
    /// # Errors
    /// The store's.
    pub fn bootstrap_administrator(&self, hashed: Vec<u8>) -> Result<()> {
        let core = &self.core;
        let top = [
            ("objectClass", vec!["top", "applicationProcess"]),
            ("cn", vec!["keyway"]),
            ("description", vec!["The server's own entries"]),
        ];
        self.ensure(core.own_add(SYSTEM_DN, &top)?)?;
        let administrator = [
            ("objectClass", vec!["top", "organizationalRole", "simpleSecurityObject"]),
            ("cn", vec!["admin"]),
            ("description", vec!["The administrator"]),
            // Replaced below. No password matches it.
            (USER_PASSWORD, vec!["{SSHA}"]),
        ];
        self.ensure(core.own_add(ADMINISTRATOR_DN, &administrator)?)?;
        let subject = Core::own_subject();
        let modify = Modify::password(core, &subject, ADMINISTRATOR_DN, hashed)?;
        self.now(Operation::Modify(modify))
    }

    /// Adds an entry unless it is there.
    fn ensure(&self, add: Add) -> Result<()> {
        match self.now(Operation::Add(add)) {
            Err(failure) if failure.code == ResultCode::EntryAlreadyExists => Ok(()),
            result => result,
        }
    }

    fn now(&self, operation: Operation) -> Result<()> {
        let core = self.core.clone();
        let job = move |write: &mut Write<'_>| operation.apply(&core, write);
        self.store.write_now::<_, Failure>(job).map(drop)
    }
}

impl Core {
    /// Whom the server's own changes are made by.
    pub fn own_subject() -> Subject {
        Subject::Administrator { dn: ADMINISTRATOR_DN.into(), id: EntryId::ROOT }
    }

    fn own_add(&self, dn: &str, attributes: &[(&str, Vec<&str>)]) -> Result<Add> {
        let attributes: Vec<(&str, Vec<Cow<'_, [u8]>>)> = attributes
            .iter()
            .map(|(name, values)| {
                (*name, values.iter().map(|value| Cow::Borrowed(value.as_bytes())).collect())
            })
            .collect();
        let given = attributes.iter().map(|(name, values)| (*name, values.as_slice()));
        let controls = RequestControls::default();
        Add::of(self, &Core::own_subject(), dn, given, Source::Client, &controls)
    }
}
