//! Signatures as SSH has them.

use crate::key::{AgentKey, integers, strings};
use keyway_engine::Algorithm;

/// `SSH_AGENT_RSA_SHA2_256` (draft-ietf-sshm-ssh-agent § 3.6.1).
const RSA_SHA2_256: u32 = 2;
/// `SSH_AGENT_RSA_SHA2_512`.
const RSA_SHA2_512: u32 = 4;

/// How a key signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signing {
    /// The engine's algorithm.
    pub algorithm: Algorithm,
    /// SSH's name for it.
    pub name: &'static str,
}

impl Signing {
    /// How a key signs if a client has set these flags; `None` if it may not. Without a flag an RSA key would sign with
    /// SHA-1, which is refused. With both it signs with SHA-256, as with OpenSSH's agent. Other keys have one way
    /// to sign, whatever the flags are.
    pub fn of(key: &AgentKey, flags: u32) -> Option<Signing> {
        let (algorithm, name) = match key.algorithms().first()? {
            Algorithm::Ed25519 => (Algorithm::Ed25519, "ssh-ed25519"),
            Algorithm::EcdsaP256Sha256 => (Algorithm::EcdsaP256Sha256, "ecdsa-sha2-nistp256"),
            Algorithm::EcdsaP384Sha384 => (Algorithm::EcdsaP384Sha384, "ecdsa-sha2-nistp384"),
            _ if flags & RSA_SHA2_256 != 0 => (Algorithm::RsaPkcs1Sha256, "rsa-sha2-256"),
            _ if flags & RSA_SHA2_512 != 0 => (Algorithm::RsaPkcs1Sha512, "rsa-sha2-512"),
            _ => return None,
        };
        key.algorithms().contains(&algorithm).then_some(Signing { algorithm, name })
    }
}

/// A signature of the engine's as SSH writes it (RFC 4253 § 6.6, RFC 5656 § 3.1.2, RFC 8332 § 3, RFC 8709 § 6): its
/// name, and its bytes. `None` if it is no signature of this algorithm.
pub fn encode_signature(signing: Signing, signature: &[u8]) -> Option<Vec<u8>> {
    match signing.algorithm {
        Algorithm::EcdsaP256Sha256 | Algorithm::EcdsaP384Sha384 => {
            let (r, s) = integers(signature)?;
            let both = strings(&[r.as_bytes(), s.as_bytes()])?;
            strings(&[signing.name.as_bytes(), &both])
        }
        _ => strings(&[signing.name.as_bytes(), signature]),
    }
}
