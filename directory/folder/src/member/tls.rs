//! The TLS between members: 1.3, with certificates of members at both ends, whatever host they are on. Files are read
//! at each handshake, which is rare, so that a server which becomes a member need not be told.

use super::certificate::member_of;
use super::files::{Key, complete};
use keyway_engine::{Algorithm, Engine};
use keyway_host::failure::Failure;
use keyway_tls::{Certified, PeerVerifier, provider};
use rustls::client::Resumption;
use rustls::crypto::CryptoProvider;
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, Error, RootCertStore, ServerConfig, SupportedProtocolVersion,
};
use rustls_pki_types::CertificateDer;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The protocol that a member asks for in its ClientHello (ALPN, RFC 7301).
pub const MEMBER_PROTOCOL: &[u8] = b"keyway-cluster/1";

const VERSIONS: &[&SupportedProtocolVersion] = &[&TLS13];
/// Certificates that a peer sends beside its own and that are looked at.
const OTHERS_MAX: usize = 4;

/// The configuration of the server's end, for a data folder that is a member's or becomes one. A peer may have no
/// certificate, if it is to join.
///
/// # Errors
/// If the engine cannot do TLS 1.3.
pub fn server(engine: &Engine, folder: &Path) -> Result<ServerConfig, Failure> {
    let provider = provider(engine);
    let own = folder.to_owned();
    let trust = move |certificate: &CertificateDer<'_>, _: &[CertificateDer<'_>]| {
        is_members(certificate)?;
        let key = complete(&own).map_err(|why| Error::General(why.to_string()))?;
        Ok(roots(&key.authority))
    };
    let verifier = Arc::new(PeerVerifier::new(&provider, Arc::new(trust)));
    let resolver = Resolver { folder: folder.to_owned(), provider: provider.clone() };
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(VERSIONS)
        .map_err(Failure::new)?
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(Arc::new(resolver));
    config.alpn_protocols = vec![MEMBER_PROTOCOL.to_vec()];
    // A session that is resumed is not verified again.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

/// The configuration of a member that connects to others.
///
/// # Errors
/// If the engine cannot do TLS 1.3, or the key is not that of the certificate.
pub fn client(engine: &Engine, own: Key) -> Result<ClientConfig, Failure> {
    let provider = provider(engine);
    let roots = roots(&own.authority);
    let trust = move |certificate: &CertificateDer<'_>, _: &[CertificateDer<'_>]| {
        is_members(certificate)?;
        Ok(roots.clone())
    };
    let verifier = Arc::new(PeerVerifier::new(&provider, Arc::new(trust)));
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(VERSIONS)
        .map_err(Failure::new)?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_client_auth_cert(own.chain, own.key)
        .map_err(Failure::new)?;
    Ok(of_members(config))
}

/// The configuration of one that is to join: it takes a member whose authority's certificate has this SHA-256 digest, and
/// has no certificate.
///
/// # Errors
/// If the engine cannot do TLS 1.3.
pub fn joiner(engine: &Engine, authority: [u8; 32]) -> Result<ClientConfig, Failure> {
    let provider = provider(engine);
    let digests = engine.clone();
    let trust = move |certificate: &CertificateDer<'_>, others: &[CertificateDer<'_>]| {
        is_members(certificate)?;
        let is_it = |other: &&CertificateDer<'_>| {
            let mut digest = [0; 32];
            let made = digests.digest(Algorithm::Sha256, &[other.as_ref()], &mut digest);
            made.is_ok() && digest == authority
        };
        let found = others.iter().take(OTHERS_MAX).find(is_it);
        let found = found.ok_or(CertificateError::UnknownIssuer)?;
        Ok(roots(std::slice::from_ref(found)))
    };
    let verifier = Arc::new(PeerVerifier::new(&provider, Arc::new(trust)));
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(VERSIONS)
        .map_err(Failure::new)?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok(of_members(config))
}

/// The member at the other end, by the certificates that the handshake has verified; `None` if it showed none.
pub fn peer(certificates: Option<&[CertificateDer<'_>]>) -> Option<u64> {
    member_of(certificates?.first()?)
}

fn of_members(mut config: ClientConfig) -> ClientConfig {
    config.alpn_protocols = vec![MEMBER_PROTOCOL.to_vec()];
    config.resumption = Resumption::disabled();
    config.enable_sni = false;
    config
}

/// One that the authority has issued for another purpose is none of a member.
fn is_members(certificate: &CertificateDer<'_>) -> Result<(), Error> {
    match member_of(certificate) {
        Some(_) => Ok(()),
        None => Err(CertificateError::ApplicationVerificationFailure.into()),
    }
}

fn roots(authority: &[CertificateDer<'_>]) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    // One that is none has issued nothing.
    roots.add_parsable_certificates(authority.iter().map(|der| der.clone().into_owned()));
    roots
}

/// The member's certificate, as it is in its data folder.
struct Resolver {
    folder: PathBuf,
    provider: Arc<CryptoProvider>,
}

impl ResolvesServerCert for Resolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        // Without one there is no handshake.
        let own = complete(&self.folder).ok()?;
        let certified = Certified::new(&self.provider, own.chain, own.key, &[]).ok()?;
        certified.resolver().resolve(hello)
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver").field("folder", &self.folder).finish_non_exhaustive()
    }
}
