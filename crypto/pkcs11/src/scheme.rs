//! How a key signs and decrypts: mechanisms of PKCS #11, as cryptod does them.

use crate::abi::{self, Parameters, Rv, Ulong};
use crate::key::TokenKey;
use keyway_client::{Hash, PublicKey};
use keyway_engine::{Algorithm, OaepParameters, SignatureParameters};

/// How a key signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// By PKCS#1 v1.5 a message that is hashed, or bytes as they are given.
    RsaPkcs1(Option<Hash>),
    /// By PSS a message, or its digest.
    RsaPss { hash: Hash, mgf1: Hash, salt_bytes: u16, is_digest: bool },
    /// By ECDSA a message that is hashed, or a digest.
    Ecdsa(Option<Hash>),
    /// The whole message.
    Ed25519,
}

/// A mechanism that signs: its number, the hash of its message if it has one, and the way.
type Signing = (Ulong, Option<Hash>, Way);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Pkcs1,
    Pss,
    Ecdsa,
    Ed25519,
}

const SIGNING: [Signing; 19] = [
    (abi::RSA_PKCS, None, Way::Pkcs1),
    (abi::SHA1_RSA_PKCS, Some(Hash::Sha1), Way::Pkcs1),
    (abi::SHA224_RSA_PKCS, Some(Hash::Sha224), Way::Pkcs1),
    (abi::SHA256_RSA_PKCS, Some(Hash::Sha256), Way::Pkcs1),
    (abi::SHA384_RSA_PKCS, Some(Hash::Sha384), Way::Pkcs1),
    (abi::SHA512_RSA_PKCS, Some(Hash::Sha512), Way::Pkcs1),
    (abi::RSA_PKCS_PSS, None, Way::Pss),
    (abi::SHA1_RSA_PKCS_PSS, Some(Hash::Sha1), Way::Pss),
    (abi::SHA224_RSA_PKCS_PSS, Some(Hash::Sha224), Way::Pss),
    (abi::SHA256_RSA_PKCS_PSS, Some(Hash::Sha256), Way::Pss),
    (abi::SHA384_RSA_PKCS_PSS, Some(Hash::Sha384), Way::Pss),
    (abi::SHA512_RSA_PKCS_PSS, Some(Hash::Sha512), Way::Pss),
    (abi::ECDSA, None, Way::Ecdsa),
    (abi::ECDSA_SHA1, Some(Hash::Sha1), Way::Ecdsa),
    (abi::ECDSA_SHA224, Some(Hash::Sha224), Way::Ecdsa),
    (abi::ECDSA_SHA256, Some(Hash::Sha256), Way::Ecdsa),
    (abi::ECDSA_SHA384, Some(Hash::Sha384), Way::Ecdsa),
    (abi::ECDSA_SHA512, Some(Hash::Sha512), Way::Ecdsa),
    (abi::EDDSA, None, Way::Ed25519),
];

impl Scheme {
    /// Reads a program's mechanism.
    pub fn read(mechanism: Ulong, parameters: &Parameters) -> Result<Scheme, Rv> {
        let known = SIGNING.iter().find(|(number, ..)| *number == mechanism);
        let (_, message_hash, way) = *known.ok_or(abi::MECHANISM_INVALID)?;
        Ok(match way {
            Way::Pkcs1 => Scheme::RsaPkcs1(message_hash),
            Way::Ecdsa => Scheme::Ecdsa(message_hash),
            Way::Ed25519 => Scheme::Ed25519,
            Way::Pss => {
                let Parameters::Pss { hash, mgf, salt_bytes } = *parameters else {
                    return Err(abi::MECHANISM_PARAM_INVALID);
                };
                let hash = hash_of_mechanism(hash).ok_or(abi::MECHANISM_PARAM_INVALID)?;
                let mgf1 = hash_of_mgf(mgf).ok_or(abi::MECHANISM_PARAM_INVALID)?;
                if message_hash.is_some_and(|it| it != hash) {
                    return Err(abi::MECHANISM_PARAM_INVALID);
                }
                let salt = u16::try_from(salt_bytes).map_err(|_| abi::MECHANISM_PARAM_INVALID)?;
                Scheme::RsaPss { hash, mgf1, salt_bytes: salt, is_digest: message_hash.is_none() }
            }
        })
    }

    /// The hash of the message; `None` if the program brings a digest, or the whole is signed.
    pub fn message_hash(self) -> Option<Hash> {
        match self {
            Scheme::RsaPkcs1(hash) | Scheme::Ecdsa(hash) => hash,
            Scheme::RsaPss { hash, is_digest, .. } => (!is_digest).then_some(hash),
            Scheme::Ed25519 => None,
        }
    }

    /// Whether a key is of its kind.
    pub fn fits(self, public: &PublicKey) -> bool {
        match self {
            Scheme::RsaPkcs1(_) | Scheme::RsaPss { .. } => {
                matches!(public, PublicKey::Rsa { .. })
            }
            Scheme::Ecdsa(_) => matches!(public, PublicKey::Ec { .. }),
            Scheme::Ed25519 => matches!(public, PublicKey::Ed25519(_)),
        }
    }

