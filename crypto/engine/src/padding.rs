//! The parameters of requests whose algorithm leaves them open: for RSA and ECDSA, the hash and its companions.

use crate::{Algorithm, Error, ExpectedLength, Field, Kind};

/// Shortest and longest digest that ECDSA signs where its hash is not named, in bytes: SHA-1's and SHA-512's.
const DIGEST_BYTES: (usize, usize) = (20, 64);

/// How a message is signed. The default is the whole message, as the algorithm says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignatureParameters {
    /// Whether the request's message is the digest already: hashed by the consumer, who answers for it.
    pub prehashed: bool,
    /// The hash, of an algorithm that names none. None for a digest that ECDSA signs whatever made it, and for
    /// bytes that RSASSA-PKCS1-v1_5 signs as they are: the DER of a DigestInfo (RFC 8017 § 9.2), as a rule.
    pub hash: Option<Algorithm>,
    /// The hash of MGF1 with [`Algorithm::RsaPss`] (RFC 8017 § B.2.1). None for the message's.
    pub mgf1_hash: Option<Algorithm>,
    /// The length of the salt with [`Algorithm::RsaPss`], in bytes. None for that of the digest.
    pub salt_bytes: Option<u16>,
}

impl SignatureParameters {
    /// The length of a salt, in bytes, for verifications that take whatever salt the signature has. Nothing is signed
    /// with it.
    pub const ANY_SALT: u16 = u16::MAX;

    /// For a digest of this hash.
    pub const fn digest(hash: Algorithm) -> Self {
        SignatureParameters { prehashed: true, ..Self::message(hash) }
    }

    /// For a message that is hashed with this hash.
    pub const fn message(hash: Algorithm) -> Self {
        SignatureParameters {
            prehashed: false,
            hash: Some(hash),
            mgf1_hash: None,
            salt_bytes: None,
        }
    }

    /// The hash that counts for an algorithm; none where the digest says enough.
    pub fn hash_of(&self, algorithm: Algorithm) -> Option<Algorithm> {
        self.hash.or(algorithm.signature_hash())
    }

    /// Refuses what no driver could do for a message, or a digest, of so many bytes.
    pub(crate) fn check(&self, algorithm: Algorithm, bytes: usize) -> Result<(), Error> {
        if *self == Self::default() && algorithm.signature_hash().is_some() {
            return Ok(());
        }
        if !algorithm.is_ecdsa() && !algorithm.is_rsa() {
            let none = *self == Self::default();
            let refusal = "only ECDSA and RSA have parameters; others sign the whole message";
            return none.then_some(()).ok_or(Error::invalid_request(refusal));
        }
        let named = [self.hash, self.mgf1_hash];
        if named.iter().flatten().any(|hash| hash.kind() != Kind::Hash) {
            return Err(Error::invalid_request("the hash of a signature is the name of none"));
        }
        // Two messages with one MD5 are made in seconds, and a signature of one is one of the other.
        if named.contains(&Some(Algorithm::Md5)) {
            return Err(Error::invalid_request(
                "a signature over an MD5 says nothing: name another hash",
            ));
        }
        if algorithm != Algorithm::RsaPss && (self.mgf1_hash.is_some() || self.salt_bytes.is_some())
        {
            return Err(Error::invalid_request("only rsa-pss leaves MGF1 and the salt open"));
        }
        let own = algorithm.signature_hash();
        if own.is_some() && self.hash.is_some_and(|hash| Some(hash) != own) {
            return Err(Error::invalid_request("the algorithm names another hash"));
        }
        match (self.hash_of(algorithm), self.prehashed) {
            (Some(hash), true) => {
                let digest = hash.output_bytes().unwrap_or(0);
                let expected = ExpectedLength::Exactly(digest);
                (bytes == digest).then_some(()).ok_or(Error::length(Field::Data, bytes, expected))
            }
            (Some(_), false) => Ok(()),
            (None, true) if algorithm.is_ecdsa() => match bytes {
                less if less < DIGEST_BYTES.0 => {
                    Err(Error::length(Field::Data, less, ExpectedLength::AtLeast(DIGEST_BYTES.0)))
                }
                more if more > DIGEST_BYTES.1 => {
                    Err(Error::length(Field::Data, more, ExpectedLength::AtMost(DIGEST_BYTES.1)))
                }
                _ => Ok(()),
            },
            (None, true) if !algorithm.is_pss() => Ok(()),
            (None, _) => Err(Error::invalid_request("the request has to name a hash")),
        }
    }
}

