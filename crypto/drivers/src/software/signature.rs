//! Signatures: verification needs no key in the session, signing does.
//!
//! The library's ECDSA has one hash for each curve. A digest of another hash is made as long as that one's first:
//! ECDSA takes the leftmost bits of a digest, as many as the group's order has, as a number (FIPS 186-5 § 6.4.1), so
//! bytes that are cut off behind them, or zeros that are put before a shorter one, change nothing.

use super::digest::digest_of;
use super::session::{Opened, failed, misfit, opened, put};
use aws_lc_rs::digest::{self, Digest};
use aws_lc_rs::error::{KeyRejected, Unspecified};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa;
use aws_lc_rs::signature::{
    self, EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair, PqdsaKeyPair,
    PqdsaSigningAlgorithm, RsaEncoding, UnparsedPublicKey, VerificationAlgorithm,
};
use keyway_engine::{Algorithm, DriverSession, Error, Key, Request, SignatureParameters};
use keyway_rsa::SignaturePadding;
use std::borrow::Cow;

/// The library's form of an algorithm.
#[derive(Clone, Copy)]
pub(super) struct Named {
    algorithm: Algorithm,
    verification: &'static dyn VerificationAlgorithm,
    /// The hash that the library's form has.
    digest: Option<(Algorithm, &'static digest::Algorithm)>,
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
    /// With the padding that each request names.
    RsaPadded,
    MlDsa(&'static PqdsaSigningAlgorithm),
}

pub(super) fn named(algorithm: Algorithm) -> Option<Named> {
    use Algorithm::*;
    use signature as aws;
    let sha256 = Some((Sha256, &digest::SHA256));
    let sha384 = Some((Sha384, &digest::SHA384));
    let sha512 = Some((Sha512, &digest::SHA512));
    let named = |verification, digest, public_key, signing| {
        Some(Named { algorithm, verification, digest, public_key, signing: Some(signing) })
    };
    let p256 = Signing::Ecdsa(&aws::ECDSA_P256_SHA256_ASN1_SIGNING, 72);
    let p384 = Signing::Ecdsa(&aws::ECDSA_P384_SHA384_ASN1_SIGNING, 104);
    let p521 = Signing::Ecdsa(&aws::ECDSA_P521_SHA512_ASN1_SIGNING, 139);
    let rsa = |verification, digest, encoding| {
        named(verification, digest, PublicKey::Rsa, Signing::Rsa(encoding))
    };
    let ml_dsa = |verification, of: &'static PqdsaSigningAlgorithm| {
        named(verification, None, PublicKey::Raw(of.public_key_len()), Signing::MlDsa(of))
    };
    match algorithm {
        EcdsaP256 | EcdsaP256Sha256 | EcdsaP256Sha384 => {
            named(&aws::ECDSA_P256_SHA256_ASN1, sha256, PublicKey::Point(65), p256)
        }
        EcdsaP384 | EcdsaP384Sha256 | EcdsaP384Sha384 => {
            named(&aws::ECDSA_P384_SHA384_ASN1, sha384, PublicKey::Point(97), p384)
        }
        EcdsaP521 => named(&aws::ECDSA_P521_SHA512_ASN1, sha512, PublicKey::Point(133), p521),
        Ed25519 => named(&aws::ED25519, None, PublicKey::Raw(32), Signing::Ed25519),
        RsaPkcs1Sha256 => rsa(&aws::RSA_PKCS1_2048_8192_SHA256, sha256, &aws::RSA_PKCS1_SHA256),
        RsaPkcs1Sha384 => rsa(&aws::RSA_PKCS1_2048_8192_SHA384, sha384, &aws::RSA_PKCS1_SHA384),
        RsaPkcs1Sha512 => rsa(&aws::RSA_PKCS1_2048_8192_SHA512, sha512, &aws::RSA_PKCS1_SHA512),
        RsaPssSha256 => rsa(&aws::RSA_PSS_2048_8192_SHA256, sha256, &aws::RSA_PSS_SHA256),
        RsaPssSha384 => rsa(&aws::RSA_PSS_2048_8192_SHA384, sha384, &aws::RSA_PSS_SHA384),
        RsaPssSha512 => rsa(&aws::RSA_PSS_2048_8192_SHA512, sha512, &aws::RSA_PSS_SHA512),
        // The library's form is not used to verify.
        RsaPkcs1 | RsaPss => {
            let verification = &aws::RSA_PKCS1_2048_8192_SHA256;
            named(verification, None, PublicKey::Rsa, Signing::RsaPadded)
        }
        MlDsa44 => ml_dsa(&aws::ML_DSA_44, &aws::ML_DSA_44_SIGNING),
        MlDsa65 => ml_dsa(&aws::ML_DSA_65, &aws::ML_DSA_65_SIGNING),
        MlDsa87 => ml_dsa(&aws::ML_DSA_87, &aws::ML_DSA_87_SIGNING),
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
    /// With the public half, as the library has it.
    RsaPadded(Box<keyway_rsa::PrivateKey>, rsa::PublicKey),
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
            (Some(Signing::RsaPadded), key) => {
                let (key, public) = padded_rsa(algorithm, key)?;
                Signer::RsaPadded(Box::new(key), public)
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
            Signer::RsaPadded(key, _) => key.modulus_bytes(),
            Signer::MlDsa(pair) => pair.algorithm().signature_len(),
        }
    }

    fn public_key(&self, out: &mut [u8]) -> Result<usize, Error> {
        match self {
            Signer::Ecdsa(pair, _) => put(pair.public_key().as_ref(), out),
            Signer::Ed25519(pair) => put(pair.public_key().as_ref(), out),
            Signer::Rsa(pair, _) => put(pair.public_key().as_ref(), out),
            Signer::RsaPadded(_, public) => put(public.as_ref(), out),
            Signer::MlDsa(pair) => put(pair.public_key().as_ref(), out),
        }
    }

    fn sign(&self, signed: &Signed<'_>, out: &mut [u8]) -> Result<usize, Error> {
        let not_signed = |_| failed("no signature was made");
        match self {
            Signer::Ecdsa(pair, _) => {
                let made = match signed.whole() {
                    Some(message) => pair.sign(&SystemRandom::new(), message),
                    None => pair.sign_digest(&signed.fitted()?),
                };
                put(made.map_err(not_signed)?.as_ref(), out)
            }
            Signer::Ed25519(pair) => {
                put(pair.try_sign(signed.message).map_err(not_signed)?.as_ref(), out)
            }
            Signer::Rsa(pair, encoding) => {
                let signature = room(out, pair.public_modulus_len())?;
                match signed.whole() {
                    Some(message) => pair.sign(*encoding, &SystemRandom::new(), message, signature),
                    None => pair.sign_digest(*encoding, &signed.fitted()?, signature),
                }
                .map_err(not_signed)?;
                Ok(signature.len())
            }
            Signer::RsaPadded(key, _) => {
                let signature = room(out, key.modulus_bytes())?;
                key.sign(signed.padding()?, &signed.digest()?, signature).map_err(|_| {
                    Error::invalid_request(
                        "RSA does not sign that: it is too long for the key, or of a hash that signs nothing",
                    )
                })
            }
            Signer::MlDsa(pair) => {
                let signature = room(out, pair.algorithm().signature_len())?;
                pair.sign(signed.message, signature).map_err(not_signed)
            }
        }
    }
}

/// So many bytes of room, for a signature.
fn room(out: &mut [u8], bytes: usize) -> Result<&mut [u8], Error> {
    out.get_mut(..bytes).ok_or(Error::invalid_request("there is too little room"))
}

/// A private RSA key for requests that name the padding, and its public half. aws-lc-rs says which keys are sound.
pub(super) fn padded_rsa(
    algorithm: Algorithm,
    key: Key<'_>,
) -> Result<(keyway_rsa::PrivateKey, rsa::PublicKey), Error> {
    let unsound = Error::InvalidKey(
        "it is not a sound RSA private key of 2,048 to 8,192 bits, with two primes, and for rsaEncryption",
    );
    let (pair, key) = match key {
        Key::Pkcs8(der) => (rsa::KeyPair::from_pkcs8(der), keyway_rsa::PrivateKey::from_pkcs8(der)),
        Key::Pkcs1(der) => (rsa::KeyPair::from_der(der), keyway_rsa::PrivateKey::from_pkcs1(der)),
        _ => return Err(Error::Unsupported(algorithm)),
    };
    match (pair, key) {
        (Ok(pair), Ok(key)) => Ok((key, pair.public_key().clone())),
        _ => Err(unsound),
    }
}

/// A message, and how it is or was signed.
struct Signed<'a> {
    named: &'a Named,
    parameters: &'a SignatureParameters,
    message: &'a [u8],
}

