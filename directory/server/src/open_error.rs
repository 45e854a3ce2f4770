//! Why a directory could not be opened.

use crate::failure::Failure;
use keyway_schema::{NameError, SchemaError};
use std::fmt;

/// Why a directory could not be opened.
#[derive(Debug)]
pub enum OpenError {
    /// The schema's definitions are at fault.
    Schema(SchemaError),
    /// The settings are at fault; the text says where.
    Settings(String),
    /// The settings name an attribute that is not known.
    UnknownAttribute(String),
    /// The store could not be read or written, or holds what this program does not understand.
    Store(String),
    /// The engine is at fault.
    Engine(keyway_engine::Error),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Schema(error) => error.fmt(f),
            OpenError::Settings(why) | OpenError::Store(why) => f.write_str(why),
            OpenError::UnknownAttribute(name) => write!(f, "there is no attribute \"{name}\""),
            OpenError::Engine(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<keyway_store::Error> for OpenError {
    fn from(error: keyway_store::Error) -> Self {
        OpenError::Store(error.to_string())
    }
}

impl From<NameError> for OpenError {
    fn from(error: NameError) -> Self {
        OpenError::Store(error.to_string())
    }
}

impl From<Failure> for OpenError {
    fn from(failure: Failure) -> Self {
        OpenError::Store(failure.diagnostic)
    }
}
