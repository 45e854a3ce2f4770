//! TLS as a client: the trusted certificates, and whether sessions are resumed.

mod verify;
mod words;

pub use verify::AcceptAny;
pub(crate) use words::closed as tls_closed;
pub use words::{is_of_tls, tls_words};

use crate::error::Error;
use crate::limits::CERTIFICATES_BYTES_MAX;
use rustls::client::Resumption;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where systems keep the authorities that they trust.
const SYSTEM_AUTHORITIES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// `tls` of a target.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trust {
    /// The authorities that may say who the server is; without it those of the system, and of `own_ca`.
    pub ca: Option<PathBuf>,
    /// The authority of a data folder, which may not be there.
    pub own_ca: Option<PathBuf>,
    /// The certificate that we show if we are asked for one, and its key.
    pub own: Option<(PathBuf, PathBuf)>,
    /// Any certificate is taken.
    pub insecure: bool,
    /// Sessions are resumed where the server lets us.
    pub resume: bool,
}

impl Trust {
    /// The configuration that connections are opened with.
    ///
    /// # Errors
    /// If the authorities cannot be read, or the cryptography can do no TLS.
    pub fn config(&self, provider: &Arc<CryptoProvider>) -> Result<Arc<ClientConfig>, Error> {
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(no_tls)?;
        let verifier = self.verifier(provider)?;
        let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
        let mut config = match &self.own {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let (chain, private) = own(certificate, key)?;
                let config = builder.with_client_auth_cert(chain, private);
                config.map_err(|why| not_fitting(certificate, key, &why))?
            }
        };
        if !self.resume {
            config.resumption = Resumption::disabled();
        }
        Ok(Arc::new(config))
    }

    /// Reads the files that are named, so that a fault in one is known before the first connection.
    ///
    /// # Errors
    /// If one cannot be read, or has not in it what it should.
    pub fn check(&self) -> Result<(), Error> {
        if let Some(ca) = self.ca.as_ref().filter(|_| !self.insecure) {
            authorities(ca)?;
        }
        if let Some((certificate, key)) = &self.own {
            own(certificate, key)?;
        }
        Ok(())
    }

    /// The verifier for the servers that are taken.
    ///
    /// # Errors
    /// If the authorities cannot be read.
    pub fn verifier(
        &self,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Arc<dyn ServerCertVerifier>, Error> {
        Ok(match self.insecure {
            true => Arc::new(AcceptAny::new(provider.clone())),
            false => verify::issued_by(self.authorities()?, provider)?,
        })
    }

    /// The certificates of who may say who the server is; one that has signed itself may be the server's.
    fn authorities(&self) -> Result<Vec<CertificateDer<'static>>, Error> {
        if let Some(path) = &self.ca {
            return authorities(path);
        }
        let system = SYSTEM_AUTHORITIES.iter().map(Path::new);
        let mut all = Vec::new();
        for path in system.chain(self.own_ca.as_deref()) {
            // One that is not there is not trusted.
            all.extend(certificates(&read(path, CERTIFICATES_BYTES_MAX).unwrap_or_default()));
        }
        match all.is_empty() {
            false => Ok(all),
            true => Err(Error::Usage(
                "no certificate authority is known on this machine; name one (--ca FILE), or take \
                 any certificate (--insecure)"
                    .into(),
            )),
        }
    }
}

/// The identity of an agent or a hub, and the authority that the other end's certificate must be of:
/// both have certificates of one authority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Our certificate, with those that lead to the authority's.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// The authority.
    pub ca: PathBuf,
}

impl Identity {
    /// For who is called.
    pub(crate) fn server(
        &self,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Arc<ServerConfig>, Error> {
        let roots = Arc::new(verify::roots(&authorities(&self.ca)?));
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider.clone()).build();
        let verifier = verifier.map_err(|why| Error::Content(self.ca.clone(), why.to_string()))?;
        let (chain, key) = own(&self.certificate, &self.key)?;
        let config = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(no_tls)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key);
        Ok(Arc::new(config.map_err(|why| not_fitting(&self.certificate, &self.key, &why))?))
    }

    /// For who calls.
    pub(crate) fn client(
        &self,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Arc<ClientConfig>, Error> {
        let (chain, key) = own(&self.certificate, &self.key)?;
        let config = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(no_tls)?
            .with_root_certificates(verify::roots(&authorities(&self.ca)?))
            .with_client_auth_cert(chain, key);
        Ok(Arc::new(config.map_err(|why| not_fitting(&self.certificate, &self.key, &why))?))
    }
}

fn not_fitting(certificate: &Path, key: &Path, why: &rustls::Error) -> Error {
    let key = key.display();
    Error::Content(certificate.to_owned(), format!("with the key {key}: {why}"))
}

/// A certificate, with those that lead to an authority's, and its key.
fn own(
    certificate: &Path,
    key: &Path,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), Error> {
    let pem = read(certificate, CERTIFICATES_BYTES_MAX)?;
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&pem).flatten().collect();
    if chain.is_empty() {
        let why = "there is no certificate in it; it should be a PEM file";
        return Err(Error::Content(certificate.to_owned(), why.into()));
    }
    let pem = zeroize::Zeroizing::new(read(key, CERTIFICATES_BYTES_MAX)?);
    let private = PrivateKeyDer::from_pem_slice(&pem).map_err(|_| {
        let why = "there is no private key in it; it should be a PEM file";
        Error::Content(key.to_owned(), why.into())
    })?;
    Ok((chain, private))
}

fn no_tls(why: rustls::Error) -> Error {
    Error::Server(format!("no TLS: {why}"))
}

/// The certificates of a file.
fn authorities(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let all = certificates(&read(path, CERTIFICATES_BYTES_MAX)?);
    if all.is_empty() {
        let why = "there is no certificate of an authority in it; it should be a PEM file";
        return Err(Error::Content(path.to_owned(), why.into()));
    }
    Ok(all)
}

fn certificates(pem: &[u8]) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem).flatten().collect()
}

/// Reads a file with a password, which only its owner may be able to read. A pipe (`<(command)`) is
/// its owner's alone.
///
/// # Errors
/// As [`read`], and if others may read it.
pub(crate) fn read_secret(path: &Path, bytes_max: u64) -> Result<Vec<u8>, Error> {
    let wrong = |why| Error::File { verb: "read", path: path.to_owned(), why };
    let metadata = std::fs::metadata(path).map_err(wrong)?;
    let mode = metadata.permissions().mode();
    if metadata.is_file() && mode & 0o077 != 0 {
        let why = format!(
            "others may read or change it (mode {:03o}); close it to them: chmod 600 {}",
            mode & 0o777,
            path.display()
        );
        return Err(Error::Content(path.to_owned(), why));
    }
    read(path, bytes_max)
}

/// Reads a file that has no more than so many bytes.
///
/// # Errors
/// If it cannot be read or is longer.
pub(crate) fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>, Error> {
    let wrong = |why| Error::File { verb: "read", path: path.to_owned(), why };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(wrong)?;
    file.take(bytes_max + 1).read_to_end(&mut bytes).map_err(wrong)?;
    if bytes.len() as u64 > bytes_max {
        let why = format!("longer than {bytes_max} bytes");
        return Err(Error::Content(path.to_owned(), why));
    }
    Ok(bytes)
}
