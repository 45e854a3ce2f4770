//! Certificates that are kept beside a key: whose they are. Who issued them, and until when they are valid, matters to
//! those that they are shown to.

use super::error::Error;
use crate::limits::{CERTIFICATES_MAX, CHAIN_BYTES_MAX};
use keyway_engine::Algorithm;
use keyway_wire::CertificateFields;

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
    let certified = certificates.iter().map(|it| CertificateFields::read(it).ok_or(none));
    let certified = certified.collect::<Result<Vec<_>, _>>().map_err(Error::Certificate)?;
    let info = algorithms.first().and_then(|it| {
        keyway_wire::subject_public_key_info(*it, public).filter(|_| !public.is_empty())
    });
    match info {
        None => Err(Error::Certificate("the key has no public half")),
        Some(info)
            if certified.first().map(|it| it.key) == Some(&info[..]) && !first.is_empty() =>
        {
            Ok(())
        }
        Some(_) => Err(Error::Certificate("the first is the certificate of another key")),
    }
}
