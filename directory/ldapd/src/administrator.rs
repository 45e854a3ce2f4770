//! Which certificate of a client is the administrator's: one that is named for it. An issuer of
//! certificates may vouch for any name, and so not for this right.

use keyway_schema::{EntryName, Schema};

/// The length of a certificate's fingerprint: SHA-256.
pub(crate) const FINGERPRINT_BYTES: usize = 32;

/// A certificate that makes its owner the administrator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Administrator(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// The SHA-256 digest of one certificate.
    Fingerprint([u8; FINGERPRINT_BYTES]),
    /// The subject of any, in the form that equal names have in common.
    Subject(Vec<u8>),
}

impl Administrator {
    /// `sha256:` and 64 hexadecimal digits, with or without colons between bytes; or a DN.
    ///
    /// # Errors
    /// A sentence that says what it should look like.
    pub fn parse(text: &str, schema: &Schema) -> Result<Administrator, String> {
        let lower = text.to_ascii_lowercase();
        if let Some(digits) = lower.strip_prefix("sha256:") {
            let bytes = hexadecimal(digits).ok_or_else(|| {
                format!("\"{text}\" is not sha256: and {FINGERPRINT_BYTES} bytes in hexadecimal")
            })?;
            return Ok(Administrator(Kind::Fingerprint(bytes)));
        }
        let unclear = |why: &str| {
            format!("\"{text}\" is neither \"sha256:\" and a fingerprint nor a subject: {why}")
        };
        let name = EntryName::parse(schema, text).map_err(|why| unclear(&why.to_string()))?;
        if name.parts.is_empty() {
            return Err(unclear("it is empty"));
        }
        match name.parts.iter().find(|part| part.component.is_none()) {
            Some(part) => Err(unclear(&format!("the type of {} is not known", part.text))),
            None => Ok(Administrator(Kind::Subject(name.canonical()))),
        }
    }

    /// Whether this is such a certificate. A subject that is no DN here is of none.
    pub(crate) fn is(
        &self,
        fingerprint: Option<&[u8; FINGERPRINT_BYTES]>,
        subject: Option<&str>,
        schema: &Schema,
    ) -> bool {
        match &self.0 {
            Kind::Fingerprint(wanted) => fingerprint == Some(wanted),
            Kind::Subject(wanted) => subject
                .and_then(|subject| EntryName::parse(schema, subject).ok())
                .is_some_and(|name| name.canonical() == *wanted),
        }
    }
}

fn hexadecimal(text: &str) -> Option<[u8; FINGERPRINT_BYTES]> {
    let digits: String = text.chars().filter(|c| *c != ':').collect();
    let mut bytes = [0; FINGERPRINT_BYTES];
    if digits.len() != 2 * bytes.len() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Administrator, String> {
        Administrator::parse(text, &Schema::standard().unwrap())
    }

    #[test]
    fn fingerprints_in_both_forms() {
        let (plain, colons) = ("ab".repeat(32), ["AB"; 32].join(":"));
        assert_eq!(parse(&format!("sha256:{plain}")), parse(&format!("SHA256:{colons}")));
        for bad in ["sha256:", "sha256:ab", &format!("sha256:{}", "zz".repeat(32))] {
            assert!(parse(bad).unwrap_err().contains("32 bytes"), "{bad}");
        }
        for bad in ["", "ada", &plain, "shoe=1"] {
            assert!(parse(bad).unwrap_err().contains("nor a subject"), "{bad}");
        }
    }

    #[test]
    fn subjects_are_compared_as_names_are() {
        let schema = Schema::standard().unwrap();
        let ada = parse("cn=Ada,o=Example Org").unwrap();
        assert!(ada.is(None, Some(r"2.5.4.3=ADA,2.5.4.10=example\20\20org"), &schema));
        for other in ["cn=Ada", "o=Example Org", "cn=Ada,o=Example Org,c=DE", "shoe=1", "", "x"] {
            assert!(!ada.is(Some(&[0; FINGERPRINT_BYTES]), Some(other), &schema), "{other}");
        }
        assert!(!ada.is(None, None, &schema));
    }
}
