//! The fields of an X.509 certificate beside a key (RFC 5280 § 4.1), in DER as they are there.

use crate::der::{INTEGER, SEQUENCE, any, split};

/// Fields of a certificate, each with its tag and length.
#[derive(Debug, PartialEq, Eq)]
pub struct CertificateFields<'d> {
    /// serialNumber.
    pub serial: &'d [u8],
    /// issuer.
    pub issuer: &'d [u8],
    /// subject.
    pub subject: &'d [u8],
    /// subjectPublicKeyInfo.
    pub key: &'d [u8],
}

impl<'d> CertificateFields<'d> {
    /// Reads a certificate; `None` if it is none.
    pub fn read(der: &'d [u8]) -> Option<CertificateFields<'d>> {
        let (certificate, []) = split(SEQUENCE, der)? else { return None };
        let (mut rest, _) = split(SEQUENCE, certificate)?;
        // The version, which older certificates do not have.
        if rest.first() == Some(&0xa0) {
            rest = any(rest)?.1;
        }
        let serial = take(INTEGER, &mut rest)?;
        let _signature = take(SEQUENCE, &mut rest)?;
        let issuer = take(SEQUENCE, &mut rest)?;
        let _validity = take(SEQUENCE, &mut rest)?;
        let subject = take(SEQUENCE, &mut rest)?;
        let key = take(SEQUENCE, &mut rest)?;
        Some(CertificateFields { serial, issuer, subject, key })
    }
}

/// The next element, with its tag and length.
fn take<'d>(tag: u8, rest: &mut &'d [u8]) -> Option<&'d [u8]> {
    let (whole, (_, behind)) = (*rest, split(tag, rest)?);
    *rest = behind;
    whole.get(..whole.len() - behind.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::der::element;

    #[test]
    fn fields_are_found_and_no_prefix_is_a_certificate() {
        let serial = element(INTEGER, &[b"\x2a"]);
        let (issuer, subject, key) = (
            element(SEQUENCE, &[b"issuer"]),
            element(SEQUENCE, &[b"subject"]),
            element(SEQUENCE, &[b"key"]),
        );
        let other = element(SEQUENCE, &[]);
        for version in [&[][..], b"\xa0\x03\x02\x01\x02"] {
            let parts = [version, &serial, &other, &issuer, &other, &subject, &key];
            let der = element(SEQUENCE, &[&element(SEQUENCE, &parts), &other]);
            let read = CertificateFields::read(&der).unwrap();
            assert_eq!(
                read,
                CertificateFields {
                    serial: &serial,
                    issuer: &issuer,
                    subject: &subject,
                    key: &key
                }
            );
            for at in 0..der.len() {
                assert_eq!(CertificateFields::read(&der[..at]), None);
            }
        }
    }
}
