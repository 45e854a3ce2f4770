//! The fields of an X.509 certificate that PKCS #11 shows (RFC 5280 § 4.1), in DER as they are there.

use keyway_wire::der::{INTEGER, SEQUENCE, any, split};

/// Fields of a certificate.
#[derive(Debug, PartialEq, Eq)]
pub struct Fields<'d> {
    pub serial: &'d [u8],
    pub issuer: &'d [u8],
    pub subject: &'d [u8],
    /// SubjectPublicKeyInfo.
    pub key: &'d [u8],
}

impl<'d> Fields<'d> {
    /// `None` if it is no certificate.
    pub fn read(der: &'d [u8]) -> Option<Fields<'d>> {
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
        Some(Fields { serial, issuer, subject, key })
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
    use keyway_wire::der::element;

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
            let read = Fields::read(&der).unwrap();
            assert_eq!(
                read,
                Fields { serial: &serial, issuer: &issuer, subject: &subject, key: &key }
            );
            for at in 0..der.len() {
                assert_eq!(Fields::read(&der[..at]), None);
            }
        }
    }
}
