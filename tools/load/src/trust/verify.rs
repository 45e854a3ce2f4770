//! The certificates of servers that are taken.

use crate::error::Error;
use keyway_codec::certificate::Certificate;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use std::sync::Arc;

/// Takes servers whose certificates one of these has issued, or is: one that has signed itself is believed
/// if it is in the list, as OpenSSL does. Its host and its time have to be right all the same.
pub(super) fn issued_by(
    authorities: Vec<CertificateDer<'static>>,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, Error> {
    let own: Vec<_> = authorities.iter().filter(|it| has_signed_itself(it)).cloned().collect();
    let roots = Arc::new(roots(&authorities));
    let issued = WebPkiServerVerifier::builder_with_provider(roots, provider.clone()).build();
    let issued = issued.map_err(|_| {
        Error::Usage("no certificate of an authority that can be used is known".into())
    })?;
    Ok(Arc::new(Listed { own, issued }))
}

/// Those that can be used as authorities: systems also trust some that cannot.
pub(super) fn roots(authorities: &[CertificateDer<'static>]) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(authorities.iter().cloned());
    roots
}

/// Whether it names itself as its issuer. Whether the signature is its own is of no interest: it is in a
/// list that is trusted.
fn has_signed_itself(der: &CertificateDer<'_>) -> bool {
    Certificate::read(der).is_ok_and(|it| it.issuer == it.subject)
}

/// See [`issued_by`].
#[derive(Debug)]
struct Listed {
    /// Those that have signed themselves.
    own: Vec<CertificateDer<'static>>,
    issued: Arc<WebPkiServerVerifier>,
}

impl ServerCertVerifier for Listed {
    fn verify_server_cert(
        &self,
        end: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if !self.own.iter().any(|own| own.as_ref() == end.as_ref()) {
            return self.issued.verify_server_cert(end, between, name, ocsp, now);
        }
        let read = Certificate::read(end).map_err(|_| CertificateError::BadEncoding)?;
        let unix_s = |at: i64| {
            UnixTime::since_unix_epoch(std::time::Duration::from_secs(at.max(0).cast_unsigned()))
        };
        let (not_before, not_after) =
            (unix_s(read.not_before_unix_s), unix_s(read.not_after_unix_s));
        if now < not_before {
            return Err(CertificateError::NotValidYetContext { time: now, not_before }.into());
        }
        if now > not_after {
            return Err(CertificateError::ExpiredContext { time: now, not_after }.into());
        }
        verify_server_name(&ParsedCertificate::try_from(end)?, name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.issued.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.issued.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.issued.supported_verify_schemes()
    }
}

/// Takes any certificate, because the user asked for that, and still has the handshake's signature
/// verified under it.
#[derive(Debug)]
pub struct AcceptAny(Arc<CryptoProvider>);

impl AcceptAny {
    /// One that verifies signatures with this cryptography.
    #[must_use]
    pub fn new(provider: Arc<CryptoProvider>) -> AcceptAny {
        AcceptAny(provider)
    }
}

impl ServerCertVerifier for AcceptAny {
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
