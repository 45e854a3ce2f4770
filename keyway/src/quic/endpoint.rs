//! Endpoints: quinn, with our keys, our sockets, and words for what goes wrong.

use super::DATA;
use super::arguments::{Cipher, Crypto, Group, Transport, Trust};
use super::stages::{Stages, TimedSocket, timed_suites};
use super::target::Target;
use crate::data::name;
use crate::failure::{Failure, plain};
use crate::listeners;
use quinn::crypto::rustls::{HandshakeData, QuicClientConfig, QuicServerConfig};
use quinn::{
    Connection, ConnectionError, Endpoint, EndpointConfig, MtuDiscoveryConfig, Runtime,
    TokioRuntime, TransportConfig, VarInt,
};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, aws_lc_rs, ring};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::version::TLS13;
use rustls::{
    AlertDescription, CipherSuite, ClientConfig, DigitallySignedStruct, NamedGroup, RootCertStore,
    ServerConfig, SignatureScheme,
};
use rustls_pki_types::pem::PemObject;
use std::fmt::Display;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;
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
/// What the system is asked to keep of datagrams for us, in bytes; it may allow less.
const SOCKET_BYTES: usize = 2 << 20;
/// Where Debian, Fedora and their kin keep the authorities that the system trusts.
const SYSTEM_AUTHORITIES: [&str; 2] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];

/// What all endpoints of a command have in common.
pub struct Host {
    provider: Arc<CryptoProvider>,
    /// The suite that every connection begins with (RFC 9001 § 5.2).
    initial: rustls::quic::Suite,
    transport: Arc<TransportConfig>,
    mtu: Option<u16>,
    /// What its keys and sockets took.
    pub stages: Arc<Stages>,
}

