//! The values that a caller hands in: identifiers and owned entries.

use std::fmt;

use crate::LargeEdit;

/// The number of an entry, given by the store when it is inserted and never used again. By default
/// that of the root.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct EntryId(pub u64);

impl EntryId {
    /// The virtual entry above all others: it has children but no record.
    pub const ROOT: EntryId = EntryId(0);

    pub(crate) fn to_bytes(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }

    /// Reads the big-endian form; `None` unless there are exactly eight bytes.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<EntryId> {
        Some(EntryId(u64::from_be_bytes(bytes.try_into().ok()?)))
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An entry as it is written: its own name and its attributes, in the order they will be read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Entry {
    /// The relative name as text, the way its author wrote it; DNs are composed from these.
    pub rdn: String,
    /// Attribute name (compared byte for byte by the store) and its values.
    pub attributes: Vec<(String, Vec<Vec<u8>>)>,
    /// Attributes whose values lie in a table of their own, and how these change. One that the entry
    /// has and that is not listed here goes with all its values.
    pub large: Vec<LargeEdit>,
}
