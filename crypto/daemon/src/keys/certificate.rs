//! Certificates that are kept beside a key: whose they are. Who issued them, and until when they are valid, matters to
//! those that they are shown to.

use super::error::Error;
use crate::limits::{CERTIFICATES_MAX, CHAIN_BYTES_MAX};
use keyway_engine::Algorithm;
use keyway_wire::der::{SEQUENCE, any, split};

/// Refuses certificates of which the first is not that of this public key.
pub(super) fn check(
    algorithms: &[Algorithm],
    public: &[u8],
    certificates: &[Vec<u8>],
) -> Result<(), Error> {
    let Some(first) = certificates.first() else { return Ok(()) };
    if certificates.len() > CERTIFICATES_MAX {
        return Err(Error::Limit { of: "certificates of a key", most: CERTIFICATES_MAX });
    }
    if certificates.iter().map(Vec::len).sum::<usize>() > CHAIN_BYTES_MAX {
        return Err(Error::Limit { of: "bytes of a key's certificates", most: CHAIN_BYTES_MAX });
    }
    let none = "one of them is no certificate in DER";
    let certified = certificates.iter().map(|it| public_key_info(it).ok_or(none));
    let certified = certified.collect::<Result<Vec<_>, _>>().map_err(Error::Certificate)?;
    let info = algorithms.first().and_then(|it| {
        keyway_wire::subject_public_key_info(*it, public).filter(|_| !public.is_empty())
    });
    match info {
        None => Err(Error::Certificate("the key has no public half")),
        Some(info) if certified.first() == Some(&&info[..]) && !first.is_empty() => Ok(()),
        Some(_) => Err(Error::Certificate("the first is the certificate of another key")),
    }
}

/// The SubjectPublicKeyInfo of a certificate (RFC 5280 § 4.1), with its tag and length.
fn public_key_info(der: &[u8]) -> Option<&[u8]> {
    let (certificate, []) = split(SEQUENCE, der)? else { return None };
    let (mut fields, _) = split(SEQUENCE, certificate)?;
    // A version is there if it is not the first one.
    if let Some((_, rest)) = split(0xa0, fields) {
        fields = rest;
    }
    // The serial number, the signature's algorithm, the issuer, the validity and the subject.
    for _ in 0..5 {
        (_, fields) = any(fields)?;
    }
    let (content, rest) = split(SEQUENCE, fields)?;
    let (algorithm, key) = any(content)?;
    (!algorithm.is_empty() && !key.is_empty()).then(|| &fields[..fields.len() - rest.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_are_a_certificate_or_none() {
        for der in [&b""[..], b"\x30\x00", b"\x30\x80", &[0x30; 300], b"\x30\x04\x30\x02\xa0\x00"] {
            assert_eq!(public_key_info(der), None);
        }
    }
}
