//! A key as OpenSSL sees it: its kind, its public half, and the name that it has in cryptod.

use crate::provider::Provider;
use keyway_client::{KeyReference, MlDsa, PublicKey};
use keyway_wire::read_subject_public_key_info;
use std::ffi::CStr;
use std::sync::Arc;

/// A kind of keys: what OpenSSL calls a key type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Rsa,
    Ec,
    Ed25519,
    X25519,
    MlDsa(MlDsa),
}

impl Kind {
    /// OpenSSL's name for it.
    pub const fn name(self) -> &'static CStr {
        match self {
            Kind::Rsa => c"RSA",
            Kind::Ec => c"EC",
            Kind::Ed25519 => c"ED25519",
            Kind::X25519 => c"X25519",
            Kind::MlDsa(MlDsa::MlDsa44) => c"ML-DSA-44",
            Kind::MlDsa(MlDsa::MlDsa65) => c"ML-DSA-65",
            Kind::MlDsa(MlDsa::MlDsa87) => c"ML-DSA-87",
        }
    }

    /// Whether whole messages are signed, and no digests that the program has made.
    pub const fn signs_messages(self) -> bool {
        matches!(self, Kind::Ed25519 | Kind::MlDsa(_))
    }
}

/// A key of cryptod or, without a name, a public key.
#[derive(Debug)]
pub struct Key {
    pub name: Option<String>,
    /// A SubjectPublicKeyInfo.
    pub info: Vec<u8>,
    pub public: PublicKey,
}

impl Key {
    /// `None` for a kind of key that is not offered here.
    pub fn new(name: Option<String>, info: Vec<u8>) -> Option<Key> {
        let public = PublicKey::read(&info)?;
        Some(Key { name, public, info })
    }

    /// A public key of its parts.
    pub fn from_public(public: &PublicKey) -> Option<Key> {
        Key::new(None, public.info()?)
    }

    pub fn kind(&self) -> Kind {
        match self.public {
            PublicKey::Rsa { .. } => Kind::Rsa,
            PublicKey::Ec { .. } => Kind::Ec,
            PublicKey::Ed25519(_) => Kind::Ed25519,
            PublicKey::X25519(_) => Kind::X25519,
            PublicKey::MlDsa { set, .. } => Kind::MlDsa(set),
        }
    }

    /// The public key as the engine has it.
    pub fn public_bits(&self) -> &[u8] {
        read_subject_public_key_info(&self.info).map_or(&[], |(_, bits)| bits)
    }

    /// Its strength (SP 800-57 part 1, FIPS 204 § 4, and for RSA and X25519 as OpenSSL counts it).
    pub fn security_bits(&self) -> usize {
        match (&self.public, self.public.bits()) {
            (PublicKey::Rsa { .. }, 0..1024) => 0,
            (PublicKey::Rsa { .. }, 1024..2048) => 80,
            (PublicKey::Rsa { .. }, 2048..3072) => 112,
            (PublicKey::Rsa { .. }, 3072..4096) => 128,
            (PublicKey::Rsa { .. }, 4096..7680) => 152,
            (PublicKey::Rsa { .. }, _) => 192,
            (PublicKey::X25519(_) | PublicKey::MlDsa { set: MlDsa::MlDsa44, .. }, _) => 128,
            (PublicKey::MlDsa { set: MlDsa::MlDsa65, .. }, _) => 192,
            (_, bits) => (bits / 2).min(256),
        }
    }

    /// Longest signature, in bytes; for X25519, which signs nothing, the secret.
    pub fn signature_bytes_max(&self) -> usize {
        match &self.public {
            PublicKey::Rsa { n, .. } => n.len(),
            // A SEQUENCE of two INTEGERs, each with a zero before it. On P-521 none has one, and a length is longer.
            PublicKey::Ec { curve, .. } => 2 * (curve.bytes() + 3) + 2,
            PublicKey::Ed25519(_) => 64,
            PublicKey::X25519(_) => 32,
            PublicKey::MlDsa { set, .. } => set.signature_bytes(),
        }
    }

    /// Finds the key that a file or a URI names; from cryptod, unless the file has its public half.
    ///
    /// An error is in OpenSSL's queue.
    pub fn load(provider: &Arc<Provider>, reference: KeyReference) -> Option<Key> {
        // A program may change its root before it signs.
        provider.client.prepare();
        let info = match reference.public_key {
            Some(info) => info,
            None => match provider.client.find(&reference.name) {
                Ok(found) => found.public_key,
                Err(why) => {
                    provider.raise(&why);
                    return None;
                }
            },
        };
        let name = reference.name;
        let key = Key::new(Some(name.clone()), info);
        if key.is_none() {
            provider.raise_unfit(&format!(
                "key {name} is of a kind that OpenSSL gets no signatures from"
            ));
        }
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use keyway_client::Curve;

    #[test]
    fn a_key_has_the_strength_of_its_kind() {
        let n = [&[0xc5][..], &[7; 255]].concat();
        for (public, strength, signature) in [
            (PublicKey::Rsa { n, e: vec![1, 0, 1] }, 112, 256),
            (PublicKey::Ec { curve: Curve::P256, point: [&[4][..], &[9; 64]].concat() }, 128, 72),
            (PublicKey::Ec { curve: Curve::P521, point: [&[4][..], &[9; 132]].concat() }, 256, 140),
            (PublicKey::Ed25519(vec![5; 32]), 128, 64),
            (PublicKey::X25519(vec![5; 32]), 128, 32),
            (PublicKey::MlDsa { set: MlDsa::MlDsa44, key: vec![5; 1312] }, 128, 2420),
            (PublicKey::MlDsa { set: MlDsa::MlDsa65, key: vec![5; 1952] }, 192, 3309),
            (PublicKey::MlDsa { set: MlDsa::MlDsa87, key: vec![5; 2592] }, 256, 4627),
        ] {
            let key = Key::from_public(&public).unwrap();
            assert_eq!((key.security_bits(), key.signature_bytes_max()), (strength, signature));
            assert_eq!(key.public, public);
        }
        assert!(Key::from_public(&PublicKey::Ed25519(vec![5; 31])).is_none());
    }
}
