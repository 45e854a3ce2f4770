//! Files of `keyway key`: keys and certificates that it reads, and the forms in which it writes what a key has made.

use crate::limits::CHAIN_INPUT_BYTES_MAX;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use keyway_folder::pem::words;
use keyway_host::failure::Failure;
use keyway_ring::control::Secret;
use keyway_ring::limits::{KEY_BYTES_MAX, MESSAGE_BYTES_MAX};
use keyway_token::limits::ID_BYTES_MAX;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use zeroize::Zeroizing;

/// Reads a key out of a file, or of standard input (`-`).
///
/// # Errors
/// If it cannot be read, or can be no key.
pub fn secret(path: &Path) -> Result<Secret, Failure> {
    // Room for one byte too many, so that no copy is left behind by a buffer that grew.
    let mut bytes = Zeroizing::new(Vec::with_capacity(KEY_BYTES_MAX + 2));
    let most = KEY_BYTES_MAX as u64 + 1;
    let read = match path.as_os_str() == "-" {
        true => std::io::stdin().lock().take(most).read_to_end(&mut bytes),
        false => File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes)),
    };
    read.map_err(|why| Failure::system("read", path, &why))?;
    if bytes.is_empty() || bytes.len() > KEY_BYTES_MAX {
        return Err(Failure::new(format!(
            "{} is no key: it is empty, or longer than {KEY_BYTES_MAX} bytes",
            path.display()
        )));
    }
    Ok(Secret::from(&bytes[..]))
}

/// Reads hexadecimal digits, with or without colons between bytes, as programs show a CKA_ID.
///
/// # Errors
/// A sentence that says what it should look like.
pub fn cka_id(text: &str) -> Result<Vec<u8>, String> {
    let digits = text.replace(':', "");
    let pair = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    let all_digits = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(pair).collect();
    let bytes = bytes.filter(|bytes| all_digits && (1..=ID_BYTES_MAX).contains(&bytes.len()));
    bytes.ok_or_else(|| {
        format!("{text:?} is not a CKA_ID in hexadecimal digits, of {ID_BYTES_MAX} bytes at most")
    })
}

/// Reads a key that was exported out of a file.
///
/// # Errors
/// If it cannot be read, or can be no such key.
pub fn wrapped(path: &Path) -> Result<Vec<u8>, Failure> {
    let (mut bytes, most) = (Vec::new(), MESSAGE_BYTES_MAX as u64);
    let read = File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes));
    read.map_err(|why| Failure::system("read", path, &why))?;
    match bytes.len() {
        0 | MESSAGE_BYTES_MAX.. => Err(Failure::new(format!(
            "{} is no key that was exported: it is empty, or too long",
            path.display()
        ))),
        _ => Ok(bytes),
    }
}

/// Writes a key that was exported into a new file, for this user only.
///
/// # Errors
/// If there is one by that name, or it cannot be written.
pub fn write_wrapped(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .map_err(|why| Failure::system("write", path, &why))
}

/// Reads the certificates of a file, each in DER: one at least.
///
/// # Errors
/// If it cannot be read, or has something but no certificate.
pub fn certificates(path: &Path) -> Result<Vec<Vec<u8>>, Failure> {
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
pub fn certificates_to_pem(certificates: &[Vec<u8>]) -> String {
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

/// A form of bytes in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// As they are.
    Raw,
    /// In base64, on a line.
    Base64,
    /// In hexadecimal digits, on a line.
    Hex,
}

impl Format {
    /// The bytes in this form.
    pub fn write(self, bytes: &[u8]) -> Zeroizing<Vec<u8>> {
        let mut text = match self {
            Format::Raw => return Zeroizing::new(bytes.to_vec()),
            Format::Base64 => BASE64_STANDARD.encode(bytes),
            Format::Hex => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        };
        text.push('\n');
        Zeroizing::new(text.into_bytes())
    }

    /// The bytes of a text in this form; `None` if it is none.
    pub fn read(self, text: &[u8]) -> Option<Vec<u8>> {
        // Other programs break lines.
        let text_only =
            || text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
        match self {
            Format::Raw => Some(text.to_vec()),
            Format::Base64 => BASE64_STANDARD.decode::<Vec<u8>>(text_only()).ok(),
            Format::Hex => {
                let digits = String::from_utf8(text_only()).ok()?;
                if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                    return None;
                }
                let pair = |at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
                (0..digits.len()).step_by(2).map(pair).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for format in [Format::Raw, Format::Base64, Format::Hex] {
            assert_eq!(
                format.read(&format.write(b"\x00\xffbytes")),
                Some(b"\x00\xffbytes".to_vec())
            );
        }
        assert_eq!(Format::Base64.read(b" AP9i\r\neXRlcw==\n"), Some(b"\x00\xffbytes".to_vec()));
        assert_eq!(Format::Hex.read(b"00ff\n62\n"), Some(b"\x00\xffb".to_vec()));
        for wrong in ["0", "0g", "é", "+1"] {
            assert_eq!(Format::Hex.read(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
