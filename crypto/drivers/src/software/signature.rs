//! Signatures: verification needs no key in the session, signing does.

use super::session::{Opened, failed, misfit, opened, put};
use aws_lc_rs::error::{KeyRejected, Unspecified};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa;
use aws_lc_rs::signature::{
    self, EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair, PqdsaKeyPair,
    PqdsaSigningAlgorithm, RsaEncoding, UnparsedPublicKey, VerificationAlgorithm,
};
use keyway_engine::{Algorithm, DriverSession, Error, Key, Request};

/// The library's form of an algorithm.
#[derive(Clone, Copy)]
pub(super) struct Named {
    verification: &'static dyn VerificationAlgorithm,
    public_key: PublicKey,
    pub signing: Option<Signing>,
}

/// How public keys are encoded.
#[derive(Clone, Copy)]
enum PublicKey {
    /// An uncompressed point of so many bytes.
    Point(usize),
    /// So many bytes.
    Raw(usize),
    /// An RSAPublicKey.
    Rsa,
}

#[derive(Clone, Copy)]
pub(super) enum Signing {
    /// With the longest DER signature in bytes: two integers of the group's size and a bit.
    Ecdsa(&'static EcdsaSigningAlgorithm, usize),
    Ed25519,
    Rsa(&'static dyn RsaEncoding),
    MlDsa(&'static PqdsaSigningAlgorithm),
}

pub(super) fn named(algorithm: Algorithm) -> Option<Named> {
    use Algorithm::*;
    let p256 = Signing::Ecdsa(&signature::ECDSA_P256_SHA256_ASN1_SIGNING, 72);
    let p384 = Signing::Ecdsa(&signature::ECDSA_P384_SHA384_ASN1_SIGNING, 104);
    let ecdsa = |verification, point, signing| {
        Some(Named { verification, public_key: PublicKey::Point(point), signing })
    };
    let rsa = |verification, encoding| {
        let signing = Some(Signing::Rsa(encoding));
        Some(Named { verification, public_key: PublicKey::Rsa, signing })
    };
    let ml_dsa = |verification, named: &'static PqdsaSigningAlgorithm| {
        let public_key = PublicKey::Raw(named.public_key_len());
        Some(Named { verification, public_key, signing: Some(Signing::MlDsa(named)) })
    };
    match algorithm {
        EcdsaP256Sha256 => ecdsa(&signature::ECDSA_P256_SHA256_ASN1, 65, Some(p256)),
        EcdsaP256Sha384 => ecdsa(&signature::ECDSA_P256_SHA384_ASN1, 65, None),
        EcdsaP384Sha256 => ecdsa(&signature::ECDSA_P384_SHA256_ASN1, 97, None),
        EcdsaP384Sha384 => ecdsa(&signature::ECDSA_P384_SHA384_ASN1, 97, Some(p384)),
        Ed25519 => Some(Named {
            verification: &signature::ED25519,
            public_key: PublicKey::Raw(32),
            signing: Some(Signing::Ed25519),
        }),
        RsaPkcs1Sha256 => rsa(&signature::RSA_PKCS1_2048_8192_SHA256, &signature::RSA_PKCS1_SHA256),
        RsaPkcs1Sha384 => rsa(&signature::RSA_PKCS1_2048_8192_SHA384, &signature::RSA_PKCS1_SHA384),
        RsaPkcs1Sha512 => rsa(&signature::RSA_PKCS1_2048_8192_SHA512, &signature::RSA_PKCS1_SHA512),
        RsaPssSha256 => rsa(&signature::RSA_PSS_2048_8192_SHA256, &signature::RSA_PSS_SHA256),
        RsaPssSha384 => rsa(&signature::RSA_PSS_2048_8192_SHA384, &signature::RSA_PSS_SHA384),
        RsaPssSha512 => rsa(&signature::RSA_PSS_2048_8192_SHA512, &signature::RSA_PSS_SHA512),
        MlDsa44 => ml_dsa(&signature::ML_DSA_44, &signature::ML_DSA_44_SIGNING),
        MlDsa65 => ml_dsa(&signature::ML_DSA_65, &signature::ML_DSA_65_SIGNING),
        MlDsa87 => ml_dsa(&signature::ML_DSA_87, &signature::ML_DSA_87_SIGNING),
        _ => None,
    }
}

pub(super) fn open(algorithm: Algorithm, key: Key<'_>) -> Opened {
    let named = named(algorithm).ok_or(Error::Unsupported(algorithm))?;
    let signer = match key {
        Key::None => None,
        key => Some(Signer::open(algorithm, named.signing, key)?),
    };
    opened(Session { named, signer })
}

enum Signer {
    Ecdsa(EcdsaKeyPair, usize),
    Ed25519(Ed25519KeyPair),
    Rsa(rsa::KeyPair, &'static dyn RsaEncoding),
    MlDsa(PqdsaKeyPair),
}

impl Signer {
    fn open(algorithm: Algorithm, how: Option<Signing>, key: Key<'_>) -> Result<Signer, Error> {
        let not_generated = |_: Unspecified| failed("no key was generated");
        let rejected = |_: KeyRejected| {
            Error::InvalidKey("it is not a sound private key of this algorithm and its sizes")
        };
        Ok(match (how, key) {
            (Some(Signing::Ecdsa(named, most)), key) => {
                let pair = match key {
                    Key::Generate => EcdsaKeyPair::generate(named).map_err(not_generated)?,
                    Key::Pkcs8(der) => EcdsaKeyPair::from_pkcs8(named, der).map_err(rejected)?,
                    Key::Sec1(der) => {
                        EcdsaKeyPair::from_private_key_der(named, der).map_err(rejected)?
                    }
                    _ => return Err(Error::Unsupported(algorithm)),
                };
                Signer::Ecdsa(pair, most)
            }
            (Some(Signing::Ed25519), Key::Generate) => {
                Signer::Ed25519(Ed25519KeyPair::generate().map_err(not_generated)?)
            }
            (Some(Signing::Ed25519), Key::Pkcs8(der)) => Signer::Ed25519(
                // With or without its public half, which is checked if it is there.
                Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).map_err(rejected)?,
            ),
            (Some(Signing::Rsa(encoding)), Key::Pkcs8(der)) => {
                Signer::Rsa(rsa::KeyPair::from_pkcs8(der).map_err(rejected)?, encoding)
            }
            (Some(Signing::Rsa(encoding)), Key::Pkcs1(der)) => {
                Signer::Rsa(rsa::KeyPair::from_der(der).map_err(rejected)?, encoding)
            }
            (Some(Signing::MlDsa(named)), Key::Generate) => {
                Signer::MlDsa(PqdsaKeyPair::generate(named).map_err(not_generated)?)
            }
            (Some(Signing::MlDsa(named)), Key::Pkcs8(der)) => {
                Signer::MlDsa(PqdsaKeyPair::from_pkcs8(named, der).map_err(rejected)?)
            }
            _ => return Err(Error::Unsupported(algorithm)),
        })
    }

    fn bytes_max(&self) -> usize {
        match self {
            Signer::Ecdsa(_, most) => *most,
            Signer::Ed25519(_) => 64,
            Signer::Rsa(pair, _) => pair.public_modulus_len(),
            Signer::MlDsa(pair) => pair.algorithm().signature_len(),
        }
    }

    fn public_key(&self, out: &mut [u8]) -> Result<usize, Error> {
        match self {
            Signer::Ecdsa(pair, _) => put(pair.public_key().as_ref(), out),
            Signer::Ed25519(pair) => put(pair.public_key().as_ref(), out),
            Signer::Rsa(pair, _) => put(pair.public_key().as_ref(), out),
            Signer::MlDsa(pair) => put(pair.public_key().as_ref(), out),
        }
    }

    fn sign(&self, message: &[u8], out: &mut [u8]) -> Result<usize, Error> {
        let not_signed = |_| failed("no signature was made");
        match self {
            Signer::Ecdsa(pair, _) => {
                let made = pair.sign(&SystemRandom::new(), message);
                put(made.map_err(not_signed)?.as_ref(), out)
            }
            Signer::Ed25519(pair) => put(pair.try_sign(message).map_err(not_signed)?.as_ref(), out),
            Signer::Rsa(pair, encoding) => {
                let signature = out.get_mut(..pair.public_modulus_len());
                let signature =
                    signature.ok_or(Error::invalid_request("there is too little room"))?;
                pair.sign(*encoding, &SystemRandom::new(), message, signature)
                    .map_err(not_signed)?;
                Ok(signature.len())
            }
            Signer::MlDsa(pair) => {
                let signature = out.get_mut(..pair.algorithm().signature_len());
                let signature =
                    signature.ok_or(Error::invalid_request("there is too little room"))?;
                pair.sign(message, signature).map_err(not_signed)
            }
        }
    }
}

struct Session {
    named: Named,
    signer: Option<Signer>,
}

impl Session {
    fn signer(&self) -> Result<&Signer, Error> {
        self.signer.as_ref().ok_or(Error::invalid_request("the session has no private key"))
    }

    /// Whether a public key is in the one encoding that is allowed; the library takes others.
    fn is_public_key(&self, key: &[u8]) -> bool {
        match self.named.public_key {
            PublicKey::Point(bytes) => key.len() == bytes && key.first() == Some(&4),
            PublicKey::Raw(bytes) => key.len() == bytes,
            PublicKey::Rsa => true,
        }
    }
}

impl DriverSession for Session {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        match request {
            Request::PublicKey { out } => self.signer()?.public_key(out),
            Request::Sign { message, out } => self.signer()?.sign(message, out),
            Request::Verify { public_key, message, signature } => {
                if !self.is_public_key(public_key) {
                    return Err(Error::Authentication);
                }
                let key = UnparsedPublicKey::new(self.named.verification, public_key);
                key.verify(message, signature).map_err(|_| Error::Authentication)?;
                Ok(0)
            }
            other => misfit(other),
        }
    }

    fn signature_bytes_max(&self) -> usize {
        self.signer.as_ref().map_or(0, Signer::bytes_max)
    }
}
