//! The faults of definitions, names and entries.

use keyway_codec::message::ResultCode;
use std::fmt;

/// Why definitions do not make a schema. Their author is at fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaError {
    /// The definition, by its name or OID.
    pub definition: String,
    /// Why it is wrong.
    pub why: String,
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "schema: {}: {}", self.definition, self.why)
    }
}

impl std::error::Error for SchemaError {}

impl SchemaError {
    /// Where a definition stands that cannot be read.
    pub(crate) fn place(error: &keyway_codec::definitions::DefinitionError) -> String {
        keyway_codec::definitions::DefinitionError { why: String::new(), ..error.clone() }
            .to_string()
            .trim_end_matches([' ', ':'])
            .to_owned()
    }

    pub(crate) fn new(definition: &str, why: impl Into<String>) -> Self {
        SchemaError { definition: definition.into(), why: why.into() }
    }
}

/// Why a name is none, in words. Its author is at fault; a response says `invalidDNSyntax`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameError(pub String);

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NameError {}

/// A demand of the schema that an entry does not meet. The entry's author is at fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// How a response says it (RFC 4511 § 4.1.9).
    pub code: ResultCode,
    /// Why it is wrong, in words.
    pub why: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl std::error::Error for Violation {}
