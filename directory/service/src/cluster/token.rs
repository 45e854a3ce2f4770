//! Tokens to join by: a line of text that says which authority to trust, and proves the right to become a member.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use keyway_engine::{Algorithm, Engine};
use keyway_host::failure::Failure;
use std::fmt;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

const VERSION: u8 = 1;
const PIN_BYTES: usize = 32;
const ID_BYTES: usize = 8;
const SECRET_BYTES: usize = 16;
const TOKEN_BYTES: usize = 1 + PIN_BYTES + ID_BYTES + SECRET_BYTES;
/// Characters that a text may have which is looked at.
const TEXT_LIMIT: usize = 256;

/// A token. It is wiped when it is dropped, and not shown.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct JoinToken {
    /// The SHA-256 digest of the certificate of the data folder's authority.
    pub(super) authority: [u8; PIN_BYTES],
    /// Its number.
    pub(super) id: u64,
    secret: [u8; SECRET_BYTES],
}

impl JoinToken {
    /// Makes one.
    ///
    /// # Errors
    /// If there are no random numbers.
    pub(super) fn make(engine: &Engine, authority: &[u8]) -> Result<JoinToken, Failure> {
        let cannot = |why| Failure::new(format!("cannot make a token: {why}"));
        let mut token =
            JoinToken { authority: digest(engine, authority)?, id: 0, secret: [0; SECRET_BYTES] };
        let mut id = [0; ID_BYTES];
        engine.random(&mut id).map_err(cannot)?;
        engine.random(&mut token.secret).map_err(cannot)?;
        token.id = u64::from_be_bytes(id);
        Ok(token)
    }

    /// Reads one.
    ///
    /// # Errors
    /// A sentence that says what is wrong, and does not repeat it.
    pub fn parse(text: &str) -> Result<JoinToken, String> {
        let text = text.trim();
        if text.len() > TEXT_LIMIT {
            return Err("it is too long to be a token of keyway cluster token".to_owned());
        }
        let octets = BASE64_URL_SAFE_NO_PAD.decode(text).map(Zeroizing::new);
        let none = || "it is no token of keyway cluster token; copy all of its line".to_owned();
        let octets = octets.map_err(|_| none())?;
        let (version, rest) = octets.split_first().ok_or_else(none)?;
        if *version != VERSION {
            return Err(format!(
                "it is a token of version {version}, and this program knows version {VERSION}"
            ));
        }
        let (authority, rest) = rest.split_first_chunk().ok_or_else(none)?;
        let (id, secret) = rest.split_first_chunk().ok_or_else(none)?;
        let secret = secret.try_into().map_err(|_| none())?;
        Ok(JoinToken { authority: *authority, id: u64::from_be_bytes(*id), secret })
    }

    /// The line of text.
    pub fn text(&self) -> Zeroizing<String> {
        let mut octets = Zeroizing::new(Vec::with_capacity(TOKEN_BYTES));
        octets.push(VERSION);
        octets.extend_from_slice(&self.authority);
        octets.extend_from_slice(&self.id.to_be_bytes());
        octets.extend_from_slice(&self.secret);
        Zeroizing::new(BASE64_URL_SAFE_NO_PAD.encode(&*octets))
    }

    /// The digest of its secret, by which it is known again.
    ///
    /// # Errors
    /// If no driver digests.
    pub(super) fn digest(&self, engine: &Engine) -> Result<[u8; 32], Failure> {
        digest(engine, &self.secret)
    }
}

impl fmt::Debug for JoinToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JoinToken({:016x})", self.id)
    }
}

fn digest(engine: &Engine, octets: &[u8]) -> Result<[u8; 32], Failure> {
    let mut digest = [0; 32];
    let made = engine.digest(Algorithm::Sha256, &[octets], &mut digest);
    made.map_err(|why| Failure::new(format!("cannot make a digest: {why}")))?;
    Ok(digest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn made() -> JoinToken {
        JoinToken::make(&keyway_drivers::engine(), b"certificate").unwrap()
    }

    #[test]
    fn a_token_is_read_as_it_was_made() {
        let token = made();
        let text = token.text();
        assert_eq!(JoinToken::parse(&format!(" {}\n", *text)).unwrap(), token);
        assert!(made() != token);
        assert!(!format!("{token:?}").contains(&text[60..]));
        for wrong in [&text[1..], &text[..text.len() - 1], "", "AAAA", "Ag"] {
            assert!(JoinToken::parse(wrong).is_err(), "{wrong}");
        }
        assert!(JoinToken::parse(&"A".repeat(1 << 20)).unwrap_err().contains("too long"));
    }

    proptest! {
        #[test]
        fn no_text_is_read_as_another_token(text in "\\PC{0,300}") {
            if let Ok(token) = JoinToken::parse(&text) {
                let again = token.text();
                prop_assert_eq!(again.as_str(), text.trim());
            }
        }

        #[test]
        fn octets_are_a_token_only_in_full(octets in prop::collection::vec(any::<u8>(), 0..80)) {
            let text = BASE64_URL_SAFE_NO_PAD.encode(&octets);
            let is_one = octets.len() == TOKEN_BYTES && octets[0] == VERSION;
            prop_assert_eq!(JoinToken::parse(&text).is_ok(), is_one);
        }
    }
}
