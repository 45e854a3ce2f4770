//! Certificates in PEM.

use crate::limits::CHAIN_INPUT_BYTES_MAX;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use keyway_folder::pem::words;
use keyway_host::failure::Failure;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Reads the certificates of a file, each in DER: one at least.
///
/// # Errors
/// If it cannot be read, or has something but no certificate.
pub fn read(path: &Path) -> Result<Vec<Vec<u8>>, Failure> {
    let (mut text, most) = (Vec::new(), CHAIN_INPUT_BYTES_MAX as u64 + 1);
    let read = match path.as_os_str() == "-" {
        true => std::io::stdin().lock().take(most).read_to_end(&mut text),
        false => File::open(path).and_then(|file| file.take(most).read_to_end(&mut text)),
    };
    read.map_err(|why| Failure::system("read", path, &why))?;
    let shown = path.display();
    if text.len() > CHAIN_INPUT_BYTES_MAX {
        return Err(Failure::new(format!("{shown} has more than {CHAIN_INPUT_BYTES_MAX} bytes")));
    }
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let found =
        found.map_err(|why| Failure::new(format!("{shown} cannot be used: {}", words(&why))))?;
    if found.is_empty() {
        return Err(Failure::new(format!("{shown} has no certificate in PEM")));
    }
    Ok(found.iter().map(|it| it.to_vec()).collect())
}

/// Certificates as a text of PEM (RFC 7468).
pub fn pem(certificates: &[Vec<u8>]) -> String {
    certificates.iter().fold(String::new(), |mut text, certificate| {
        text.push_str("-----BEGIN CERTIFICATE-----\n");
        let digits = BASE64_STANDARD.encode(certificate);
        for line in digits.as_bytes().chunks(64) {
            text.push_str(&String::from_utf8_lossy(line));
            text.push('\n');
        }
        text + "-----END CERTIFICATE-----\n"
    })
}
