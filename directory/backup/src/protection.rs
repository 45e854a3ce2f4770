//! The kinds of secrets that open repositories.

use std::fmt;

/// The kind of secret that opens a repository, chosen when it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Protection {
    /// A passphrase.
    Passphrase,
    /// A file of 32 bytes.
    KeyFile,
    /// A key that another process holds.
    Held {
        /// Its label.
        label: String,
    },
}

impl fmt::Display for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Protection::Passphrase => f.write_str("a passphrase"),
            Protection::KeyFile => f.write_str("a key file"),
            Protection::Held { label } => write!(f, "cryptod's key {label}"),
        }
    }
}
