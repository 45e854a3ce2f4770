//! Endpoints: quinn, with the cryptography it is given and sockets that are timed.

use crate::error::Error;
use crate::stages::{Stages, TimedSocket, timed_suites};
use crate::target::Target;
use quinn::crypto::rustls::{HandshakeData, QuicClientConfig, QuicServerConfig};
use quinn::{
    Connection, ConnectionError, Endpoint, EndpointConfig, MtuDiscoveryConfig, Runtime,
    TokioRuntime, TransportConfig, VarInt,
};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};
use rustls::client::danger::ServerCertVerifier;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::ResolvesServerCert;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::TLS13;
use rustls::{
    CipherSuite, ClientConfig, InconsistentKeys, NamedGroup, RootCertStore, ServerConfig,
};
use std::fmt::Display;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// HTTP/0.9 over QUIC, as interoperability tests have it: a request and its file a stream.
pub const HQ: &[u8] = b"hq-interop";
/// The performance protocol of draft-banks-quic-performance.
pub const PERF: &[u8] = b"perf";
/// An end without complaint.
pub const NO_ERROR: VarInt = VarInt::from_u32(0);

/// How long a server may take to answer.
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// How long a peer may take to hear that it is over.
const CLOSE_TIME: Duration = Duration::from_secs(1);
/// The room that the system is asked to keep for our datagrams, in bytes; it may allow less.
const SOCKET_BYTES: usize = 2 << 20;
/// How packets are made and sent.
pub struct Options {
    /// The cryptography: its suites of TLS 1.3 that have QUIC keys are used.
    pub provider: CryptoProvider,
    /// The only suite, if one is demanded.
    pub cipher: Option<CipherSuite>,
    /// The only key exchange, if one is demanded.
    pub group: Option<NamedGroup>,
    /// Largest UDP payload, in bytes, taken to fit from the start; 1,200 or more. Without it quinn
    /// begins with 1,200, and takes up to 1,452 as probes get through.
    pub mtu: Option<u16>,
}

/// The settings that all endpoints of one purpose have in common.
pub struct Host {
    provider: Arc<CryptoProvider>,
    /// The suite that every connection begins with (RFC 9001 § 5.2).
    initial: rustls::quic::Suite,
    transport: Arc<TransportConfig>,
    mtu: Option<u16>,
    /// The times of its keys and sockets.
    pub stages: Arc<Stages>,
}

impl Host {
    /// With this cryptography; if a cipher or a key exchange is demanded, with no other.
    ///
    /// # Errors
    /// [`Error::NoQuicKeys`] and [`Error::NoSuchGroup`].
    pub fn new(options: Options) -> Result<Host, Error> {
        let Options { mut provider, cipher, group, mtu } = options;
        let stages = Stages::new();
        provider.cipher_suites = timed_suites(&provider.cipher_suites, &stages);
        let with = |wanted| provider.cipher_suites.iter().find(|suite| suite.suite() == wanted);
        let initial = with(CipherSuite::TLS13_AES_128_GCM_SHA256)
            .and_then(|suite| suite.tls13()?.quic_suite())
            .ok_or(Error::NoQuicKeys)?;
        if let Some(cipher) = cipher {
            provider.cipher_suites.retain(|other| other.suite() == cipher);
        }
        if let Some(group) = group {
            provider.kx_groups.retain(|other| other.name() == group);
            if provider.kx_groups.is_empty() {
                return Err(Error::NoSuchGroup);
            }
        }
        let mut transport = TransportConfig::default();
        if let Some(mtu) = mtu {
            let mut discovery = MtuDiscoveryConfig::default();
            discovery.upper_bound(mtu);
            transport.initial_mtu(mtu).mtu_discovery_config(Some(discovery));
        }
        Ok(Host {
            provider: Arc::new(provider),
            initial,
            transport: Arc::new(transport),
            mtu,
            stages,
        })
    }

    /// A server on a socket that is bound.
    ///
    /// # Errors
    /// If the certificate does not do, or the system refuses.
    pub fn server(
        &self,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
        protocols: &[&[u8]],
        socket: UdpSocket,
    ) -> Result<Endpoint, Error> {
        let bad = |why: rustls::Error| Error::Serve(why.to_string());
        let key = self.provider.key_provider.load_private_key(key).map_err(bad)?;
        let certified = CertifiedKey::new(chain, key);
        match certified.keys_match() {
            // One whose public half cannot be had may fit.
            Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => {}
            Err(why) => return Err(bad(why)),
        }
        self.server_with(Arc::new(SingleCertAndKey::from(certified)), protocols, socket)
    }

    /// As [`Self::server`], with certificates whose keys are elsewhere.
    ///
    /// # Errors
    /// If the cryptography cannot do TLS 1.3, or the system refuses.
    pub fn server_with(
        &self,
        certificates: Arc<dyn ResolvesServerCert>,
        protocols: &[&[u8]],
        socket: UdpSocket,
    ) -> Result<Endpoint, Error> {
        let mut tls = ServerConfig::builder_with_provider(self.provider.clone())
            .with_protocol_versions(&[&TLS13])
            .map_err(|why| Error::Serve(why.to_string()))?
            .with_no_client_auth()
            .with_cert_resolver(certificates);
        tls.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        let tls = QuicServerConfig::with_initial(Arc::new(tls), self.initial)
            .map_err(|why| Error::Serve(why.to_string()))?;
        let mut config = quinn::ServerConfig::with_crypto(Arc::new(tls));
        config.transport_config(self.transport.clone());
        self.endpoint(Some(config), socket)
    }