    /// The algorithm that takes every such request, and what it is told; `None` for a key of another kind.
    pub fn general(self, public: &PublicKey) -> Option<(Algorithm, SignatureParameters)> {
        let given = SignatureParameters { prehashed: true, ..SignatureParameters::default() };
        let digest = |hash: Option<Hash>| {
            hash.map_or(given, |hash| SignatureParameters::digest(hash.algorithm()))
        };
        Some(match (self, public) {
            (Scheme::RsaPkcs1(hash), PublicKey::Rsa { .. }) => (Algorithm::RsaPkcs1, digest(hash)),
            (Scheme::RsaPss { hash, mgf1, salt_bytes, .. }, PublicKey::Rsa { .. }) => {
                let parameters = SignatureParameters {
                    mgf1_hash: Some(mgf1.algorithm()),
                    salt_bytes: Some(salt_bytes),
                    ..SignatureParameters::digest(hash.algorithm())
                };
                (Algorithm::RsaPss, parameters)
            }
            (Scheme::Ecdsa(hash), PublicKey::Ec { curve, .. }) => (curve.ecdsa(), digest(hash)),
            (Scheme::Ed25519, PublicKey::Ed25519(_)) => {
                (Algorithm::Ed25519, SignatureParameters::default())
            }
            _ => return None,
        })
    }

    /// The algorithm of a key that does it, and what that is told; `None` if the key is not for it.
    pub fn of_key(self, key: &TokenKey) -> Option<(Algorithm, SignatureParameters)> {
        let (general, parameters) = self.general(&key.public)?;
        if key.is_for(general) {
            return Some((general, parameters));
        }
        let hash = parameters.hash?;
        if let Scheme::RsaPss { hash, mgf1, salt_bytes, .. } = self
            && (mgf1 != hash || usize::from(salt_bytes) != hash.bytes())
        {
            return None;
        }
        let does =
            |it: &&Algorithm| it.general() == Some(general) && it.signature_hash() == Some(hash);
        let special = *key.algorithms.iter().find(does)?;
        Some((special, SignatureParameters::digest(hash)))
    }

    /// Refuses data of another length than the key signs.
    pub fn check(self, public: &PublicKey, bytes: usize) -> Result<(), Rv> {
        let fits = match (self, public) {
            (Scheme::RsaPkcs1(None), PublicKey::Rsa { n, .. }) => bytes + 11 <= n.len(),
            (Scheme::RsaPss { hash, salt_bytes, .. }, PublicKey::Rsa { .. }) => {
                let most = public.salt_bytes_max(hash);
                bytes == hash.bytes() && most.is_some_and(|most| usize::from(salt_bytes) <= most)
            }
            (Scheme::Ecdsa(None), _) => (20..=64).contains(&bytes),
            _ => true,
        };
        if fits { Ok(()) } else { Err(abi::DATA_LEN_RANGE) }
    }
}

/// The mechanisms that a key signs with.
pub fn signing_mechanisms(key: &TokenKey) -> Vec<Ulong> {
    let signs = |(number, message_hash, way): &Signing| {
        let digest = |hash: Hash| {
            let salt_bytes = hash.bytes() as u16;
            Scheme::RsaPss { hash, mgf1: hash, salt_bytes, is_digest: message_hash.is_none() }
        };
        let schemes = match way {
            Way::Pkcs1 => vec![Scheme::RsaPkcs1(*message_hash)],
            Way::Ecdsa => vec![Scheme::Ecdsa(*message_hash)],
            Way::Ed25519 => vec![Scheme::Ed25519],
            Way::Pss => match message_hash {
                Some(hash) => vec![digest(*hash)],
                None => Hash::ALL.map(digest).to_vec(),
            },
        };
        schemes.iter().any(|scheme| scheme.of_key(key).is_some()).then_some(*number)
    };
    if !key.can_sign {
        return Vec::new();
    }
    SIGNING.iter().filter_map(signs).collect()
}

/// How a key decrypts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decryption {
    Pkcs1,
    Oaep { hash: Hash, mgf1: Hash, label: Vec<u8> },
}

impl Decryption {
    /// Reads a program's mechanism.
    pub fn read(mechanism: Ulong, parameters: Parameters) -> Result<Decryption, Rv> {
        match (mechanism, parameters) {
            (abi::RSA_PKCS, _) => Ok(Decryption::Pkcs1),
            (abi::RSA_PKCS_OAEP, Parameters::Oaep { hash, mgf, label }) => {
                let hash = hash_of_mechanism(hash).ok_or(abi::MECHANISM_PARAM_INVALID)?;
                let mgf1 = hash_of_mgf(mgf).ok_or(abi::MECHANISM_PARAM_INVALID)?;
                Ok(Decryption::Oaep { hash, mgf1, label })
            }
            _ => Err(abi::MECHANISM_INVALID),
        }
    }

