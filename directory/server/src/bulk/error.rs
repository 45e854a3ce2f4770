//! Why an export ended early.

use crate::failure::Failure;
use std::fmt;
use std::io;

/// Why an export ended early.
#[derive(Debug)]
pub enum ExportError {
    /// The directory is at fault, or what was asked of it.
    Directory(Failure),
    /// The output that was written to is at fault.
    Output(io::Error),
}

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExportError::Directory(failure) => f.write_str(&failure.diagnostic),
            ExportError::Output(error) => write!(f, "writing the export: {error}"),
        }
    }
}

impl std::error::Error for ExportError {}

impl From<keyway_store::Error> for ExportError {
    fn from(error: keyway_store::Error) -> Self {
        ExportError::Directory(error.into())
    }
}

impl From<Failure> for ExportError {
    fn from(failure: Failure) -> Self {
        ExportError::Directory(failure)
    }
}

impl From<io::Error> for ExportError {
    fn from(error: io::Error) -> Self {
        ExportError::Output(error)
    }
}
