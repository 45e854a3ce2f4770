//! What a server and a client of ours are configured with.

use crate::provider;
use crate::ticket::Tickets;
use keyway_engine::Engine;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, VerifierBuilderError, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, RootCertStore, ServerConfig, SupportedProtocolVersion};
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

const VERSIONS: &[&SupportedProtocolVersion] = &[&TLS13, &TLS12];

/// Why there is no configuration.
#[derive(Debug)]
pub enum ConfigError {
    /// The engine cannot do enough for TLS.
    Engine(rustls::Error),
    /// The certificate or its private key is malformed, of no type that can be used, or the two
    /// do not belong together.
    Certificate(rustls::Error),
    /// The authorities that clients' certificates are to be checked against cannot be used.
    ClientAuthorities(VerifierBuilderError),
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
            ConfigError::ClientAuthorities(error) => {
                write!(f, "the authorities for client certificates cannot be used: {error}")
            }
            ConfigError::Tickets(error) => write!(f, "no key for session tickets: {error}"),
        }
    }
}

impl std::error::Error for ConfigError {}

/// A server's configuration: TLS 1.3 and 1.2, resumption by tickets, no ALPN, no early data.
///
/// `chain` starts with the server's own certificate. With `client_authorities` a client is asked
/// for a certificate; it may have none, but one that it shows must be issued by one of them. Each
/// call makes a [`provider`], with the leak that it has.
///
/// # Errors
/// See [`ConfigError`].
pub fn server_config(
    engine: &Engine,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    client_authorities: Option<RootCertStore>,
) -> Result<ServerConfig, ConfigError> {
    let provider = provider(engine);
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(VERSIONS)
        .map_err(ConfigError::Engine)?;
    let clients = match client_authorities {
        None => WebPkiClientVerifier::no_client_auth(),
        Some(roots) => WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .allow_unauthenticated()
            .build()
            .map_err(ConfigError::ClientAuthorities)?,
    };
    let mut config = builder
        .with_client_cert_verifier(clients)
        .with_single_cert(chain, key)
        .map_err(ConfigError::Certificate)?;
    let tickets = Tickets::new(engine.clone(), Instant::now()).map_err(ConfigError::Tickets)?;
    config.ticketer = Arc::new(tickets);
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(config)
}

/// A client's configuration: TLS 1.3 and 1.2, resumption, no certificate of its own, no ALPN.
///
/// The server's certificate must be issued by one of `roots`. Each call makes a [`provider`], with
/// the leak that it has.
///
/// # Errors
/// [`ConfigError::Engine`].
pub fn client_config(engine: &Engine, roots: RootCertStore) -> Result<ClientConfig, ConfigError> {
    let config = ClientConfig::builder_with_provider(provider(engine))
        .with_protocol_versions(VERSIONS)
        .map_err(ConfigError::Engine)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}
