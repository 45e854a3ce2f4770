//! Names as they are held in memory.

use std::fmt;

/// A distinguished name: RDNs from the entry itself upwards. Without any it is the root's.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Dn {
    /// The RDNs, that of the entry itself first.
    pub rdns: Vec<Rdn>,
}

/// A relative distinguished name: a set of attribute values, in the order they were written in.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Rdn {
    /// The attribute values; at least one.
    pub avas: Vec<Ava>,
}

/// An attribute value assertion: a type and its value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Ava {
    /// The attribute type, a short name or a numeric OID, as it was written.
    pub attribute: String,
    /// The value in its LDAP form, with escapes resolved.
    pub value: Vec<u8>,
}

/// Why a text is not a distinguished name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DnError {
    /// The byte offset in the text.
    pub at: usize,
    /// Why it is wrong.
    pub why: &'static str,
}

impl fmt::Display for DnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "name is wrong at byte {}: {}", self.at, self.why)
    }
}

impl std::error::Error for DnError {}
