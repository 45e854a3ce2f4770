//! A private key's operation as a token does it.

use crate::kind::{KeyKind, ecdsa_signature, modulus_bytes};
use crate::known::Known;
use crate::seat::{Fault, Seated};
use cryptoki::error::{Error as ModuleError, RvError};
use cryptoki::mechanism::eddsa::{EddsaParams, EddsaSignatureScheme};
use cryptoki::mechanism::elliptic_curve::{EcKdf, Ecdh1DeriveParams};
use cryptoki::mechanism::rsa::{PkcsMgfType, PkcsOaepParams, PkcsOaepSource, PkcsPssParams};
use cryptoki::mechanism::{Mechanism, MechanismType};
use cryptoki::object::{Attribute, AttributeType, KeyType, ObjectClass};
use keyway_engine::{Algorithm, Error, OaepParameters, SignatureParameters};
use keyway_wire::der::{SEQUENCE, element};
use zeroize::Zeroizing;

/// An operation, with all that it needs.
#[derive(Clone)]
pub(crate) enum Operation {
    /// The bytes behind the padding: a DigestInfo.
    RsaPkcs1(Vec<u8>),
    RsaPss {
        digest: Vec<u8>,
        hash: Hash,
        mgf1: Hash,
        salt_bytes: u16,
    },
    RsaOaep {
        ciphertext: Vec<u8>,
        hash: Hash,
        mgf1: Hash,
        label: Vec<u8>,
    },
    Ecdsa(Vec<u8>),
    Ed25519(Vec<u8>),
    Ecdh {
        peer: Vec<u8>,
        secret_bytes: usize,
    },
}

/// A hash that PKCS#11 has a name for in the parameters of RSA.
#[derive(Clone, Copy)]
pub(crate) struct Hash {
    mechanism: MechanismType,
    mgf1: PkcsMgfType,
}

impl Hash {
    fn of(algorithm: Algorithm) -> Result<Hash, Error> {
        let (mechanism, mgf1) = match algorithm {
            Algorithm::Sha1 => (MechanismType::SHA1, PkcsMgfType::MGF1_SHA1),
            Algorithm::Sha224 => (MechanismType::SHA224, PkcsMgfType::MGF1_SHA224),
            Algorithm::Sha256 => (MechanismType::SHA256, PkcsMgfType::MGF1_SHA256),
            Algorithm::Sha384 => (MechanismType::SHA384, PkcsMgfType::MGF1_SHA384),
            Algorithm::Sha512 => (MechanismType::SHA512, PkcsMgfType::MGF1_SHA512),
            _ => return Err(NO_SUCH_HASH),
        };
        Ok(Hash { mechanism, mgf1 })
    }
}

const NO_SUCH_HASH: Error =
    Error::invalid_request("tokens sign and decrypt with SHA-1 and SHA-2 only");
const TOO_LONG: Error = Error::invalid_request("the key is too short for that much");

/// The object identifiers of hashes, as in a DigestInfo (RFC 8017 § B.1).
fn identifier(hash: Algorithm) -> Option<&'static [u8]> {
    Some(match hash {
        Algorithm::Md5 => b"\x06\x08\x2a\x86\x48\x86\xf7\x0d\x02\x05",
        Algorithm::Sha1 => b"\x06\x05\x2b\x0e\x03\x02\x1a",
        Algorithm::Sha224 => b"\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x04",
        Algorithm::Sha256 => b"\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01",
        Algorithm::Sha384 => b"\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x02",
        Algorithm::Sha512 => b"\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x03",
        Algorithm::Sha512_256 => b"\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x06",
        Algorithm::Sha3_256 => b"\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x08",
        Algorithm::Sha3_384 => b"\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x09",
        Algorithm::Sha3_512 => b"\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x0a",
        _ => return None,
    })
}

impl Operation {
    /// A signature of a message, or of its digest. `hashed` hashes it.
    pub fn sign(
        algorithm: Algorithm,
        public: &[u8],
        parameters: &SignatureParameters,
        message: &[u8],
        hashed: impl Fn(Algorithm, &[u8]) -> Result<Vec<u8>, Error>,
    ) -> Result<Operation, Error> {
        if algorithm == Algorithm::Ed25519 {
            return Ok(Operation::Ed25519(message.to_vec()));
        }
        let hash = parameters.hash_of(algorithm);
        let digest = match (parameters.prehashed, hash) {
            (true, _) => message.to_vec(),
            (false, Some(hash)) => hashed(hash, message)?,
            (false, None) => return Err(Error::invalid_request("the request has to name a hash")),
        };
        if algorithm.is_ecdsa() {
            let kind = KeyKind::of_one(algorithm).ok_or(Error::Unsupported(algorithm))?;
            // ECDSA takes the leftmost bits of a digest (FIPS 186-5 § 6.4.1), and few tokens cut it themselves.
            let most = kind.coordinate_bytes().min(digest.len());
            return Ok(Operation::Ecdsa(digest[..most].to_vec()));
        }
        let room = modulus_bytes(public);
        if algorithm.is_pss() {
            let hash = hash.ok_or(Error::invalid_request("the request has to name a hash"))?;
            let salt_bytes = parameters.salt_bytes.unwrap_or(digest.len() as u16);
            if digest.len() + usize::from(salt_bytes) + 2 > room {
                return Err(TOO_LONG);
            }
            let mgf1 = Hash::of(parameters.mgf1_hash.unwrap_or(hash))?;
            return Ok(Operation::RsaPss { digest, hash: Hash::of(hash)?, mgf1, salt_bytes });
        }
        let info = match hash {
            None => digest,
            Some(hash) => {
                let identifier = identifier(hash).ok_or(NO_SUCH_HASH)?;
                let algorithm = element(SEQUENCE, &[identifier, &[5, 0]]);
                element(SEQUENCE, &[&algorithm, &element(4, &[&digest])])
            }
        };
        // EMSA-PKCS1-v1_5 takes eleven bytes (RFC 8017 § 9.2).
        if info.len() + 11 > room {
            return Err(TOO_LONG);
        }
        Ok(Operation::RsaPkcs1(info))
    }

