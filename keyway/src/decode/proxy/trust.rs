//! The certificate that clients see, and which server is believed.

use crate::authority::{self, malformed};
use crate::data::{Folder, name};
use crate::decode::arguments::Proxy;
use crate::failure::Failure;
use crate::host::Names;
use crate::own_keys::{self, PrivateKey};
use crate::timestamp::Timestamp;
use keyway_engine::Engine;
use keyway_tls::{ServerOptions, client_config, server_config};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// Where Debian, Fedora and their kin keep the authorities that the system trusts.
const SYSTEM_AUTHORITIES: [&str; 2] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];

/// What TLS of clients is accepted with, if it is: a certificate that was given, or one of the folder's
/// authority.
pub fn acceptor(
    proxy: &Proxy,
    engine: &Engine,
    address: SocketAddr,
) -> Result<Option<TlsAcceptor>, Failure> {
    let (chain, key) = match (&proxy.certificate, &proxy.key, &proxy.data) {
        (Some(certificate), Some(key), _) => {
            let chain = authority::certificates(certificate)?;
            let key = PrivateKeyDer::from_pem_file(key).map_err(|why| malformed(key, why))?;
            (chain, key)
        }
        (_, _, Some(data)) => issued(data, engine, address)?,
        _ => return Ok(None),
    };
    let options = ServerOptions::new(engine).map_err(Failure::new)?;
    let config = server_config(&options, chain, key).map_err(Failure::new)?;
    Ok(Some(TlsAcceptor::from(Arc::new(config))))
}

type Issued = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn issued(data: &Path, engine: &Engine, address: SocketAddr) -> Result<Issued, Failure> {
    let folder = Folder::open(data, Timestamp::now())?;
    let held = || {
        Failure::new(format!(
            "the keys of {} are in its cryptod, for its directory only; give the proxy a folder of \
             its own, or --certificate and --key",
            data.display()
        ))
    };
    if own_keys::are_held(folder.path()) {
        return Err(held());
    }
    let names = Names::new(&[], &[address]);
    let identity = authority::identity(engine, &folder, None, &names, Timestamp::now())?;
    match identity.key {
        PrivateKey::File(key, _) => Ok((identity.chain, key)),
        PrivateKey::Held(_) => Err(held()),
    }
}

/// What the server is spoken to with over TLS.
pub fn connector(proxy: &Proxy, engine: &Engine) -> Result<TlsConnector, Failure> {
    let roots = authorities(proxy)?;
    let mut config: ClientConfig =
        client_config(&keyway_tls::provider(engine), roots).map_err(Failure::new)?;
    if proxy.insecure {
        let provider = config.crypto_provider().clone();
        config.dangerous().set_certificate_verifier(Arc::new(Anybody(provider)));
    }
    Ok(TlsConnector::from(Arc::new(config)))
}

fn authorities(proxy: &Proxy) -> Result<RootCertStore, Failure> {
    let mut roots = RootCertStore::empty();
    match (&proxy.ca, &proxy.data) {
        (Some(file), _) => authority::certificates(file)?.into_iter().for_each(|one| {
            let _ = roots.add(one);
        }),
        (None, data) => {
            let own = data.as_ref().map(|data| data.join(name::CA_CERTIFICATE));
            let usual = SYSTEM_AUTHORITIES.iter().map(Path::new);
            for path in usual.chain(own.as_deref()) {
                // One that is not there is not trusted, and systems trust some that cannot be used.
                let pem = std::fs::read(path).unwrap_or_default();
                for certificate in CertificateDer::pem_slice_iter(&pem).flatten() {
                    let _ = roots.add(certificate);
                }
            }
        }
    }
    Ok(roots)
}

/// Takes any certificate, because somebody asked for that.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

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
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
