//! From LDIF records to operations that are ready to be done.

use super::notes::{Note, Notes};
use super::seen::Seen;
use super::wait::wait;
use crate::controls::RequestControls;
use crate::directory::Directory;
use crate::failure::Result;
use crate::integrity::ImportedMemberOf;
use crate::naming::{self, Place};
use crate::state::Snapshot;
use crate::write::{
    Add, Delete, Modify, Operation, PasswordSource, Rename, Secrets, Source, keep_once,
};
use keyway_codec::ldif::{Lines, Record, RecordKind};
use keyway_codec::message::{ModifyDnRequest, ResultCode};
use keyway_schema::{OBJECT_CLASS, Schema, base};
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// How long an import waits for the slow pool when others have filled it.
const POOL_PAUSE: Duration = Duration::from_millis(2);

/// Classes of entries that a tree begins with, wherever they are.
const TOPS: &[&str] = &["country", "dcObject", "domain", "organization"];

/// Classes of entries that a tree begins with if nothing is above them.
const CONTAINERS: &[&str] = &["locality", "organizationalUnit"];

/// Attributes that are kept and that nothing here looks at, though the server they come from does.
const WITHOUT_EFFECT: &[&str] = &[
    "OpenLDAPaci",
    "aci",
    "acctPolicySubentry",
    "authzFrom",
    "authzTo",
    "nsIDListScanLimit",
    "nsIdleTimeout",
    "nsLookThroughLimit",
    "nsPagedIDListScanLimit",
    "nsPagedLookThroughLimit",
    "nsPagedSizeLimit",
    "nsRoleDN",
    "nsSizeLimit",
    "nsTimeLimit",
    "saslAuthzFrom",
    "saslAuthzTo",
];

/// Attributes that mean something only to the server that wrote them. They are left out.
const LEFT_OUT: &[&str] = &[
    // OpenLDAP
    "contextCSN",
    "entryCSN",
    "namingCSN",
    "superiorUUID",
    "syncTimestamp",
    "syncreplCookie",
    // 389 Directory Server
    "ConflictCSN",
    "accountUnlockTime",
    "dsEntryDN",
    "entryId",
    "entryUSN",
    "internalCreatorsName",
    "internalModifiersName",
    "nsRole",
    "nsUniqueId",
    "nscpEntryDN",
    "parentid",
    "passwordAllowChangeTime",
    "passwordExpWarned",
    "passwordExpirationTime",
    "passwordGraceUserTime",
    "passwordHistory",
    "passwordRetryCount",
    "pwdExpirationWarned",
    "pwdGraceUserTime",
    "pwdTPRExpireAt",
    "pwdTPRReset",
    "pwdTPRUseCount",
    "pwdTPRValidFrom",
    "pwdUpdateTime",
    "retryCountResetTime",
    "tombstoneNumSubordinates",
    // OpenDJ, PingDirectory
    "ds-sync-generation-id",
    "ds-sync-hist",
    "ds-sync-state",
];

/// The class whose entries 389 Directory Server lets have attributes without a definition.
const EXTENSIBLE: &[&str] = &["extensibleObject"];

/// The class of what 389 Directory Server keeps of a deleted entry.
const TOMBSTONES: &[&str] = &["nsTombstone"];

/// A record that has been understood.
pub(super) struct Prepared {
    /// Its place in the input.
    pub index: u64,
    /// The records before it.
    pub before: Seen,
    pub line: u64,
    pub dn: String,
    pub operation: Operation,
}

/// The outcome of a record.
pub(super) enum Taken {
    /// It is in the group, or nothing is to be done with it.
    Done,
    /// No naming context holds it, and it does not look like the top of a tree.
    Outside(Lines),
}

/// Records of one commit.
#[derive(Default)]
pub(super) struct Group {
    records: Vec<Prepared>,
    /// Passwords that are being hashed, and the record they belong to.
    secrets: VecDeque<(usize, Secrets)>,
    /// The notes about them.
    pub notes: Notes,
    /// The records before what is taken now.
    pub before: Seen,
    /// Whether what is taken now has been told of before.
    pub is_told: bool,
    /// Passwords that were given as they are, and are being hashed.
    pub hashed: u64,
    /// Those that have been, fast.
    pub hashed_fast: u64,
    /// Passwords that cannot be verified here, by what their scheme is called.
    pub unverified: BTreeMap<String, u64>,
}

