//! The certificates of clients that are taken.

use crate::ConfigError;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertRevocationListError, CertificateError, DigitallySignedStruct, DistinguishedName, Error,
    OtherError, RootCertStore, SignatureScheme,
};
use std::fmt;
use std::sync::Arc;
use webpki::{
    CertRevocationList, EndEntityCert, ExpirationPolicy, KeyUsage, OwnedCertRevocationList,
    RevocationCheckDepth, RevocationOptions, RevocationOptionsBuilder, UnknownStatusPolicy,
};

/// id-kp-clientAuth, 1.3.6.1.5.5.7.3.2 (RFC 5280 § 4.2.1.12).
pub(crate) const CLIENT_AUTH: &[u8] = &[43, 6, 1, 5, 5, 7, 3, 2];

/// Takes certificates of clients that one of its authorities has issued for that purpose.
///
/// rustls' own takes those without any extended key usage as well. Here the usage has to be there
/// and to be clientAuth: an authority issues certificates for servers, mail and code, too, and none
/// of their owners is a client for that.
///
/// With revocation lists, each certificate of a chain below its authority must be known not to be
/// revoked: one whose issuer has no list here, or a list that is too old, is refused.
pub struct ClientVerifier {
    roots: RootCertStore,
    subjects: Vec<DistinguishedName>,
    lists: Vec<CertRevocationList<'static>>,
    algorithms: WebPkiSupportedAlgorithms,
    required: bool,
}

impl ClientVerifier {
    /// Takes what `roots` have issued and `lists` do not revoke. If a certificate is not
    /// `required`, clients may have none.
    ///
    /// # Errors
    /// [`ConfigError::ClientAuthorities`] if there are no roots; [`ConfigError::RevocationList`].
    pub fn new(
        provider: &CryptoProvider,
        roots: RootCertStore,
        lists: &[CertificateRevocationListDer<'_>],
        required: bool,
    ) -> Result<ClientVerifier, ConfigError> {
        if roots.is_empty() {
            return Err(ConfigError::ClientAuthorities);
        }
        let read = |(index, der): (usize, &CertificateRevocationListDer<'_>)| {
            OwnedCertRevocationList::from_der(der.as_ref())
                .map(CertRevocationList::from)
                .map_err(|why| ConfigError::RevocationList(index, refusal(why)))
        };
        Ok(ClientVerifier {
            subjects: roots.subjects(),
            roots,
            lists: lists.iter().enumerate().map(read).collect::<Result<_, _>>()?,
            algorithms: provider.signature_verification_algorithms,
            required,
        })
    }
}

impl ClientCertVerifier for ClientVerifier {
    fn client_auth_mandatory(&self) -> bool {
        self.required
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.subjects
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let lists: Vec<&CertRevocationList<'_>> = self.lists.iter().collect();
        let verified = EndEntityCert::try_from(end_entity).and_then(|certificate| {
            certificate
                .verify_for_usage(
                    self.algorithms.all,
                    &self.roots.roots,
                    intermediates,
                    now,
                    KeyUsage::required(CLIENT_AUTH),
                    revocation(&lists),
                    None,
                )
                .map(|_path| ClientCertVerified::assertion())
        });
        verified.map_err(refusal)
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

impl fmt::Debug for ClientVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientVerifier")
            .field("roots", &self.roots.len())
            .field("lists", &self.lists.len())
            .field("required", &self.required)
            .finish()
    }
}

fn revocation<'a>(lists: &'a [&'a CertRevocationList<'a>]) -> Option<RevocationOptions<'a>> {
    // None, if there are no lists.
    let options = RevocationOptionsBuilder::new(lists).ok()?;
    let options = options.with_depth(RevocationCheckDepth::Chain);
    let options = options.with_status_policy(UnknownStatusPolicy::Deny);
    Some(options.with_expiration_policy(ExpirationPolicy::Enforce).build())
}

/// webpki's words in rustls', which chooses the alert by them.
pub(crate) fn refusal(why: webpki::Error) -> Error {
    use webpki::Error as Why;
    let why = match why {
        Why::BadDer | Why::BadDerTime | Why::TrailingData(_) => CertificateError::BadEncoding,
        Why::CertNotValidYet { time, not_before } => {
            CertificateError::NotValidYetContext { time, not_before }
        }
        Why::CertExpired { time, not_after } => {
            CertificateError::ExpiredContext { time, not_after }
        }
        Why::UnknownIssuer => CertificateError::UnknownIssuer,
        Why::CertRevoked => CertificateError::Revoked,
        Why::UnknownRevocationStatus => CertificateError::UnknownRevocationStatus,
        Why::CrlExpired { time, next_update } => {
            CertificateError::ExpiredRevocationListContext { time, next_update }
        }
        Why::InvalidSignatureForPublicKey => CertificateError::BadSignature,
        Why::RequiredEkuNotFoundContext(_) | Why::EmptyEkuExtension => {
            CertificateError::InvalidPurpose
        }
        Why::IssuerNotCrlSigner => return CertRevocationListError::IssuerInvalidForCrl.into(),
        Why::InvalidCrlSignatureForPublicKey => {
            return CertRevocationListError::BadSignature.into();
        }
        other => CertificateError::Other(OtherError(Arc::new(other))),
    };
    why.into()
}