/// How RSAES-OAEP pads (RFC 8017 § 7.1). The default is as the algorithm says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OaepParameters {
    /// The hash, of an algorithm that names none.
    pub hash: Option<Algorithm>,
    /// The hash of MGF1. None for the same hash again.
    pub mgf1_hash: Option<Algorithm>,
}

impl OaepParameters {
    /// Refuses what no driver could do.
    pub(crate) fn check(&self, algorithm: Algorithm, label_bytes: usize) -> Result<(), Error> {
        let is_default = *self == Self::default() && label_bytes == 0;
        match algorithm {
            Algorithm::RsaOaep => {
                let named = [self.hash, self.mgf1_hash];
                match self.hash {
                    None => Err(Error::invalid_request("the request has to name a hash")),
                    Some(_) if named.iter().flatten().any(|hash| hash.kind() != Kind::Hash) => {
                        Err(Error::invalid_request("the hash of OAEP is the name of none"))
                    }
                    Some(_) if label_bytes > crate::limits::LABEL_BYTES_MAX => {
                        let most = ExpectedLength::AtMost(crate::limits::LABEL_BYTES_MAX);
                        Err(Error::length(Field::Label, label_bytes, most))
                    }
                    Some(_) => Ok(()),
                }
            }
            _ if is_default => Ok(()),
            _ => Err(Error::invalid_request("only rsa-oaep has parameters and a label")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Algorithm::*;

    fn fits(parameters: SignatureParameters, algorithm: Algorithm, bytes: usize) -> bool {
        parameters.check(algorithm, bytes).is_ok()
    }

    #[test]
    fn an_algorithm_that_names_its_hash_takes_no_other() {
        let whole = SignatureParameters::default();
        for algorithm in [EcdsaP256Sha384, RsaPkcs1Sha384, RsaPssSha384] {
            assert!(fits(whole, algorithm, 7));
            assert!(fits(SignatureParameters { prehashed: true, ..whole }, algorithm, 48));
            assert!(fits(SignatureParameters::digest(Sha384), algorithm, 48));
            assert!(!fits(SignatureParameters::digest(Sha384), algorithm, 32));
            assert!(!fits(SignatureParameters::message(Sha256), algorithm, 7));
            let salted = SignatureParameters { salt_bytes: Some(0), ..whole };
            assert!(!fits(salted, algorithm, 7), "{algorithm}");
        }
        for algorithm in [Ed25519, MlDsa65] {
            assert!(fits(whole, algorithm, 7));
            assert!(!fits(SignatureParameters { prehashed: true, ..whole }, algorithm, 64));
        }
    }

    #[test]
    fn a_general_algorithm_is_told_how() {
        let whole = SignatureParameters::default();
        let bytes = SignatureParameters { prehashed: true, ..whole };
        for algorithm in [EcdsaP256, EcdsaP521, RsaPkcs1, RsaPss] {
            assert!(!fits(whole, algorithm, 7));
            assert!(fits(SignatureParameters::message(Sha512), algorithm, 7));
            assert!(fits(SignatureParameters::digest(Sha512), algorithm, 64));
            assert!(!fits(SignatureParameters::digest(Sha512), algorithm, 63));
            assert!(!fits(SignatureParameters::message(HmacSha256), algorithm, 7));
            assert!(!fits(SignatureParameters::digest(Md5), algorithm, 16));
        }
        // ECDSA takes any digest, PKCS#1 any bytes; PSS hashes the digest again.
        assert!(fits(bytes, EcdsaP256, 20) && fits(bytes, EcdsaP521, 64));
        assert!(!fits(bytes, EcdsaP256, 19) && !fits(bytes, EcdsaP256, 65));
        assert!(fits(bytes, RsaPkcs1, 3) && !fits(bytes, RsaPss, 32));
        let digest = SignatureParameters::digest(Sha256);
        let mgf1 = SignatureParameters { mgf1_hash: Some(Sha1), ..digest };
        assert!(fits(mgf1, RsaPss, 32) && !fits(mgf1, RsaPkcs1, 32));
    }

    #[test]
    fn only_the_general_oaep_has_parameters() {
        let named = OaepParameters { hash: Some(Sha384), mgf1_hash: Some(Sha1) };
        let too_long = crate::limits::LABEL_BYTES_MAX + 1;
        assert!(named.check(RsaOaep, 5).is_ok() && named.check(RsaOaep, too_long).is_err());
        assert!(named.check(RsaOaepSha256, 0).is_err());
        assert!(OaepParameters::default().check(RsaOaep, 0).is_err());
        assert!(OaepParameters::default().check(RsaesPkcs1, 0).is_ok());
        assert!(OaepParameters::default().check(RsaOaepSha1, 1).is_err());
    }
}