impl<'a> Signed<'a> {
    /// The message, if the library is to hash it with the one hash that it has for this.
    fn whole(&self) -> Option<&'a [u8]> {
        let hash = self.parameters.hash_of(self.named.algorithm);
        let has_it = hash == self.named.digest.map(|(hash, _)| hash);
        (has_it && !self.parameters.prehashed).then_some(self.message)
    }

    /// The digest, or the bytes that are signed as if they were one.
    fn digest(&self) -> Result<Cow<'a, [u8]>, Error> {
        if self.parameters.prehashed {
            return Ok(Cow::Borrowed(self.message));
        }
        let hash = self.parameters.hash_of(self.named.algorithm);
        let hashed = hash.and_then(|hash| digest_of(hash, self.message));
        hashed.map(Cow::Owned).ok_or(Error::invalid_request("the request has to name a hash"))
    }

    /// The digest, as long as that of the library's one hash for this.
    fn fitted(&self) -> Result<Digest, Error> {
        let digest = self.digest()?;
        let (_, library) = self.named.digest.ok_or(failed("the algorithm has no hash"))?;
        let mut fitted = [0; digest::MAX_OUTPUT_LEN];
        let fitted = &mut fitted[..library.output_len];
        match digest.len().checked_sub(fitted.len()) {
            Some(_) => fitted.copy_from_slice(&digest[..fitted.len()]),
            None => {
                let from = fitted.len() - digest.len();
                fitted[from..].copy_from_slice(&digest);
            }
        }
        let imported = Digest::import_less_safe(fitted, library);
        imported.map_err(|_| failed("no digest was made"))
    }

    fn padding(&self) -> Result<SignaturePadding, Error> {
        let SignatureParameters { hash, mgf1_hash, salt_bytes, .. } = *self.parameters;
        if self.named.algorithm == Algorithm::RsaPkcs1 {
            return Ok(SignaturePadding::Pkcs1(hash));
        }
        let hash = hash.ok_or(Error::invalid_request("the request has to name a hash"))?;
        let salt_bytes = match salt_bytes {
            Some(SignatureParameters::ANY_SALT) => None,
            Some(bytes) => Some(bytes),
            None => Some(hash.output_bytes().unwrap_or(0) as u16),
        };
        Ok(SignaturePadding::Pss { hash, mgf1_hash: mgf1_hash.unwrap_or(hash), salt_bytes })
    }

    fn verify(&self, public_key: &[u8], signature: &[u8]) -> Result<(), Error> {
        if matches!(self.named.signing, Some(Signing::RsaPadded)) {
            let key = keyway_rsa::PublicKey::from_der(public_key);
            let checked = match (key, self.padding(), self.digest()) {
                (Ok(key), Ok(padding), Ok(digest)) => key.verify(padding, &digest, signature),
                _ => Err(keyway_rsa::Failed),
            };
            return checked.map_err(|_| Error::Authentication);
        }
        let key = UnparsedPublicKey::new(self.named.verification, public_key);
        match (self.whole(), self.named.digest) {
            (None, Some(_)) => key.verify_digest(&self.fitted()?, signature),
            (_, None) | (Some(_), _) => key.verify(self.message, signature),
        }
        .map_err(|_| Error::Authentication)
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

    fn signed<'a>(&'a self, parameters: &'a SignatureParameters, message: &'a [u8]) -> Signed<'a> {
        Signed { named: &self.named, parameters, message }
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
            Request::Sign { message, parameters, out } => {
                self.signer()?.sign(&self.signed(parameters, message), out)
            }
            Request::Verify { public_key, message, parameters, signature } => {
                if !self.is_public_key(public_key) {
                    return Err(Error::Authentication);
                }
                self.signed(parameters, message).verify(public_key, signature)?;
                Ok(0)
            }
            other => misfit(other),
        }
    }

    fn signature_bytes_max(&self) -> usize {
        self.signer.as_ref().map_or(0, Signer::bytes_max)
    }
}
