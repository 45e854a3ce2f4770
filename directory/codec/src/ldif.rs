//! LDIF, RFC 2849: entries and changes as lines of text.
//!
//! [`Reader`] takes a file in pieces of any size and holds no more of it than the record that it is
//! in, so that a file may be larger than memory. [`Writer`] writes what it reads.
//!
//! Wider than the RFC, as other tools write it: values and names may hold UTF-8 as it is, entries
//! and changes may be mixed in one file, and the last `-` of a modify record may be missing.
//! Narrower: `attribute:< URL` is refused, since a file from elsewhere must not read other files,
//! and so is a critical control, since nothing here would honour it.

mod line;
mod reader;
mod request;
mod writer;

use std::fmt;

use crate::message::ChangeOperation;

pub(crate) use line::Line;
pub use reader::Reader;
pub use writer::Writer;

/// An entry, or a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The line that its `dn:` is on, counted from 1. Writing ignores it.
    pub line: u64,
    /// The name of the entry, as it was written.
    pub dn: String,
    /// The kind of the record.
    pub kind: RecordKind,
}

/// Attribute descriptions with a value each, in the order of the lines.
pub type Lines = Vec<(String, Vec<u8>)>;

/// The kind of a record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RecordKind {
    /// It is there, with these values: a record without `changetype`.
    Content(Lines),
    /// `changetype: add`
    Add(Lines),
    /// `changetype: delete`
    Delete,
    /// `changetype: modify`
    Modify(Vec<Modification>),
    /// `changetype: modrdn` or `moddn`
    ModRdn {
        /// The new RDN, as it was written.
        new_rdn: String,
        /// Whether the values of the old RDN go.
        delete_old_rdn: bool,
        /// The name of the new parent, as it was written; without it the entry stays where it is.
        new_superior: Option<String>,
    },
}

/// One change within a modify record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Modification {
    /// The operation on the values.
    pub operation: ChangeOperation,
    /// The attribute description, as it was written.
    pub attribute: String,
    /// The values; only a delete or a replace may have none.
    pub values: Vec<Vec<u8>>,
}

/// Why a record is not one. Reading goes on with the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LdifError {
    /// The line that is wrong, counted from 1; where it is folded, the first of its lines.
    pub line: u64,
    /// The name of the entry, if the record got so far.
    pub dn: Option<String>,
    /// Why it is wrong.
    pub why: &'static str,
}

impl fmt::Display for LdifError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}", self.line)?;
        if let Some(dn) = &self.dn {
            write!(f, " (entry {dn:?})")?;
        }
        write!(f, ": {}", self.why)
    }
}

impl std::error::Error for LdifError {}

#[cfg(test)]
mod tests;
