//! A key as a client of the agent sees it.

use keyway_engine::Algorithm;
use keyway_wire::der::{INTEGER, SEQUENCE, split};
use ssh_encoding::{Encode, Mpint};

/// A key that the agent lists, and signs with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentKey {
    name: String,
    blob: Vec<u8>,
    algorithms: Vec<Algorithm>,
    public_key: Vec<u8>,
}

impl AgentKey {
    /// A key of this name that may sign with these algorithms, from its SubjectPublicKeyInfo. `None` if SSH has no
    /// signature of any of them, or the key is not one of theirs.
    pub fn new(name: &str, algorithms: &[Algorithm], public_key_info: &[u8]) -> Option<AgentKey> {
        let (kind, public_key) = keyway_wire::read_subject_public_key_info(public_key_info)?;
        // A key for an algorithm that leaves the hash open is for those of SSH that name it.
        let is_for = |algorithm: &Algorithm| {
            let general = algorithm.general();
            algorithms.iter().any(|it| it == algorithm || Some(*it) == general)
        };
        let algorithms: Vec<_> =
            OF_SSH.into_iter().filter(|it| kind.contains(it) && is_for(it)).collect();
        let blob = blob(*algorithms.first()?, public_key)?;
        let public_key = public_key.to_vec();
        Some(AgentKey { name: name.to_owned(), blob, algorithms, public_key })
    }

    /// Its name, which clients show as its comment.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The public key as SSH writes it (RFC 4253 § 6.6, RFC 5656 § 3.1, RFC 8709 § 4).
    pub fn blob(&self) -> &[u8] {
        &self.blob
    }

    /// Those of its algorithms that SSH has: one at least.
    pub fn algorithms(&self) -> &[Algorithm] {
        &self.algorithms
    }

    /// The public key as the engine has it.
    pub fn public_key(&self) -> &[u8] {
        &self.public_key
    }
}

/// The algorithms that SSH signs with.
const OF_SSH: [Algorithm; 5] = [
    Algorithm::Ed25519,
    Algorithm::EcdsaP256Sha256,
    Algorithm::EcdsaP384Sha384,
    Algorithm::RsaPkcs1Sha256,
    Algorithm::RsaPkcs1Sha512,
];

/// Lengths of public keys, in bytes: points are uncompressed.
const ED25519_BYTES: usize = 32;
const P256_BYTES: usize = 65;
const P384_BYTES: usize = 97;

fn blob(algorithm: Algorithm, public_key: &[u8]) -> Option<Vec<u8>> {
    match (algorithm, public_key.len()) {
        (Algorithm::Ed25519, ED25519_BYTES) => strings(&[b"ssh-ed25519", public_key]),
        (Algorithm::EcdsaP256Sha256, P256_BYTES) => {
            strings(&[b"ecdsa-sha2-nistp256", b"nistp256", public_key])
        }
        (Algorithm::EcdsaP384Sha384, P384_BYTES) => {
            strings(&[b"ecdsa-sha2-nistp384", b"nistp384", public_key])
        }
        (Algorithm::RsaPkcs1Sha256 | Algorithm::RsaPkcs1Sha512, _) => {
            let (modulus, exponent) = integers(public_key)?;
            strings(&[b"ssh-rsa", exponent.as_bytes(), modulus.as_bytes()])
        }
        _ => None,
    }
}

/// Strings of SSH, one behind the other; `None` if one is too long.
pub fn strings(all: &[&[u8]]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    all.iter().try_for_each(|string| string.encode(&mut out)).ok()?;
    Some(out)
}

/// Two positive integers in a SEQUENCE, in DER: an RSA key (RFC 8017 § A.1.1), an ECDSA signature (RFC 3279 § 2.2.3).
pub fn integers(der: &[u8]) -> Option<(Mpint, Mpint)> {
    let (content, []) = split(SEQUENCE, der)? else { return None };
    let (first, rest) = split(INTEGER, content)?;
    let (second, []) = split(INTEGER, rest)? else { return None };
    let positive = |digits: &[u8]| match digits {
        [0, 0x80..=0xff, ..] | [1..=0x7f, ..] => Some(Mpint::from_positive_bytes(digits)),
        _ => None,
    };
    Some((positive(first)?, positive(second)?))
}
