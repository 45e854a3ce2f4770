//! From LDIF records to operations that are ready to be done.

use super::wait::wait;
use crate::controls::RequestControls;
use crate::directory::{Core, Directory};
use crate::failure::{Failure, Result};
use crate::integrity::Claims;
use crate::names::{self, Name, Place};
use crate::schema::{OBJECT_CLASS, base};
use crate::write::{Add, Delete, Giver, Modify, Operation, Rename, Secrets, Source};
use keyway_codec::ldif::{Lines, Record, RecordKind};
use keyway_codec::message::{ModifyDnRequest, ResultCode};
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::thread;
use std::time::Duration;

/// How long an import waits for the slow pool when others have filled it.
const POOL_PAUSE: Duration = Duration::from_millis(2);

/// Classes of entries that a tree begins with.
const CONTAINERS: &[&str] =
    &["country", "dcObject", "domain", "locality", "organization", "organizationalUnit"];

/// Attributes that mean something only to the server that wrote them. They are left out.
const LEFT_OUT: &[&str] = &[
    // OpenLDAP
    "contextCSN",
    "entryCSN",
    // 389 Directory Server
    "aci",
    "entryId",
    "nsIdleTimeout",
    "nsLookThroughLimit",
    "nsSizeLimit",
    "nsTimeLimit",
    "nsUniqueId",
    "nscpEntryDN",
    "parentid",
    // OpenDJ, PingDirectory
    "ds-sync-generation-id",
    "ds-sync-hist",
    "ds-sync-state",
];

/// A record that has been understood.
pub(super) struct Prepared {
    pub line: u64,
    pub dn: String,
    pub operation: Operation,
}

/// Records of one commit.
#[derive(Default)]
pub(super) struct Group {
    records: Vec<Prepared>,
    /// Passwords that are being hashed, and the record they belong to.
    secrets: VecDeque<(usize, Secrets)>,
    /// Values that mean nothing here.
    pub left_out: u64,
    /// Passwords that were given as they are.
    pub hashed: u64,
    /// Passwords that cannot be verified here, by what their scheme is called.
    pub unverified: BTreeMap<String, u64>,
}

impl Group {
    /// How many records it has.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Understands a record and takes it in; what it says of groups goes to `claims`.
    ///
    /// # Errors
    /// What is wrong with the record.
    pub fn take(
        &mut self,
        directory: &Directory,
        record: Record,
        claims: &mut Claims,
    ) -> Result<()> {
        let Record { line, dn, mut kind } = record;
        if let RecordKind::Content(lines) | RecordKind::Add(lines) = &mut kind {
            ensure_context(directory, &dn, lines)?;
            claims.take(&dn, lines);
            let given = lines.len();
            lines.retain(|(description, _)| !is_left_out(description));
            self.left_out += (given - lines.len()) as u64;
        }
        let mut operation = operation(&directory.core, &dn, kind)?;
        let secrets = loop {
            match Secrets::take(&directory.core.passwords, &mut operation, Giver::Import) {
                Err(failure) if failure.code == ResultCode::Busy => {
                    if !self.hash_next()? {
                        thread::sleep(POOL_PAUSE);
                    }
                }
                secrets => break secrets?,
            }
        };
        for label in &secrets.unverified {
            *self.unverified.entry(label.clone()).or_default() += 1;
        }
        self.hashed += secrets.len() as u64;
        if !secrets.is_empty() {
            self.secrets.push_back((self.records.len(), secrets));
        }
        self.records.push(Prepared { line, dn, operation });
        Ok(())
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

/// Makes a naming context of an entry that is in none, if it looks like the top of a tree or is
/// the first one of all.
fn ensure_context(directory: &Directory, dn: &str, lines: &Lines) -> Result<()> {
    let contexts = directory.core.contexts();
    let name = Name::parse(&directory.core.schema, dn)?;
    if !matches!(names::place(&contexts, &name), Place::Outside) {
        return Ok(());
    }
    let first = contexts.iter().all(|context| context.is_system);
    let is_container = lines.iter().any(|(name, value)| {
        name.eq_ignore_ascii_case(OBJECT_CLASS)
            && CONTAINERS.iter().any(|class| value.eq_ignore_ascii_case(class.as_bytes()))
    });
    if !first && !is_container {
        return Err(Failure::no_such_object("").context("no naming context holds this DN"));
    }
    directory.add_naming_context(dn)
}

fn operation(core: &Core, dn: &str, kind: RecordKind) -> Result<Operation> {
    let (subject, controls) = (Core::own_subject(), RequestControls::default());
    Ok(match kind {
        RecordKind::Content(lines) | RecordKind::Add(lines) => {
            let attributes = grouped(lines);
            let given = attributes.iter().map(|(name, values)| (name.as_str(), values.as_slice()));
            Operation::Add(Add::of(core, &subject, dn, given, Source::Export, &controls)?)
        }
        RecordKind::Delete => Operation::Delete(Delete::new(core, &subject, dn, &controls)?),
        RecordKind::Modify(changes) => {
            let changes = changes
                .iter()
                .map(|change| (change.operation, change.attribute.as_str(), change.values.clone()));
            Operation::Modify(Modify::of(core, &subject, dn, changes, &controls)?)
        }
        RecordKind::ModRdn { new_rdn, delete_old_rdn, new_superior } => {
            let (new_rdn, new_superior) = (new_rdn.as_str(), new_superior.as_deref());
            let request = ModifyDnRequest { dn, new_rdn, delete_old_rdn, new_superior };
            Operation::Rename(Rename::new(core, &subject, &request, &controls)?)
        }
    })
}

fn is_left_out(description: &str) -> bool {
    LEFT_OUT.iter().any(|name| name.eq_ignore_ascii_case(base(description)))
}

type Grouped = Vec<(String, Vec<Cow<'static, [u8]>>)>;

/// Lines of one description put together.
fn grouped(lines: Lines) -> Grouped {
    let mut grouped = Grouped::new();
    for (description, value) in lines {
        let same = |(known, _): &&mut (String, _)| known.eq_ignore_ascii_case(&description);
        // Mostly the last one, so it is looked at first.
        match grouped.iter_mut().rev().find(same) {
            Some((_, values)) => values.push(Cow::Owned(value)),
            None => grouped.push((description, vec![Cow::Owned(value)])),
        }
    }
    grouped
}
