//! New TLS connections, each with a full handshake.

use keyway_tests::client::Client;
use rustls::client::Resumption;
use rustls::version::TLS13;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A certificate for slapd, which makes none itself.
pub struct Identity {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl Identity {
    /// Makes one, for P-256 as Keyway's.
    pub fn make(folder: &Path) -> Result<Identity, String> {
        let (certificate, key) = (folder.join("slapd.pem"), folder.join("slapd.key"));
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]);
        let made = made.map_err(|why| why.to_string())?;
        let written = fs::write(&certificate, made.cert.pem())
            .and_then(|()| fs::write(&key, made.signing_key.serialize_pem()));
        written.map_err(|why| format!("{}: {why}", folder.display()))?;
        Ok(Identity { certificate, key })
    }
}

/// Who is to be connected to.
pub struct Target<'a> {
    pub address: SocketAddr,
    /// Who issued its certificate.
    pub ca: &'a Path,
}

/// The configuration that connections are made with.
pub struct Connector {
    address: SocketAddr,
    config: Arc<ClientConfig>,
}

impl Target<'_> {
    pub fn connector(&self) -> Result<Connector, String> {
        let ca = CertificateDer::from_pem_file(self.ca)
            .map_err(|why| format!("{}: {why}", self.ca.display()))?;
        let mut roots = RootCertStore::empty();
        roots.add(ca).map_err(|why| why.to_string())?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .map_err(|why| why.to_string())?;
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.resumption = Resumption::disabled();
        Ok(Connector { address: self.address, config: Arc::new(config) })
    }
}

impl Connector {
    /// Connects, binds and goes.
    pub fn bind(&mut self, dn: &str, password: &str) -> Result<(), String> {
        let tcp = TcpStream::connect(self.address).map_err(|why| why.to_string())?;
        tcp.set_nodelay(true).map_err(|why| why.to_string())?;
        let name = ServerName::from(self.address.ip());
        let tls =
            ClientConnection::new(self.config.clone(), name).map_err(|why| why.to_string())?;
        Client::over(StreamOwned::new(tls, tcp)).bind(dn, password)
    }
}
