//! Errors of a configuration.

use std::fmt;

/// Why there is no configuration.
#[derive(Debug)]
pub enum ConfigError {
    /// The engine cannot do enough for TLS.
    Engine(rustls::Error),
    /// The certificate or its private key is malformed, of no type that can be used, or the two
    /// do not belong together.
    Certificate(rustls::Error),
    /// There are no authorities that clients' certificates could be checked against.
    ClientAuthorities,
    /// A certificate revocation list, counted from 0, cannot be used.
    RevocationList(usize, rustls::Error),
    /// The engine gave no key to seal session tickets with.
    Tickets(keyway_engine::Error),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::Engine(error) => write!(f, "the engine cannot do TLS: {error}"),
            ConfigError::Certificate(error) => {
                write!(f, "the TLS certificate or its key cannot be used: {error}")
            }
            ConfigError::ClientAuthorities => {
                f.write_str("there are no authorities for client certificates")
            }
            ConfigError::RevocationList(index, error) => {
                write!(f, "revocation list {index} cannot be used: {error}")
            }
            ConfigError::Tickets(error) => write!(f, "no key for session tickets: {error}"),
        }
    }
}

impl std::error::Error for ConfigError {}
