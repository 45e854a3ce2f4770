//! The parts that descriptions have in common, and their errors.

use std::fmt;

/// A syntax, and the length that a server should at least allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxReference {
    /// The numeric OID.
    pub oid: String,
    /// In characters if the syntax is a string's, else in bytes. Nothing enforces it.
    pub length_suggested: Option<u32>,
}

/// The usage of an attribute type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Usage {
    /// `userApplications`: it holds users' information.
    #[default]
    UserApplications,
    /// `directoryOperation`: it is operational.
    DirectoryOperation,
    /// `distributedOperation`: it is operational, and shared by servers.
    DistributedOperation,
    /// `dSAOperation`: it is operational, and one server's own.
    DsaOperation,
}

/// Why a text is not a description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DescriptionError {
    /// The byte offset in the text.
    pub at: usize,
    /// Why it is wrong.
    pub why: &'static str,
}

impl fmt::Display for DescriptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "description is wrong at byte {}: {}", self.at, self.why)
    }
}

impl std::error::Error for DescriptionError {}
