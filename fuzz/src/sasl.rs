//! The values that SASL mechanisms put into a bind: PLAIN's message, and the identity of EXTERNAL
//! and PLAIN.

use keyway_codec::sasl::{Identity, Plain};

/// Reads the bytes as a message of PLAIN, and as an authorization identity.
pub fn sasl(data: &[u8]) {
    if let Some(plain) = Plain::decode(data) {
        assert!(!plain.authentication.is_empty() && !plain.password.is_empty());
        let mut written = Vec::new();
        plain.encode(&mut written);
        assert_eq!(written, data);
        identity(plain.authorization);
        identity(plain.authentication);
    }
    if let Ok(text) = str::from_utf8(data) {
        identity(text);
    }
}

fn identity(text: &str) {
    let identity = Identity::parse(text);
    let (Identity::Dn(name) | Identity::Uid(name)) = identity;
    assert!(text.ends_with(name), "{text:?} does not end with {name:?}");
    assert_eq!(Identity::parse(&identity.to_string()), identity);
}
