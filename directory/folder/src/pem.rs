//! Files of certificates, as text (RFC 7468).

use crate::data;
use keyway_host::failure::Failure;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::{self, PemObject};
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
        Err(why) => Err(malformed(file, words(&why))),
    }
}

/// The words for a text that is not PEM.
pub fn words(why: &pem::Error) -> String {
    match why {
        pem::Error::MissingSectionEnd { end_marker } => format!(
            "its PEM block does not end: there is no line -----END {}-----; it is cut off",
            String::from_utf8_lossy(end_marker)
        ),
        pem::Error::IllegalSectionStart { line } => format!(
            "a PEM block begins with -----BEGIN NAME-----, and not with {}",
            String::from_utf8_lossy(line)
        ),
        pem::Error::Base64Decode(why) => format!("its PEM block is not base64: {why}"),
        pem::Error::NoItemsFound => "there is no PEM block of that kind in it".to_owned(),
        why => why.to_string(),
    }
}

/// A file of certificates, keys or lists that is not what it should be.
pub fn malformed(file: &Path, why: impl Display) -> Failure {
    Failure::new(format!("{} cannot be used: {why}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_pem_is_said_in_words() {
        let said = |text: &str| {
            let found = CertificateDer::from_pem_slice(text.as_bytes());
            words(&found.unwrap_err())
        };
        let begin = "-----BEGIN CERTIFICATE-----\n";
        for (text, part) in [
            (format!("{begin}MIIB\n"), "no line -----END CERTIFICATE-----; it is cut off"),
            (format!("{begin}M*IB\n-----END CERTIFICATE-----\n"), "is not base64"),
            ("-----BEGIN CERT\n".to_owned(), "and not with -----BEGIN CERT"),
            ("text\n".to_owned(), "no PEM block of that kind"),
        ] {
            let said = said(&text);
            assert!(said.contains(part) && !said.contains('['), "{said}");
        }
    }
}
