//! The configurations of a server and a client of ours.

use crate::certified::{ByHost, Certified};
use crate::error::ConfigError;
use crate::provider;
use crate::ticket::Tickets;
use keyway_engine::Engine;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoClientAuth, NoServerSessionStorage, ProducesTickets};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, RootCertStore, ServerConfig, SupportedProtocolVersion};
use std::sync::Arc;
use std::time::Instant;

/// TLS 1.3 and 1.2.
pub const VERSIONS: &[&SupportedProtocolVersion] = &[&TLS13, &TLS12];

/// The options that a server's configurations have in common. Made once and given to each, it lets
/// tickets of an earlier one open under a later one.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The provider of the cryptography.
    pub provider: Arc<CryptoProvider>,
    /// The versions of TLS that are spoken: [`VERSIONS`], or some of them.
    pub versions: &'static [&'static SupportedProtocolVersion],
    /// The sealer of session tickets. A client that resumes is not verified again: a server that
    /// trusts fewer clients than before needs new [`Tickets`], too.
    pub tickets: Arc<dyn ProducesTickets>,
    /// Whether clients are asked for a certificate, and which are taken: a
    /// [`ClientVerifier`](crate::ClientVerifier), rustls' `NoClientAuth`, or another.
    pub clients: Arc<dyn ClientCertVerifier>,
}

impl ServerOptions {
    /// The engine's [`provider`], [`Tickets`] of its own, and no certificates of clients.
    ///
    /// # Errors
    /// [`ConfigError::Tickets`].
    pub fn new(engine: &Engine) -> Result<ServerOptions, ConfigError> {
        let tickets = Tickets::new(engine.clone(), Instant::now()).map_err(ConfigError::Tickets)?;
        Ok(ServerOptions {
            provider: provider(engine),
            versions: VERSIONS,
            tickets: Arc::new(tickets),
            clients: Arc::new(NoClientAuth),
        })
    }
}

/// A server's configuration with one certificate. `chain` starts with the server's own.
///
/// # Errors
/// [`ConfigError::Engine`] and [`ConfigError::Certificate`].
pub fn server_config(
    options: &ServerOptions,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ServerConfig, ConfigError> {
    let certified = Certified::new(&options.provider, chain, key, &[])?;
    server_config_with(options, &[certified])
}

/// A server's configuration: resumption by tickets, no ALPN, no early data. A client gets the
/// certificate of the host that it asks for; one that names none of them, the first.
///
/// # Errors
/// [`ConfigError::Engine`].
pub fn server_config_with(
    options: &ServerOptions,
    certificates: &[Certified],
) -> Result<ServerConfig, ConfigError> {
    let mut config = ServerConfig::builder_with_provider(options.provider.clone())
        .with_protocol_versions(options.versions)
        .map_err(ConfigError::Engine)?
        .with_client_cert_verifier(options.clients.clone())
        .with_cert_resolver(Arc::new(ByHost::new(certificates)));
    config.ticketer = options.tickets.clone();
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(config)
}

/// A client's configuration: TLS 1.3 and 1.2, resumption, no certificate of its own, no ALPN.
///
/// The server's certificate must be issued by one of `roots`.
///
/// # Errors
/// [`ConfigError::Engine`].
pub fn client_config(
    provider: &Arc<CryptoProvider>,
    roots: RootCertStore,
) -> Result<ClientConfig, ConfigError> {
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(VERSIONS)
        .map_err(ConfigError::Engine)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}
