//! The cryptography of endpoints, and the authorities that they trust.

use super::arguments::{Cipher, Crypto, DATA, Group, Transport, Trust};
use crate::quic::failed::failed;
use keyway_engine::Engine;
use keyway_folder::data::name;
use keyway_folder::trust;
use keyway_host::failure::Failure;
use keyway_quic::{Host, Options};
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::{aws_lc_rs, ring};
use rustls::{CipherSuite, NamedGroup};
use std::path::Path;
use std::sync::Arc;
use tokio::runtime::Runtime;

/// The part that all endpoints of a command share; with this engine, unless they are to have
/// another's cryptography.
///
/// # Errors
/// If the cryptography cannot do QUIC, or not what is demanded.
pub fn host(
    engine: &Engine,
    transport: &Transport,
    cipher: Option<Cipher>,
    group: Option<Group>,
) -> Result<Host, Failure> {
    let provider = match transport.crypto {
        Crypto::Keyway => (*keyway_tls::provider(engine)).clone(),
        Crypto::Ring => ring::default_provider(),
        Crypto::AwsLc => aws_lc_rs::default_provider(),
    };
    let cipher = cipher.map(|cipher| match cipher {
        Cipher::Aes128Gcm => CipherSuite::TLS13_AES_128_GCM_SHA256,
        Cipher::Aes256Gcm => CipherSuite::TLS13_AES_256_GCM_SHA384,
        Cipher::ChaCha20Poly1305 => CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
    });
    let group = group.map(|group| match group {
        Group::X25519MlKem768 => NamedGroup::X25519MLKEM768,
        Group::X25519 => NamedGroup::X25519,
        Group::Secp256r1 => NamedGroup::secp256r1,
        Group::Secp384r1 => NamedGroup::secp384r1,
    });
    Host::new(Options { provider, cipher, group, mtu: transport.mtu }).map_err(|why| failed(&why))
}

/// The threads of a command.
///
/// # Errors
/// If the system gives none.
pub fn runtime(transport: &Transport) -> Result<Runtime, Failure> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if let Some(threads) = transport.threads {
        builder.worker_threads(threads.into());
    }
    let runtime = builder.enable_all().thread_name("quic").build();
    runtime.map_err(|why| Failure::new(format!("cannot start threads: {why}")))
}

/// Which servers are taken.
///
/// # Errors
/// If the authorities cannot be read.
pub fn verifier(
    engine: &Engine,
    arguments: &Trust,
) -> Result<Arc<dyn ServerCertVerifier>, Failure> {
    trust::warn(arguments.insecure);
    let trust = keyway_load::Trust {
        ca: arguments.ca.clone(),
        own_ca: Some(Path::new(DATA).join(name::CA_CERTIFICATE)),
        insecure: arguments.insecure,
        ..keyway_load::Trust::default()
    };
    Ok(trust.verifier(&keyway_tls::provider(engine))?)
}