    /// The algorithm that takes every such request, and what it is told.
    pub fn general(&self) -> (Algorithm, OaepParameters) {
        match self {
            Decryption::Pkcs1 => (Algorithm::RsaesPkcs1, OaepParameters::default()),
            Decryption::Oaep { hash, mgf1, .. } => {
                let (hash, mgf1_hash) = (Some(hash.algorithm()), Some(mgf1.algorithm()));
                (Algorithm::RsaOaep, OaepParameters { hash, mgf1_hash })
            }
        }
    }

    /// The algorithm of a key that does it, and what that is told; `None` if the key is not for it.
    pub fn of_key(&self, key: &TokenKey) -> Option<(Algorithm, OaepParameters)> {
        let general = self.general();
        if key.is_for(general.0) {
            return Some(general);
        }
        let special = match self {
            Decryption::Oaep { hash, mgf1, label } if hash == mgf1 && label.is_empty() => {
                match hash {
                    Hash::Sha1 => Algorithm::RsaOaepSha1,
                    Hash::Sha256 => Algorithm::RsaOaepSha256,
                    _ => return None,
                }
            }
            _ => return None,
        };
        key.is_for(special).then(|| (special, OaepParameters::default()))
    }

    /// OAEP's label.
    pub fn label(&self) -> &[u8] {
        match self {
            Decryption::Pkcs1 => &[],
            Decryption::Oaep { label, .. } => label,
        }
    }
}

/// The mechanisms that a key decrypts with.
pub fn decryption_mechanisms(key: &TokenKey) -> Vec<Ulong> {
    let oaep = [Algorithm::RsaOaep, Algorithm::RsaOaepSha1, Algorithm::RsaOaepSha256];
    let is_for = [
        (abi::RSA_PKCS, key.is_for(Algorithm::RsaesPkcs1)),
        (abi::RSA_PKCS_OAEP, oaep.iter().any(|it| key.is_for(*it))),
    ];
    let own = is_for.into_iter().filter(|(_, is)| *is && key.can_decrypt);
    own.map(|(number, _)| number).collect()
}

/// The hash of a mechanism that digests.
pub fn hash_of_mechanism(mechanism: Ulong) -> Option<Hash> {
    Some(match mechanism {
        abi::SHA_1 => Hash::Sha1,
        abi::SHA224 => Hash::Sha224,
        abi::SHA256 => Hash::Sha256,
        abi::SHA384 => Hash::Sha384,
        abi::SHA512 => Hash::Sha512,
        _ => return None,
    })
}

/// The hash of a mask generation function.
fn hash_of_mgf(mgf: Ulong) -> Option<Hash> {
    Some(match mgf {
        abi::MGF1_SHA1 => Hash::Sha1,
        abi::MGF1_SHA224 => Hash::Sha224,
        abi::MGF1_SHA256 => Hash::Sha256,
        abi::MGF1_SHA384 => Hash::Sha384,
        abi::MGF1_SHA512 => Hash::Sha512,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rsa(algorithms: &[Algorithm]) -> TokenKey {
        TokenKey {
            name: "web".to_owned(),
            info: Vec::new(),
            public: PublicKey::Rsa { n: vec![0xc5; 256], e: vec![1, 0, 1] },
            algorithms: algorithms.to_vec(),
            can_sign: true,
            can_decrypt: true,
            can_agree: false,
        }
    }

    #[test]
    fn a_key_of_one_algorithm_has_one_mechanism() {
        let one = |algorithm| signing_mechanisms(&rsa(&[algorithm]));
        assert_eq!(one(Algorithm::RsaPkcs1Sha256), [abi::SHA256_RSA_PKCS]);
        assert_eq!(one(Algorithm::RsaPssSha384), [abi::RSA_PKCS_PSS, abi::SHA384_RSA_PKCS_PSS]);
        let all = signing_mechanisms(&rsa(&[Algorithm::RsaPkcs1, Algorithm::RsaPss]));
        assert_eq!(all.len(), 12);
        let oaep = decryption_mechanisms(&rsa(&[Algorithm::RsaOaepSha256]));
        assert_eq!(oaep, [abi::RSA_PKCS_OAEP]);
    }

    #[test]
    fn an_algorithm_of_one_salt_takes_no_other() {
        let key = rsa(&[Algorithm::RsaPssSha256]);
        let pss = |salt_bytes, mgf1| {
            Scheme::RsaPss { hash: Hash::Sha256, mgf1, salt_bytes, is_digest: true }.of_key(&key)
        };
        assert!(pss(32, Hash::Sha256).is_some());
        assert!(pss(20, Hash::Sha256).is_none() && pss(32, Hash::Sha1).is_none());
        assert!(Scheme::RsaPkcs1(None).of_key(&key).is_none());
    }
}
