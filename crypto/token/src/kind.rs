//! Kinds of keys that live in tokens: how a token makes one, and how its public half is read.

use crate::error::Error;
use cryptoki::mechanism::{Mechanism, MechanismType};
use cryptoki::object::{Attribute, AttributeType, KeyType};
use keyway_engine::{Algorithm, Kind as AlgorithmKind};
use keyway_wire::der::{INTEGER, SEQUENCE, element, split};

/// The tag of an OCTET STRING.
const OCTET_STRING: u8 = 0x04;

/// A kind of key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyKind {
    Rsa,
    P256,
    P384,
    P521,
    Ed25519,
}

/// The algorithms whose keys may live in tokens. RSAES-PKCS1-v1_5 is not among them: a token answers a wrong padding
/// with an error, which tells an attacker of the padding, and cannot do otherwise.
pub(crate) const ALGORITHMS: &[Algorithm] = {
    use Algorithm::*;
    &[
        EcdsaP256,
        EcdsaP256Sha256,
        EcdsaP256Sha384,
        EcdhP256,
        EcdsaP384,
        EcdsaP384Sha256,
        EcdsaP384Sha384,
        EcdhP384,
        EcdsaP521,
        EcdhP521,
        Ed25519,
        RsaPkcs1,
        RsaPkcs1Sha256,
        RsaPkcs1Sha384,
        RsaPkcs1Sha512,
        RsaPss,
        RsaPssSha256,
        RsaPssSha384,
        RsaPssSha512,
        RsaOaep,
        RsaOaepSha1,
        RsaOaepSha256,
    ]
};

/// The kinds of keys of curves.
pub(crate) const CURVES: &[KeyKind] =
    &[KeyKind::P256, KeyKind::P384, KeyKind::P521, KeyKind::Ed25519];

const NOT_SAFE: Error = Error::Kind(
    "no key in a token is for rsaes-pkcs1: a token answers a wrong padding with an error, which tells an attacker of \
     the padding (Bleichenbacher's attack), and the daemon cannot hide it; rsa-oaep decrypts in tokens",
);
const NONE: Error = Error::Kind(
    "only keys of RSA, of P-256, P-384 and P-521, and of Ed25519 live in tokens; make this one without --in",
);
const MIXED: Error =
    Error::Kind("a key in a token is of one kind: of RSA, of one curve, or of Ed25519");

impl KeyKind {
    /// The kind of key that serves these algorithms.
    pub fn of(algorithms: &[Algorithm]) -> Result<KeyKind, Error> {
        if algorithms.contains(&Algorithm::RsaesPkcs1) {
            return Err(NOT_SAFE);
        }
        let kinds: Option<Vec<_>> = algorithms.iter().map(|it| KeyKind::of_one(*it)).collect();
        let kinds = kinds.ok_or(NONE)?;
        let first = *kinds.first().ok_or(NONE)?;
        if kinds.iter().any(|kind| *kind != first) {
            return Err(MIXED);
        }
        Ok(first)
    }

    pub fn of_one(algorithm: Algorithm) -> Option<KeyKind> {
        use Algorithm::*;
        Some(match algorithm {
            EcdsaP256 | EcdsaP256Sha256 | EcdsaP256Sha384 | EcdhP256 => KeyKind::P256,
            EcdsaP384 | EcdsaP384Sha256 | EcdsaP384Sha384 | EcdhP384 => KeyKind::P384,
            EcdsaP521 | EcdhP521 => KeyKind::P521,
            Ed25519 => KeyKind::Ed25519,
            _ if ALGORITHMS.contains(&algorithm) => KeyKind::Rsa,
            _ => return None,
        })
    }

    pub fn key_type(self) -> KeyType {
        match self {
            KeyKind::Rsa => KeyType::RSA,
            KeyKind::Ed25519 => KeyType::EC_EDWARDS,
            _ => KeyType::EC,
        }
    }

