//! Keys: those of an Initial packet to a connection ID, since rustls hands out no others from
//! bytes.

use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};

/// RFC 9001 § 5.2.
const SALT: [u8; 20] = [
    0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad,
    0xcc, 0xbb, 0x7f, 0x0a,
];

/// The keys of one connection's one direction.
pub struct Secrets {
    pub key: Vec<u8>,
    pub iv: [u8; 12],
    pub header_key: Vec<u8>,
    /// The connection ID.
    pub id: [u8; 8],
}

impl Secrets {
    /// The secrets of a client that sends to the connection ID of this number; keys have so many bytes.
    pub fn new(connection: u64, key_bytes: usize) -> Self {
        Self::of((0x8394_c8f0_3e51_5708 + connection).to_be_bytes(), key_bytes)
    }

    fn of(id: [u8; 8], key_bytes: usize) -> Self {
        let initial = Salt::new(HKDF_SHA256, &SALT).extract(&id);
        let client = Prk::new_less_safe(HKDF_SHA256, &expand(&initial, "client in", 32));
        let mut iv = [0; 12];
        iv.copy_from_slice(&expand(&client, "quic iv", 12));
        let key = expand(&client, "quic key", key_bytes);
        Secrets { key, iv, header_key: expand(&client, "quic hp", key_bytes), id }
    }

    /// RFC 9001 § 5.3.
    pub fn nonce(iv: &[u8; 12], number: u64) -> [u8; 12] {
        let mut nonce = *iv;
        nonce[4..].iter_mut().zip(number.to_be_bytes()).for_each(|(byte, other)| *byte ^= other);
        nonce
    }
}

struct Bytes(usize);

impl KeyType for Bytes {
    fn len(&self) -> usize {
        self.0
    }
}

/// HKDF-Expand-Label (RFC 8446 § 7.1) without a context.
fn expand(secret: &Prk, label: &str, bytes: usize) -> Vec<u8> {
    let length = [(bytes >> 8) as u8, bytes as u8, 6 + label.len() as u8];
    let mut out = vec![0; bytes];
    secret
        .expand(&[&length, b"tls13 ", label.as_bytes(), &[0]], Bytes(bytes))
        .and_then(|made| made.fill(&mut out))
        .expect("a few bytes are not too many");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9001 § A.1.
    #[test]
    fn the_keys_are_those_of_the_rfc() {
        let secrets = Secrets::new(0, 16);
        assert_eq!(secrets.key[..4], [0x1f, 0x36, 0x96, 0x13]);
        assert_eq!(secrets.iv[..4], [0xfa, 0x04, 0x4b, 0x2f]);
        assert_eq!(secrets.header_key[..4], [0x9f, 0x50, 0x44, 0x9e]);
    }
}
