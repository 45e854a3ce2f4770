//! rustls on the engine.
//!
//! [`provider`] makes rustls' `CryptoProvider` out of an [`Engine`]: every record sealed or opened,
//! every hash, MAC and key derivation, every key exchange, every signature made or checked and
//! every random byte is a request to that engine, so it is counted, scheduled and observed like all
//! other cryptography of the process. [`server_config`] and [`client_config`] put it to use, any
//! number of times: the part that they share ([`ServerOptions`]) is made once, and nothing is
//! leaked twice.
//!
//! The suites of TLS 1.3 have QUIC's keys, so the same two configurations put QUIC on the engine:
//! with quinn, `quinn::crypto::rustls::QuicServerConfig::try_from(server_config)` and its client's
//! counterpart are all there is to do (and ALPN, which QUIC asks for).
//!
//! rustls lets some operations fail and others not. Where it does, the engine's error is passed on.
//! Where it does not, the answer is replaced by random bytes, so that the connection cannot
//! continue; the module `random_fallback` says why that is safe.
//!
//! These may not enter: any primitive (that is a driver's), any socket, and any rustls feature that
//! brings a provider of its own.
//!
//! # A server and a client
//!
//! This is `examples/handshake.rs`; as a part of this page it is also run by `cargo test`.
//!
//! ```
#![doc = include_str!("../examples/handshake.rs")]
//! ```
#![forbid(unsafe_code)]

mod aead;
mod certified;
mod clients;
mod config;
mod error;
mod exchange;
mod groups;
mod hash;
mod hkdf;
mod hybrid;
mod limits;
mod peers;
mod prf;
mod quic;
mod random;
mod random_fallback;
mod sign;
mod suites;
mod table;
mod ticket;
mod verify;

pub use certified::Certified;
pub use clients::ClientVerifier;
pub use config::{ServerOptions, VERSIONS, client_config, server_config, server_config_with};
pub use error::ConfigError;
pub use peers::{PeerVerifier, TrustPeer};
pub use suites::suites_by_name;
pub use ticket::Tickets;

use keyway_engine::{Algorithm, Engine};
use keyway_lock::Unpoisoned;
use rustls::crypto::CryptoProvider;
use std::sync::{Arc, Mutex};
use table::{leak, offers};

/// A provider that was made, and for what.
struct Known {
    engine: &'static Engine,
    /// The algorithms that the engine offered then.
    offered: Vec<Algorithm>,
    provider: Arc<CryptoProvider>,
}

/// All of them. rustls wants its tables to live as long as the process.
static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());

/// A provider for rustls that asks `engine` for everything. It offers what the engine's drivers
/// can do when this is called, strongest and post-quantum first.
///
/// rustls wants its tables to live as long as the process. The first call for an engine therefore
/// leaks about three kilobytes and keeps the engine alive for good; the next ones give the same
/// provider again, unless drivers have come or gone meanwhile so that it offers something else.
pub fn provider(engine: &Engine) -> Arc<CryptoProvider> {
    let offered: Vec<_> =
        Algorithm::ALL.iter().copied().filter(|algorithm| offers(engine, *algorithm)).collect();
    let mut known = KNOWN.lock().unpoisoned();
    let of_engine = |known: &&Known| known.engine.is_same(engine);
    if let Some(known) = known.iter().filter(of_engine).find(|known| known.offered == offered) {
        return known.provider.clone();
    }
    let kept = known.iter().find(of_engine).map(|known| known.engine);
    let engine = kept.unwrap_or_else(|| leak(engine.clone()));
    let provider = Arc::new(CryptoProvider {
        cipher_suites: suites::suites(engine),
        kx_groups: groups::groups(engine),
        signature_verification_algorithms: verify::algorithms(engine),
        secure_random: leak(random::Random { engine }),
        key_provider: leak(sign::Keys { engine }),
    });
    known.push(Known { engine, offered, provider: provider.clone() });
    provider
}