impl Host {
    /// With this cryptography; if a cipher or a key exchange is demanded, with no other.
    ///
    /// # Errors
    /// If the cryptography cannot do QUIC, or not what is demanded.
    pub fn new(
        arguments: &Transport,
        cipher: Option<Cipher>,
        group: Option<Group>,
    ) -> Result<Host, Failure> {
        let stages = Stages::new();
        let mut provider = match arguments.crypto {
            Crypto::Keyway => (*keyway_tls::provider(&keyway_drivers::engine())).clone(),
            Crypto::Ring => ring::default_provider(),
            Crypto::AwsLc => aws_lc_rs::default_provider(),
        };
        provider.cipher_suites = timed_suites(&provider.cipher_suites, &stages);
        let with = |wanted| provider.cipher_suites.iter().find(|suite| suite.suite() == wanted);
        let initial = with(CipherSuite::TLS13_AES_128_GCM_SHA256)
            .and_then(|suite| suite.tls13()?.quic_suite())
            .ok_or_else(|| Failure::new("this cryptography has no keys for QUIC"))?;
        if let Some(cipher) = cipher {
            let suite = match cipher {
                Cipher::Aes128Gcm => CipherSuite::TLS13_AES_128_GCM_SHA256,
                Cipher::Aes256Gcm => CipherSuite::TLS13_AES_256_GCM_SHA384,
                Cipher::ChaCha20Poly1305 => CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
            };
            provider.cipher_suites.retain(|other| other.suite() == suite);
        }
        if let Some(group) = group {
            let name = match group {
                Group::X25519MlKem768 => NamedGroup::X25519MLKEM768,
                Group::X25519 => NamedGroup::X25519,
                Group::Secp256r1 => NamedGroup::secp256r1,
                Group::Secp384r1 => NamedGroup::secp384r1,
            };
            provider.kx_groups.retain(|other| other.name() == name);
            if provider.kx_groups.is_empty() {
                return Err(Failure::usage("this cryptography has no such key exchange (--group)"));
            }
        }
        let mut transport = TransportConfig::default();
        if let Some(mtu) = arguments.mtu {
            let mut discovery = MtuDiscoveryConfig::default();
            discovery.upper_bound(mtu);
            transport.initial_mtu(mtu).mtu_discovery_config(Some(discovery));
        }
        Ok(Host {
            provider: Arc::new(provider),
            initial,
            transport: Arc::new(transport),
            mtu: arguments.mtu,
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
    ) -> Result<Endpoint, Failure> {
        let bad = |why: &dyn Display| Failure::new(format!("cannot serve: {why}"));
        let mut tls = ServerConfig::builder_with_provider(self.provider.clone())
            .with_protocol_versions(&[&TLS13])
            .map_err(|why| bad(&why))?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|why| bad(&why))?;
        tls.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        let tls =
            QuicServerConfig::with_initial(Arc::new(tls), self.initial).map_err(|why| bad(&why))?;
        let mut config = quinn::ServerConfig::with_crypto(Arc::new(tls));
        config.transport_config(self.transport.clone());
        self.endpoint(Some(config), socket)
    }

    /// A client, on a port that the system chooses.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn client(&self) -> Result<Endpoint, Failure> {
        // A socket of IPv6 reaches IPv4 too, where there is IPv6 at all.
        let socket = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))
            .or_else(|_| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))
            .map_err(|why| Failure::new(format!("cannot open a socket: {}", plain(&why))))?;
        self.endpoint(None, socket)
    }

    fn endpoint(
        &self,
        server: Option<quinn::ServerConfig>,
        socket: UdpSocket,
    ) -> Result<Endpoint, Failure> {
        // With less it is slower; that is no reason not to start.
        let _ = set_socket_recv_buffer_size(&socket, SOCKET_BYTES);
        let _ = set_socket_send_buffer_size(&socket, SOCKET_BYTES);
        let mut config = EndpointConfig::default();
        if let Some(mtu) = self.mtu {
            config
                .max_udp_payload_size(mtu)
                .map_err(|why| Failure::new(format!("--mtu {mtu}: {why}")))?;
        }
        let runtime = Arc::new(TokioRuntime);
        let socket = runtime
            .wrap_udp_socket(socket)
            .map(|socket| TimedSocket::new(socket, self.stages.clone()));
        socket
            .and_then(|socket| Endpoint::new_with_abstract_socket(config, server, socket, runtime))
            .map_err(|why| Failure::new(format!("cannot open a socket: {}", plain(&why))))
    }

    /// What a client is configured with. Each of its connections has a full handshake.
    ///
    /// # Errors
    /// If the cryptography cannot do TLS 1.3.
    pub fn client_config(
        &self,
        authorities: Option<Arc<RootCertStore>>,
        protocol: &[u8],
    ) -> Result<quinn::ClientConfig, Failure> {
        let bad = |why: &dyn Display| Failure::new(format!("cannot connect: {why}"));
        let algorithms = self.provider.signature_verification_algorithms;
        let verifier: Arc<dyn ServerCertVerifier> = match authorities {
            Some(roots) => {
                WebPkiServerVerifier::builder_with_provider(roots, self.provider.clone())
                    .build()
                    .map_err(|why| bad(&why))?
            }
            None => Arc::new(Anybody(algorithms)),
        };
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

/// Binds a server's socket.
///
/// # Errors
/// As for the sockets of the directory.
pub fn bind(address: SocketAddr, flag: &str) -> Result<UdpSocket, Failure> {
    UdpSocket::bind(address).map_err(|why| listeners::refused(address, flag, &why))
}

/// Who is trusted to say who the server is; `None` is anybody.
///
/// # Errors
/// If there is nobody, or the file is not what it should be.
pub fn authorities(trust: &Trust) -> Result<Option<Arc<RootCertStore>>, Failure> {
    if trust.insecure {
        return Ok(None);
    }
    let mut roots = RootCertStore::empty();
    if let Some(path) = &trust.ca {
        let pem = std::fs::read(path).map_err(|why| Failure::system("read", path, &why))?;
        add(&mut roots, &pem);
        if roots.is_empty() {
            let path = path.display();
            return Err(Failure::new(format!(
                "there is no certificate of an authority in {path}; it should be a PEM file"
            )));
        }
        return Ok(Some(Arc::new(roots)));
    }
    let own = Path::new(DATA).join(name::CA_CERTIFICATE);
    let usual = SYSTEM_AUTHORITIES.iter().map(Path::new);
    for path in usual.chain([own.as_path()]) {
        // One that is not there is not trusted.
        add(&mut roots, &std::fs::read(path).unwrap_or_default());
    }
    if roots.is_empty() {
        return Err(Failure::usage(
            "no certificate authority is known on this machine; name one with --ca FILE, or take \
             any certificate with --insecure",
        ));
    }
    Ok(Some(Arc::new(roots)))
}

/// Adds those that can be used: systems also trust some that cannot.
fn add(roots: &mut RootCertStore, pem: &[u8]) {
    for certificate in CertificateDer::pem_slice_iter(pem).flatten() {
        let _ = roots.add(certificate);
    }
}

/// Takes any certificate, but no wrong signature under it.
#[derive(Debug)]
struct Anybody(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, certificate, signature, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signature, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

/// Connects to a server, at the first of its addresses that answers.
///
/// # Errors
/// Who did not answer, or what was wrong with the answer.
pub async fn connect(
    endpoint: &Endpoint,
    config: &quinn::ClientConfig,
    to: &Target,
) -> Result<Connection, Failure> {
    let (host, authority) = (&to.host, to.authority());
    let unknown =
        || Failure::new(format!("there is no host {host}; look at the address's spelling"));
    let addresses = tokio::net::lookup_host((host.as_str(), to.port)).await;
    let mut last = None;
    for address in addresses.map_err(|_| unknown())? {
        let attempt = async {
            let connecting = endpoint
                .connect_with(config.clone(), address, host)
                .map_err(|why| Failure::new(format!("cannot connect to {authority}: {why}")))?;
            connecting.await.map_err(|why| describe(&authority, &why))
        };
        let silent = || describe(&authority, &ConnectionError::TimedOut);
        last = Some(tokio::select! {
            result = timeout(CONNECT_TIME, attempt) => result.unwrap_or_else(|_| Err(silent())),
            () = is_closed(address) => Err(Failure::new(format!(
                "nobody listens at {authority} (UDP); keyway quic serve starts a server"
            ))),
        });
        if matches!(last, Some(Ok(_))) {
            break;
        }
    }
    last.unwrap_or_else(|| Err(unknown()))
}

/// Returns if the other system says that nobody has the port. quinn cannot hear that: it is told
/// only to sockets that speak to one address.
async fn is_closed(address: SocketAddr) {
    let refused = async {
        let any: SocketAddr = match address {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = tokio::net::UdpSocket::bind(any).await.ok()?;
        socket.connect(address).await.ok()?;
        // An empty datagram is no packet: who understands QUIC drops it.
        socket.send(&[]).await.ok()?;
        let heard = socket.recv(&mut [0]).await.err()?;
        (heard.kind() == std::io::ErrorKind::ConnectionRefused).then_some(())
    };
    if refused.await.is_none() {
        std::future::pending::<()>().await;
    }
}

/// Why there is no connection, or none any more.
pub fn describe(peer: &str, why: &ConnectionError) -> Failure {
    let is = |code: quinn::TransportErrorCode, alert: AlertDescription| {
        code == quinn::TransportErrorCode::crypto(u8::from(alert))
    };
    let wrong_protocol = || {
        format!("{peer} speaks QUIC, but not this protocol (ALPN); is it another kind of server?")
    };
    Failure::new(match why {
        ConnectionError::TimedOut => {
            format!("{peer} does not answer; is a QUIC server there, and does UDP get through?")
        }
        ConnectionError::VersionMismatch => format!("{peer} does not speak QUIC version 1"),
        ConnectionError::TransportError(error)
            if is(error.code, AlertDescription::NoApplicationProtocol) =>
        {
            wrong_protocol()
        }
        ConnectionError::ConnectionClosed(close)
            if is(close.error_code, AlertDescription::NoApplicationProtocol) =>
        {
            wrong_protocol()
        }
        ConnectionError::TransportError(error) if error.reason.contains("certificate") => {
            format!(
                "{peer} is not believed: {}; name its certificate authority with --ca FILE, or \
                 take any certificate with --insecure",
                error.reason
            )
        }
        ConnectionError::ConnectionClosed(close)
            if is(close.error_code, AlertDescription::HandshakeFailure) =>
        {
            format!("{peer} has no cipher or no key exchange in common with us")
        }
        ConnectionError::ApplicationClosed(_) | ConnectionError::ConnectionClosed(_) => {
            format!("{peer} closed the connection: {why}")
        }
        ConnectionError::Reset => format!("{peer} has forgotten the connection; was it restarted?"),
        _ => format!("the connection to {peer} failed: {why}"),
    })
}

/// What both sides agreed to speak.
pub fn protocol(connection: &Connection) -> Vec<u8> {
    let data = connection.handshake_data().and_then(|data| data.downcast::<HandshakeData>().ok());
    data.and_then(|data| data.protocol).unwrap_or_default()
}

/// Tells all peers that it is over, and gives them a moment to hear it.
pub async fn close(endpoint: &Endpoint) {
    endpoint.close(NO_ERROR, b"");
    let _ = timeout(CLOSE_TIME, endpoint.wait_idle()).await;
}
