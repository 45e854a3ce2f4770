//! Random stand-ins for when the engine fails.
//!
//! Most of rustls' traits return a `Result`; there the engine's error is passed on ([`fault`]).
//! Hashing, HKDF's expansion, TLS 1.2's PRF and HMAC cannot fail in rustls' eyes, and an error from
//! sealing a record makes rustls panic. There the answer is replaced by unpredictable bytes
//! ([`fill`]), fresh ones each time:
//!
//! - a digest of a transcript then differs from the peer's, so no Finished, no signature and no
//!   binder over it checks, on either side;
//! - a secret or a key is then one that the peer does not have and an attacker cannot guess, so
//!   the first record under it does not open;
//! - a sealed record is then noise of the right length that does not open at the peer, and holds
//!   nothing of the plaintext.
//!
//! Each ends in an alert and a closed connection. Zeros, or what was in the buffer before, would
//! also end the handshake with an honest peer, but would give a dishonest one a key it knows.

use keyway_engine::Engine;
use std::sync::Arc;

/// The engine's error as rustls carries it.
pub(crate) fn fault(error: keyway_engine::Error) -> rustls::Error {
    rustls::Error::Other(rustls::OtherError(Arc::new(error)))
}

/// Fills `out` with unpredictable bytes: the engine's, else the operating system's.
///
/// # Panics
/// If neither has any. There is then no safe answer, and the connection's task ends here.
pub(crate) fn fill(engine: &Engine, out: &mut [u8]) {
    if engine.random(out).is_err() {
        getrandom::fill(out).expect("neither the engine nor the operating system has random bytes");
    }
}
