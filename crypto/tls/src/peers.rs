//! Peers that know each other by their certificates alone, whatever host they are on.

use crate::clients::{CLIENT_AUTH, refusal};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme};
use std::fmt;
use std::sync::Arc;
use webpki::{EndEntityCert, KeyUsage};

/// id-kp-serverAuth, 1.3.6.1.5.5.7.3.1 (RFC 5280 § 4.2.1.12).
const SERVER_AUTH: &[u8] = &[43, 6, 1, 5, 5, 7, 3, 1];

/// Says which authorities must have issued a peer's certificate, by that and the others that it has sent.
///
/// # Errors
/// If it is not a peer's in any case.
pub type TrustPeer = dyn Fn(&CertificateDer<'_>, &[CertificateDer<'_>]) -> Result<RootCertStore, Error>
    + Send
    + Sync;

/// Takes certificates of peers, at either end of a connection: one of the authorities that `trust` names has issued it,
/// for a server's or a client's end. A name of the host is not looked at. Clients may have none.
pub struct PeerVerifier {
    trust: Arc<TrustPeer>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl PeerVerifier {
    /// With the provider's signatures.
    pub fn new(provider: &CryptoProvider, trust: Arc<TrustPeer>) -> PeerVerifier {
        PeerVerifier { trust, algorithms: provider.signature_verification_algorithms }
    }

    fn verify(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: UnixTime,
        usage: &'static [u8],
    ) -> Result<(), Error> {
        let roots = (self.trust)(certificate, others)?;
        let read = EndEntityCert::try_from(certificate).map_err(refusal)?;
        let (all, usage) = (self.algorithms.all, KeyUsage::required(usage));
        // The authority issues to peers itself: what else was sent is no part of the way to it.
        let path = read.verify_for_usage(all, &roots.roots, &[], now, usage, None, None);
        path.map(drop).map_err(refusal)
    }
}

impl ServerCertVerifier for PeerVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.verify(end_entity, intermediates, now, SERVER_AUTH)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

impl ClientCertVerifier for PeerVerifier {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.verify(end_entity, intermediates, now, CLIENT_AUTH)?;
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

impl fmt::Debug for PeerVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerVerifier").finish_non_exhaustive()
    }
}