    /// The attributes that show a public half.
    pub fn shown(self) -> &'static [AttributeType] {
        match self {
            KeyKind::Rsa => &[AttributeType::Modulus, AttributeType::PublicExponent],
            _ => &[AttributeType::EcParams, AttributeType::EcPoint],
        }
    }

    /// The mechanism that makes such a key.
    pub fn generation(self) -> Mechanism<'static> {
        match self {
            KeyKind::Rsa => Mechanism::RsaPkcsKeyPairGen,
            KeyKind::Ed25519 => Mechanism::EccEdwardsKeyPairGen,
            _ => Mechanism::EccKeyPairGen,
        }
    }

    /// The attributes that the public half of a new key has to name.
    pub fn parameters(self, rsa_bits: u32) -> Vec<Attribute> {
        match self {
            KeyKind::Rsa => vec![
                Attribute::ModulusBits(u64::from(rsa_bits).into()),
                Attribute::PublicExponent(vec![1, 0, 1]),
            ],
            kind => vec![Attribute::EcParams(kind.curve()[0].to_vec())],
        }
    }

    /// The curve as `CKA_EC_PARAMS`, in the forms that tokens have; the first one is the form for a new key. SoftHSM
    /// and PKCS#11 3.0 name Ed25519 in words, others by its object identifier (RFC 8410).
    fn curve(self) -> &'static [&'static [u8]] {
        match self {
            KeyKind::Rsa => &[],
            KeyKind::P256 => &[b"\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07"],
            KeyKind::P384 => &[b"\x06\x05\x2b\x81\x04\x00\x22"],
            KeyKind::P521 => &[b"\x06\x05\x2b\x81\x04\x00\x23"],
            KeyKind::Ed25519 => &[b"\x13\x0cedwards25519", b"\x06\x03\x2b\x65\x70"],
        }
    }

    /// Length in bytes of a coordinate, and of each half of a signature.
    pub fn coordinate_bytes(self) -> usize {
        match self {
            KeyKind::P384 => 48,
            KeyKind::P521 => 66,
            _ => 32,
        }
    }

    /// The public half as the engine has it, from a token's attributes. `None` if it is of another kind.
    pub fn public_half(self, attributes: &[Attribute]) -> Option<Vec<u8>> {
        if self == KeyKind::Rsa {
            let modulus = attributes.iter().find_map(|it| match it {
                Attribute::Modulus(number) if !number.is_empty() => Some(integer(number)),
                _ => None,
            })?;
            let exponent = attributes.iter().find_map(|it| match it {
                Attribute::PublicExponent(number) if !number.is_empty() => Some(integer(number)),
                _ => None,
            })?;
            return Some(element(SEQUENCE, &[&modulus, &exponent]));
        }
        let is_its = |it: &Attribute| matches!(it, Attribute::EcParams(it) if self.curve().contains(&&it[..]));
        attributes.iter().any(is_its).then_some(())?;
        attributes.iter().find_map(|it| match it {
            Attribute::EcPoint(point) => self.point(point),
            _ => None,
        })
    }

    /// A point, which tokens wrap into an OCTET STRING, as the standard says, or do not.
    fn point(self, point: &[u8]) -> Option<Vec<u8>> {
        let fits = |point: &[u8]| match self {
            KeyKind::Ed25519 => point.len() == 32,
            kind => point.len() == 1 + 2 * kind.coordinate_bytes() && point.first() == Some(&4),
        };
        let wrapped = split(OCTET_STRING, point).filter(|(_, rest)| rest.is_empty());
        let wrapped = wrapped.map(|(content, _)| content).filter(|it| fits(it));
        wrapped.or(Some(point).filter(|it| fits(it))).map(<[u8]>::to_vec)
    }

    /// Longest signature under a key with this public half, in bytes.
    pub fn signature_bytes_max(self, public: &[u8]) -> usize {
        match self {
            KeyKind::Rsa => modulus_bytes(public),
            KeyKind::Ed25519 => 64,
            KeyKind::P256 => 72,
            KeyKind::P384 => 104,
            KeyKind::P521 => 139,
        }
    }
}

