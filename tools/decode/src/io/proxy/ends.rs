//! Both ends of a proxy, and how TLS is spoken with each.

use crate::proxy_protocol::ProxyProtocol;
use crate::{ServerAddress, Tap};
use keyway_host::failure::Failure;
use rustls::{ClientConfig, ServerConfig};
use rustls_pki_types::ServerName;
use std::sync::Arc;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// The settings of a proxy.
#[derive(Clone, Debug)]
pub struct ProxyOptions {
    /// The server.
    pub to: ServerAddress,
    /// How TLS is spoken with the server.
    pub with_server: Arc<ClientConfig>,
    /// How TLS is spoken with clients; without that, a StartTLS is passed on and what follows it cannot be read.
    pub with_clients: Option<Arc<ServerConfig>>,
    /// Whether clients begin with TLS.
    pub tls: bool,
    /// Whether the server is told the addresses of clients.
    pub header: Option<ProxyProtocol>,
}

/// The server and the clients of a proxy, as all its connections have them in common.
pub(super) struct Ends {
    pub to: ServerAddress,
    pub name: ServerName<'static>,
    pub connector: TlsConnector,
    pub acceptor: Option<TlsAcceptor>,
    /// Whether TLS begins at once.
    pub tls: bool,
    pub header: Option<ProxyProtocol>,
    pub tap: Arc<Tap>,
}

impl Ends {
    pub fn new(options: ProxyOptions, tap: Arc<Tap>) -> Result<Ends, Failure> {
        let ProxyOptions { to, with_server, with_clients, tls, header } = options;
        let name = ServerName::try_from(to.host.clone());
        let name = name.map_err(|_| Failure::usage(format!("{} is no host", to.host)))?;
        let (connector, acceptor) =
            (TlsConnector::from(with_server), with_clients.map(TlsAcceptor::from));
        Ok(Ends { to, name, connector, acceptor, tls, header, tap })
    }
}