impl Group {
    /// How many records it has.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Understands a record and takes it in; its values of `memberOf` go to `imported_member_of`. Passwords in
    /// clear are hashed here if they are to be hashed fast.
    ///
    /// # Errors
    /// The fault of the record.
    pub fn take(
        &mut self,
        directory: &Directory,
        index: u64,
        record: Record,
        imported_member_of: &mut ImportedMemberOf,
        is_fast: bool,
    ) -> Result<Taken> {
        let Record { line, dn, mut kind } = record;
        if let RecordKind::Content(lines) | RecordKind::Add(lines) = &mut kind {
            if is_of(lines, TOMBSTONES) {
                self.notes.add(Note::Tombstone, 1, &dn);
                return Ok(Taken::Done);
            }
            if !ensure_context(directory, &dn, lines)? {
                return Ok(Taken::Outside(std::mem::take(lines)));
            }
            if !self.is_told {
                imported_member_of.take(&dn, lines);
                self.look_at(&dn, lines);
            }
        }
        let mut operation = self.operation(&directory.snapshot(), &dn, kind)?;
        if is_fast {
            self.hashed_fast += Secrets::store_fast(&directory.shared.passwords, &mut operation)?;
        }
        let secrets = loop {
            match Secrets::take(&directory.shared.passwords, &mut operation, PasswordSource::Import)
            {
                Err(failure) if failure.code == ResultCode::Busy => {
                    if !self.hash_next()? {
                        #[expect(
                            clippy::disallowed_methods,
                            reason = "an import has its own thread"
                        )]
                        thread::sleep(POOL_PAUSE);
                    }
                }
                secrets => break secrets?,
            }
        };
        for label in secrets.unverified.iter().filter(|_| !self.is_told) {
            *self.unverified.entry(label.clone()).or_default() += 1;
        }
        self.hashed += secrets.len() as u64;
        if !secrets.is_empty() {
            self.secrets.push_back((self.records.len(), secrets));
        }
        let before = self.before.clone();
        self.records.push(Prepared { index, before, line, dn, operation });
        Ok(Taken::Done)
    }

    /// Leaves out what means nothing here, and notes that and what has no effect.
    fn look_at(&mut self, dn: &str, lines: &mut Lines) {
        lines.retain(|(description, _)| {
            if let Some(name) = one_of(WITHOUT_EFFECT, description) {
                self.notes.add(Note::NoEffect(name), 1, dn);
            }
            let left_out = one_of(LEFT_OUT, description);
            if let Some(name) = left_out {
                self.notes.add(Note::LeftOut(name), 1, dn);
            }
            left_out.is_none()
        });
    }

    fn operation(
        &mut self,
        snapshot: &Arc<Snapshot>,
        dn: &str,
        kind: RecordKind,
    ) -> Result<Operation> {
        let (subject, controls) = (Snapshot::own_subject(), RequestControls::default());
        Ok(match kind {
            RecordKind::Content(lines) | RecordKind::Add(lines) => {
                let (attributes, twice) = grouped(&snapshot.schema, lines);
                let given =
                    attributes.iter().map(|(name, values)| (name.as_str(), values.as_slice()));
                let add = Add::of(snapshot, &subject, dn, given, Source::Export, &controls)?;
                if !self.is_told {
                    self.notes.add(Note::ValueTwice, twice, dn);
                    self.notes.add(Note::Malformed, add.malformed, dn);
                    self.notes.add(Note::Structural, u64::from(!add.is_sound), dn);
                }
                Operation::Add(add)
            }
            RecordKind::Delete => {
                Operation::Delete(Delete::new(snapshot, &subject, dn, &controls)?)
            }
            RecordKind::Modify(changes) => {
                let changes = changes.iter().map(|change| {
                    (change.operation, change.attribute.as_str(), change.values.clone())
                });
                Operation::Modify(Modify::of(snapshot, &subject, dn, changes, &controls)?)
            }
            RecordKind::ModRdn { new_rdn, delete_old_rdn, new_superior } => {
                let (new_rdn, new_superior) = (new_rdn.as_str(), new_superior.as_deref());
                let request = ModifyDnRequest { dn, new_rdn, delete_old_rdn, new_superior };
                Operation::Rename(Rename::new(snapshot, &subject, &request, &controls)?)
            }
        })
    }

    /// The records, with all passwords hashed.
    pub fn finish(mut self) -> Result<Vec<Prepared>> {
        while self.hash_next()? {}
        Ok(self.records)
    }

    /// Waits for the passwords of the first record that has any left.
    fn hash_next(&mut self) -> Result<bool> {
        let Some((index, secrets)) = self.secrets.pop_front() else { return Ok(false) };
        if let Some(prepared) = self.records.get_mut(index) {
            wait(secrets.put_hashed(&mut prepared.operation))?;
        }
        Ok(true)
    }
}