    /// Decryption by OAEP.
    pub fn decrypt(
        algorithm: Algorithm,
        public: &[u8],
        parameters: &OaepParameters,
        label: &[u8],
        ciphertext: &[u8],
    ) -> Result<Operation, Error> {
        let hash = match algorithm {
            Algorithm::RsaOaepSha1 => Algorithm::Sha1,
            Algorithm::RsaOaepSha256 => Algorithm::Sha256,
            _ => parameters.hash.ok_or(Error::invalid_request("the request has to name a hash"))?,
        };
        if ciphertext.len() != modulus_bytes(public) {
            return Err(Error::Authentication);
        }
        let mgf1 = Hash::of(parameters.mgf1_hash.unwrap_or(hash))?;
        let (ciphertext, label) = (ciphertext.to_vec(), label.to_vec());
        Ok(Operation::RsaOaep { ciphertext, hash: Hash::of(hash)?, mgf1, label })
    }

    /// Whether its faults tell of the message that came, which only the caller made.
    pub fn is_decryption(&self) -> bool {
        matches!(self, Operation::RsaOaep { .. })
    }

    /// Does it in a session, under this key.
    pub fn run(&self, seated: &mut Seated<'_>, key: &Known) -> Result<Zeroizing<Vec<u8>>, Fault> {
        let key = key.private_key(seated)?;
        let session = seated.session;
        let signed =
            |mechanism: Mechanism<'_>, data: &[u8]| Ok(session.sign(&mechanism, key, data)?);
        let done = match self {
            Operation::RsaPkcs1(info) => signed(Mechanism::RsaPkcs, info),
            Operation::RsaPss { digest, hash, mgf1, salt_bytes } => {
                let s_len = u64::from(*salt_bytes).into();
                let parameters = PkcsPssParams { hash_alg: hash.mechanism, mgf: mgf1.mgf1, s_len };
                signed(Mechanism::RsaPkcsPss(parameters), digest)
            }
            Operation::Ecdsa(digest) => {
                let halves = signed(Mechanism::Ecdsa, digest)?;
                ecdsa_signature(&halves).ok_or(NONSENSE)
            }
            Operation::Ed25519(message) => {
                let scheme = EddsaParams::new(EddsaSignatureScheme::Pure);
                signed(Mechanism::Eddsa(scheme), message)
            }
            Operation::RsaOaep { ciphertext, hash, mgf1, label } => {
                let source = match label.is_empty() {
                    true => PkcsOaepSource::empty(),
                    false => PkcsOaepSource::data_specified(label),
                };
                let parameters = PkcsOaepParams::new(hash.mechanism, mgf1.mgf1, source);
                Ok(session.decrypt(&Mechanism::RsaPkcsOaep(parameters), key, ciphertext)?)
            }
            Operation::Ecdh { peer, secret_bytes } => {
                let parameters = Ecdh1DeriveParams::new(EcKdf::null(), peer);
                let template = [
                    Attribute::Class(ObjectClass::SECRET_KEY),
                    Attribute::KeyType(KeyType::GENERIC_SECRET),
                    Attribute::ValueLen((*secret_bytes as u64).into()),
                    Attribute::Token(false),
                    Attribute::Sensitive(false),
                    Attribute::Extractable(true),
                ];
                let derive = Mechanism::Ecdh1Derive(parameters);
                let secret = session.derive_key(&derive, key, &template)?;
                let value = session.get_attributes(secret, &[AttributeType::Value]);
                // It is the session's, and goes with it if this fails.
                let _ = session.destroy_object(secret);
                match value?.pop() {
                    Some(Attribute::Value(value)) if value.len() == *secret_bytes => Ok(value),
                    _ => Err(NONSENSE),
                }
            }
        };
        done.map(Zeroizing::new)
    }
}

const NONSENSE: Fault =
    Fault::Module(ModuleError::Pkcs11(RvError::FunctionFailed, cryptoki::context::Function::Sign));
