//! Files of certificates, as text (RFC 7468).

use crate::data;
use keyway_host::failure::Failure;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use std::fmt::Display;
use std::path::Path;

/// The certificates in a PEM file; at least one.
///
/// # Errors
/// If it cannot be read, or has none.
pub fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let pem = data::read(file)?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    match all {
        Ok(all) if !all.is_empty() => Ok(all),
        Ok(_) => Err(malformed(file, "there is no certificate in it")),
        Err(why) => Err(malformed(file, why)),
    }
}

/// A file of certificates, keys or lists that is not what it should be.
pub fn malformed(file: &Path, why: impl Display) -> Failure {
    Failure::new(format!("{} cannot be used: {why}", file.display()))
}