/// The name in a list that a description is of.
fn one_of(list: &[&'static str], description: &str) -> Option<&'static str> {
    let own = base(description);
    list.iter().find(|name| name.eq_ignore_ascii_case(own)).copied()
}

/// An attribute without a definition.
pub(super) struct Undefined {
    /// As it is written where it is first.
    pub name: String,
    /// Whether all its values are text.
    pub is_text: bool,
}

/// Attributes of an extensibleObject that have no definition, by their names in lower case.
pub(super) fn undefined(schema: &Schema, record: &Record) -> BTreeMap<String, Undefined> {
    let mut undefined = BTreeMap::new();
    let (RecordKind::Content(lines) | RecordKind::Add(lines)) = &record.kind else {
        return undefined;
    };
    if !is_of(lines, EXTENSIBLE) || is_of(lines, TOMBSTONES) {
        return undefined;
    }
    for (description, value) in lines {
        let name = base(description);
        if schema.attribute(name).is_none() && one_of(LEFT_OUT, name).is_none() {
            let is_text = str::from_utf8(value).is_ok_and(|text| !text.is_empty());
            let new = || Undefined { name: name.to_owned(), is_text: true };
            let known = undefined.entry(name.to_ascii_lowercase()).or_insert_with(new);
            known.is_text &= is_text;
        }
    }
    undefined
}

/// Whether an entry that no naming context holds can become one: it is the first, or a container.
pub(super) fn may_be_top(directory: &Directory, lines: &Lines) -> bool {
    let contexts = directory.shared.contexts();
    contexts.iter().all(|context| context.is_system) || is_of(lines, CONTAINERS)
}

/// Whether an entry is of one of these classes.
fn is_of(lines: &Lines, classes: &[&str]) -> bool {
    lines.iter().any(|(name, value)| {
        name.eq_ignore_ascii_case(OBJECT_CLASS)
            && classes.iter().any(|class| value.eq_ignore_ascii_case(class.as_bytes()))
    })
}

/// Whether a naming context holds an entry; makes one of it if it looks like the top of a tree.
fn ensure_context(directory: &Directory, dn: &str, lines: &Lines) -> Result<bool> {
    let contexts = directory.shared.contexts();
    let known = directory.entry_name(dn)?;
    let name = known.name();
    if !matches!(naming::place(&contexts, name), Place::Outside) {
        return Ok(true);
    }
    if !is_of(lines, TOPS) && name.parts.len() > 1 {
        return Ok(false);
    }
    directory.add_naming_context(dn)?;
    Ok(true)
}

type Grouped = Vec<(String, Vec<Cow<'static, [u8]>>)>;

/// Lines of one attribute put together, with each value once, and how many were there again.
fn grouped(schema: &Schema, lines: Lines) -> (Grouped, u64) {
    let mut grouped = Grouped::new();
    for (description, value) in lines {
        let known = schema.describe(&description);
        let description = known.map_or(description, |known| known.canonical().into_owned());
        // Mostly the last one, so it is looked at first.
        match grouped.iter_mut().rev().find(|(known, _)| *known == description) {
            Some((_, values)) => values.push(Cow::Owned(value)),
            None => grouped.push((description, vec![Cow::Owned(value)])),
        }
    }
    let mut twice = 0;
    for (description, values) in &mut grouped {
        if let Some(attribute) = schema.attribute(base(description)) {
            twice += keep_once(schema, attribute, values) as u64;
        }
    }
    (grouped, twice)
}
