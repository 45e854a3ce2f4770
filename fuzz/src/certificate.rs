//! Certificates and revocation lists, as a client or a file may have them.

use keyway_codec::certificate::{Certificate, RevocationList, subject_dn};
use keyway_codec::dn::Dn;
use keyway_wire::CertificateFields;

/// Reads the bytes as a certificate and as a revocation list, in DER.
pub fn certificate(data: &[u8]) {
    let inside = |part: &[u8]| data.as_ptr_range().contains(&part.as_ptr());
    if let Ok(certificate) = Certificate::read(data) {
        assert!(inside(certificate.issuer) && inside(certificate.subject));
        for name in &certificate.names {
            assert!(name.covers(name), "{name} does not cover itself");
        }
    }
    // A subject beyond the limits of names gives no user.
    if let Ok(subject) = subject_dn(data)
        && let Ok(dn) = Dn::parse(&subject)
    {
        assert_eq!(dn.rdns.is_empty(), subject.is_empty());
        assert_eq!(Dn::parse(&dn.to_string()).as_ref(), Ok(&dn));
    }
    if let Some(fields) = CertificateFields::read(data) {
        let parts = [fields.serial, fields.issuer, fields.subject, fields.key];
        assert!(parts.iter().all(|part| inside(part) && part.len() >= 2));
    }
    if let Ok(list) = RevocationList::read(data) {
        assert!(inside(list.issuer));
    }
}
