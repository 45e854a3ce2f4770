//! Errors of templates, and of making entries of them.

use std::fmt;
use std::io;

/// Where in a template, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateError {
    /// The file, as it was named.
    pub file: String,
    /// Counted from 1.
    pub line: u32,
    /// In characters, counted from 1.
    pub column: u32,
    /// The fault.
    pub why: String,
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TemplateError { file, line, column, why } = self;
        write!(f, "{file}, line {line}, column {column}: {why}")
    }
}

impl std::error::Error for TemplateError {}

/// Why an entry could not be made or written.
#[derive(Debug)]
pub enum MakeError {
    /// Its values take more than [`crate::limits::ENTRY_BYTES_MAX`].
    TooLarge {
        /// The entry, counted from 0.
        entry: u64,
        /// The attribute whose value was too much.
        attribute: String,
    },
    /// An attribute of its name has come out empty.
    NoName {
        /// The entry, counted from 0.
        entry: u64,
        /// The attribute.
        attribute: String,
    },
    /// A command of `<exec>` failed.
    Exec {
        /// The command.
        command: String,
        /// How.
        why: String,
    },
    /// The compressor failed.
    Compress(io::Error),
    /// A thread that makes entries has died.
    Thread,
}

impl fmt::Display for MakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MakeError::TooLarge { entry, attribute } => write!(
                f,
                "entry {entry} has more than {} bytes at {attribute}; make fewer or shorter values",
                crate::limits::ENTRY_BYTES_MAX
            ),
            MakeError::NoName { entry, attribute } => write!(
                f,
                "entry {entry} has no name: {attribute}, which names it, has come out empty"
            ),
            MakeError::Exec { command, why } => write!(f, "<exec:{command}>: {why}"),
            MakeError::Compress(why) => write!(f, "cannot compress: {why}"),
            MakeError::Thread => f.write_str("a thread that makes entries has ended too early"),
        }
    }
}

impl std::error::Error for MakeError {}

impl MakeError {
    /// This error, with the attribute that it was about.
    pub(crate) fn at(self, name: &str) -> MakeError {
        match self {
            MakeError::TooLarge { entry, attribute } if attribute.is_empty() => {
                MakeError::TooLarge { entry, attribute: name.to_owned() }
            }
            other => other,
        }
    }
}
