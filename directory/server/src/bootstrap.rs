//! The server's own entries: its naming context and the administrator.

use crate::access::Subject;
use crate::controls::RequestControls;
use crate::directory::Directory;
use crate::failure::Result;
use crate::feed::{ChangeNote, Reason};
use crate::naming::ADMINISTRATOR_DN;
use crate::naming::SYSTEM_DN;
use crate::policy::USER_PASSWORD;
use crate::state::Snapshot;
use crate::write::{Add, Modify, Source};
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
        let snapshot = self.snapshot();
        let top = snapshot.own_add(
            SYSTEM_DN,
            &[
                ("objectClass", &["top", "applicationProcess"]),
                ("cn", &["keyway"]),
                ("description", &["The server's own entries"]),
            ],
        )?;
        let administrator = snapshot.own_add(
            ADMINISTRATOR_DN,
            &[
                ("objectClass", &["top", "organizationalRole", "simpleSecurityObject"]),
                ("cn", &["admin"]),
                ("description", &["The administrator"]),
                // Replaced below, in the same commit. No password matches it.
                (USER_PASSWORD, &["{SSHA}"]),
            ],
        )?;
        let subject = Snapshot::own_subject();
        let password = Modify::password(&snapshot, &subject, ADMINISTRATOR_DN, hashed, false)?;
        let note = ChangeNote::own(Reason::Server, self.now()).encode();
        self.store.write_now(move |write| {
            write.note(&note);
            ensure(&snapshot, write, &top)?;
            ensure(&snapshot, write, &administrator)?;
            password.apply(&snapshot, write).map(drop)
        })
    }
}

/// Adds an entry unless it is there.
fn ensure(snapshot: &Snapshot, write: &mut Write<'_>, add: &Add) -> Result<()> {
    match add.apply(snapshot, write) {
        Err(failure) if failure.code == ResultCode::EntryAlreadyExists => Ok(()),
        result => result.map(drop),
    }
}

impl Snapshot {
    /// The subject that makes the server's own changes.
    pub fn own_subject() -> Subject {
        Subject::administrator(ADMINISTRATOR_DN, EntryId::ROOT)
    }

    fn own_add(&self, dn: &str, attributes: &[(&str, &[&str])]) -> Result<Add> {
        let bytes = |values: &[&str]| -> Vec<Cow<'_, [u8]>> {
            values.iter().map(|value| Cow::Owned(value.as_bytes().to_vec())).collect()
        };
        let attributes: Vec<_> =
            attributes.iter().map(|(name, values)| (*name, bytes(values))).collect();
        let given = attributes.iter().map(|(name, values)| (*name, values.as_slice()));
        let controls = RequestControls::default();
        Add::of(self, &Snapshot::own_subject(), dn, given, Source::Client, &controls)
    }
}
