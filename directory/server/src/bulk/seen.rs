//! How far an import has read, and what it was.

use keyway_codec::ldif::{LdifError, Record, RecordKind};
use keyway_codec::message::is_password;
use std::hash::{DefaultHasher, Hash, Hasher};

/// So many records, and what they were.
#[derive(Clone, Default)]
pub(super) struct Seen {
    pub records: u64,
    /// A hash of all of them, in their order. It is for mistakes, not for liars, so a fast one will do.
    hash: DefaultHasher,
}

impl Seen {
    /// One more.
    pub fn add(&mut self, record: &Result<Record, LdifError>) {
        self.records += 1;
        match record {
            Ok(Record {
                dn, kind: RecordKind::Content(lines) | RecordKind::Add(lines), ..
            }) => {
                // A sample that is made anew has its passwords hashed anew.
                let told = lines.iter().filter(|(name, _)| !is_password(name));
                told.for_each(|line| line.hash(&mut self.hash));
                dn.hash(&mut self.hash);
            }
            Ok(Record { dn, kind, .. }) => (dn, kind).hash(&mut self.hash),
            Err(LdifError { dn, .. }) => dn.hash(&mut self.hash),
        }
    }

    /// A number that tells these records from others.
    pub fn mark(&self) -> u64 {
        self.hash.finish()
    }

    /// The store's row of an import of this source that has got so far: `RECORDS:MARK SOURCE`.
    pub fn row(&self, source: &str) -> String {
        format!("{}:{:x} {source}", self.records, self.mark())
    }
}