    /// A client, on a port that the system chooses.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn client(&self) -> Result<Endpoint, Error> {
        // A socket of IPv6 reaches IPv4 too, where there is IPv6 at all.
        let socket = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))
            .or_else(|_| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))
            .map_err(socket_refused)?;
        self.endpoint(None, socket)
    }

    fn endpoint(
        &self,
        server: Option<quinn::ServerConfig>,
        socket: UdpSocket,
    ) -> Result<Endpoint, Error> {
        // With less it is slower; that is no reason not to start.
        let _ = set_socket_recv_buffer_size(&socket, SOCKET_BYTES);
        let _ = set_socket_send_buffer_size(&socket, SOCKET_BYTES);
        let mut config = EndpointConfig::default();
        if let Some(mtu) = self.mtu {
            config.max_udp_payload_size(mtu).map_err(|why| Error::Mtu(mtu, why.to_string()))?;
        }
        let runtime = Arc::new(TokioRuntime);
        let socket = runtime
            .wrap_udp_socket(socket)
            .map(|socket| TimedSocket::new(socket, self.stages.clone()));
        socket
            .and_then(|socket| Endpoint::new_with_abstract_socket(config, server, socket, runtime))
            .map_err(socket_refused)
    }

    /// Takes servers whose certificates these authorities have issued.
    ///
    /// # Errors
    /// If there is no authority among them.
    pub fn verifier(
        &self,
        authorities: RootCertStore,
    ) -> Result<Arc<dyn ServerCertVerifier>, Error> {
        let roots = Arc::new(authorities);
        let verifier = WebPkiServerVerifier::builder_with_provider(roots, self.provider.clone());
        Ok(verifier.build().map_err(|why| Error::Connect(why.to_string()))?)
    }

    /// The configuration of a client. Each of its connections has a full handshake. `verifier` says
    /// which servers are taken.
    ///
    /// # Errors
    /// If the cryptography cannot do TLS 1.3.
    pub fn client_config(
        &self,
        verifier: Arc<dyn ServerCertVerifier>,
        protocol: &[u8],
    ) -> Result<quinn::ClientConfig, Error> {
        let bad = |why: &dyn Display| Error::Connect(why.to_string());
        let mut tls = ClientConfig::builder_with_provider(self.provider.clone())
            .with_protocol_versions(&[&TLS13])
            .map_err(|why| bad(&why))?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        tls.resumption = Resumption::disabled();
        tls.alpn_protocols = vec![protocol.to_vec()];
        let tls =
            QuicClientConfig::with_initial(Arc::new(tls), self.initial).map_err(|why| bad(&why))?;
        let mut config = quinn::ClientConfig::new(Arc::new(tls));
        config.transport_config(self.transport.clone());
        Ok(config)
    }
}

fn socket_refused(why: io::Error) -> Error {
    Error::Socket(Arc::new(why))
}

/// Connects to a server, at the first of its addresses that answers.
///
/// # Errors
/// The peer that did not answer, or the fault of its answer.
pub async fn connect(
    endpoint: &Endpoint,
    config: &quinn::ClientConfig,
    to: &Target,
) -> Result<Connection, Error> {
    let (host, peer) = (&to.host, to.authority());
    let unknown = || Error::UnknownHost(host.clone());
    let addresses = tokio::net::lookup_host((host.as_str(), to.port)).await;
    let mut last = None;
    for address in addresses.map_err(|_| unknown())? {
        let failed = |why| Error::Connection { peer: peer.clone(), why };
        let attempt = async {
            let connecting = endpoint
                .connect_with(config.clone(), address, host)
                .map_err(|why| Error::Address { peer: peer.clone(), why })?;
            connecting.await.map_err(failed)
        };
        let silent = || failed(ConnectionError::TimedOut);
        last = Some(tokio::select! {
            result = timeout(CONNECT_TIME, attempt) => result.unwrap_or_else(|_| Err(silent())),
            () = is_closed(address) => Err(Error::NobodyListens(peer.clone())),
        });
        if matches!(last, Some(Ok(_))) {
            break;
        }
    }
    last.unwrap_or_else(|| Err(unknown()))
}

/// Returns if the other system says that no program has the port.
async fn is_closed(address: SocketAddr) {
    let refused = async {
        let any: SocketAddr = match address {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = tokio::net::UdpSocket::bind(any).await.ok()?;
        socket.connect(address).await.ok()?;
        // An empty datagram is no packet: a QUIC endpoint drops it.
        socket.send(&[]).await.ok()?;
        let heard = socket.recv(&mut [0]).await.err()?;
        (heard.kind() == std::io::ErrorKind::ConnectionRefused).then_some(())
    };
    if refused.await.is_none() {
        std::future::pending::<()>().await;
    }
}

/// The protocol that both sides agreed to speak.
pub fn protocol(connection: &Connection) -> Vec<u8> {
    let data = connection.handshake_data().and_then(|data| data.downcast::<HandshakeData>().ok());
    data.and_then(|data| data.protocol).unwrap_or_default()
}

/// Tells all peers that it is over, and gives them up to a second to hear it.
pub async fn close(endpoint: &Endpoint) {
    endpoint.close(NO_ERROR, b"");
    let _ = timeout(CLOSE_TIME, endpoint.wait_idle()).await;
}
