//! A reference to a key: the URI `keyway:NAME`, and a PEM file that programs load in place of a private key.
//!
//! The file's bytes are a SEQUENCE of the URI as a UTF8String and, so that a program can load it without the daemon,
//! the key's SubjectPublicKeyInfo (RFC 5280 § 4.1).

use crate::limits::REFERENCE_BYTES_MAX;
use base64::prelude::{BASE64_STANDARD, Engine};
use keyway_engine::is_key_name;
use keyway_wire::der::{SEQUENCE, element, split};
use keyway_wire::read_subject_public_key_info;

/// The label of the PEM file.
pub const PEM_LABEL: &str = "KEYWAY PRIVATE KEY";
/// The scheme of the URI.
const SCHEME: &str = "keyway:";
const UTF8_STRING: u8 = 0x0c;
const LINE: usize = 64;

/// A key that a file or a URI names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyReference {
    /// The key's name.
    pub name: String,
    /// Its public half as a SubjectPublicKeyInfo, if the file has it.
    pub public_key: Option<Vec<u8>>,
}

impl KeyReference {
    /// Reads `keyway:NAME`; `None` for anything else.
    pub fn from_uri(uri: &str) -> Option<KeyReference> {
        let name = uri.strip_prefix(SCHEME).filter(|name| is_key_name(name))?;
        Some(KeyReference { name: name.to_owned(), public_key: None })
    }

    /// Reads the bytes of a file; `None` if they are no reference.
    pub fn from_der(der: &[u8]) -> Option<KeyReference> {
        if der.len() > REFERENCE_BYTES_MAX {
            return None;
        }
        let (content, []) = split(SEQUENCE, der)? else { return None };
        let (uri, rest) = split(UTF8_STRING, content)?;
        let mut reference = KeyReference::from_uri(std::str::from_utf8(uri).ok()?)?;
        if !rest.is_empty() {
            read_subject_public_key_info(rest)?;
            reference.public_key = Some(rest.to_vec());
        }
        Some(reference)
    }

    /// The bytes of a file.
    pub fn to_der(&self) -> Vec<u8> {
        let uri = element(UTF8_STRING, &[SCHEME.as_bytes(), self.name.as_bytes()]);
        element(SEQUENCE, &[&uri, self.public_key.as_deref().unwrap_or_default()])
    }

    /// Reads the bytes of a PEM file's body, in base64 with line ends; `None` if they are no reference.
    pub fn from_pem_body(body: &str) -> Option<KeyReference> {
        let digits: String = body.split_ascii_whitespace().collect();
        KeyReference::from_der(&BASE64_STANDARD.decode(digits).ok()?)
    }

    /// The text of a PEM file.
    pub fn to_pem(&self) -> String {
        let digits = BASE64_STANDARD.encode(self.to_der());
        let mut text = format!("-----BEGIN {PEM_LABEL}-----\n");
        for line in digits.as_bytes().chunks(LINE) {
            text.extend(line.iter().map(|digit| char::from(*digit)));
            text.push('\n');
        }
        text + &format!("-----END {PEM_LABEL}-----\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use keyway_engine::Algorithm;
    use keyway_wire::subject_public_key_info;

    #[test]
    fn what_is_written_is_read() {
        let public_key = subject_public_key_info(Algorithm::Ed25519, &[7; 32]);
        for public_key in [None, public_key] {
            let reference = KeyReference { name: "web".to_owned(), public_key };
            assert_eq!(KeyReference::from_der(&reference.to_der()), Some(reference.clone()));
            let pem = reference.to_pem();
            let body: Vec<_> = pem.lines().filter(|line| !line.starts_with('-')).collect();
            assert_eq!(KeyReference::from_pem_body(&body.join("\n")), Some(reference.clone()));
            let der = reference.to_der();
            for at in 0..der.len() {
                assert_eq!(KeyReference::from_der(&der[..at]), None);
            }
            assert_eq!(KeyReference::from_der(&[&der[..], b"x"].concat()), None);
        }
    }

    #[test]
    fn names_are_names_of_keys() {
        assert!(KeyReference::from_uri("keyway:web").is_some());
        for uri in ["keyway:", "keyway:../x", "file:web", "web", "keyway:a b"] {
            assert_eq!(KeyReference::from_uri(uri), None, "{uri}");
        }
    }
}
