//! The cryptography of TLS, where this program is a client.

use rustls::crypto::CryptoProvider;
use std::sync::Arc;

/// A provider on an engine of its own.
pub fn provider() -> Arc<CryptoProvider> {
    keyway_tls::provider(&keyway_drivers::engine())
}