/// Length in bytes of the modulus of an RSAPublicKey; 0 if it is none.
pub(crate) fn modulus_bytes(public: &[u8]) -> usize {
    let content = split(SEQUENCE, public).and_then(|(content, _)| split(INTEGER, content));
    content
        .map_or(0, |(modulus, _)| modulus.len() - modulus.iter().take_while(|it| **it == 0).count())
}

/// An unsigned number as an INTEGER.
fn integer(number: &[u8]) -> Vec<u8> {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    let digits = &number[zeros.min(number.len() - 1)..];
    let sign: &[u8] = if digits[0] & 0x80 != 0 { &[0] } else { &[] };
    element(INTEGER, &[sign, digits])
}

/// A signature of ECDSA in DER, from two numbers of equal length.
pub(crate) fn ecdsa_signature(halves: &[u8]) -> Option<Vec<u8>> {
    let (r, s) = halves
        .split_at_checked(halves.len() / 2)
        .filter(|(r, s)| !r.is_empty() && r.len() == s.len())?;
    Some(element(SEQUENCE, &[&integer(r), &integer(s)]))
}

/// The mechanism of an algorithm.
pub(crate) fn mechanism(algorithm: Algorithm) -> MechanismType {
    match algorithm.kind() {
        AlgorithmKind::Encryption => MechanismType::RSA_PKCS_OAEP,
        AlgorithmKind::Exchange => MechanismType::ECDH1_DERIVE,
        _ if algorithm == Algorithm::Ed25519 => MechanismType::EDDSA,
        _ if algorithm.is_ecdsa() => MechanismType::ECDSA,
        _ if algorithm.is_pss() => MechanismType::RSA_PKCS_PSS,
        _ => MechanismType::RSA_PKCS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_halves_are_read_in_every_form() {
        let point = [&[4][..], &[7; 64]].concat();
        let wrapped = [&[4, 65][..], &point].concat();
        for form in [&point, &wrapped] {
            let attributes = [
                Attribute::EcPoint(form.clone()),
                Attribute::EcParams(KeyKind::P256.curve()[0].to_vec()),
            ];
            assert_eq!(KeyKind::P256.public_half(&attributes), Some(point.clone()));
            assert_eq!(KeyKind::P384.public_half(&attributes), None);
        }
        let rsa = [
            Attribute::Modulus([&[0x80][..], &[1; 255]].concat()),
            Attribute::PublicExponent(vec![1, 0, 1]),
        ];
        let public = KeyKind::Rsa.public_half(&rsa).unwrap();
        assert_eq!(
            (modulus_bytes(&public), &public[public.len() - 5..]),
            (256, &[2, 3, 1, 0, 1][..])
        );
        assert_eq!(modulus_bytes(b"\x30\x00"), 0);
    }

    #[test]
    fn signatures_are_put_into_der() {
        let der = ecdsa_signature(&[[0; 31].as_slice(), &[1], &[0x80; 32]].concat()).unwrap();
        assert_eq!(&der[..5], &[0x30, 38, 2, 1, 1]);
        assert_eq!(&der[5..8], &[2, 33, 0]);
        assert_eq!(ecdsa_signature(&[0; 64]).unwrap(), [0x30, 6, 2, 1, 0, 2, 1, 0]);
        assert_eq!(ecdsa_signature(&[1; 3]), None);
    }

    #[test]
    fn only_kinds_that_are_safe_in_tokens_are_taken() {
        assert_eq!(KeyKind::of(&[Algorithm::RsaPss, Algorithm::RsaesPkcs1]), Err(NOT_SAFE));
        assert_eq!(KeyKind::of(&[Algorithm::Aes256Gcm]), Err(NONE));
        assert_eq!(KeyKind::of(&[Algorithm::EcdsaP256, Algorithm::EcdsaP384]), Err(MIXED));
        assert_eq!(KeyKind::of(&[Algorithm::EcdsaP256, Algorithm::EcdhP256]), Ok(KeyKind::P256));
        for algorithm in ALGORITHMS {
            assert!(KeyKind::of(&[*algorithm]).is_ok(), "{algorithm}");
        }
    }
}
