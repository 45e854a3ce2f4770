//! The protocol of a connection.

use crate::tls::Tls;

/// The protocol of the octets.
#[derive(Debug)]
pub(super) enum Mode {
    /// Nothing was seen yet.
    Unknown,
    Ldap,
    /// Within TLS that can be read, or may be.
    Tls(Box<Tls>),
    /// Something else, or nothing that can be read.
    Ignored,
}
