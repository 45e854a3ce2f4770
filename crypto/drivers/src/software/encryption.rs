//! Encryption to a public key: RSAES-OAEP and, for old peers, RSAES-PKCS1-v1_5 (RFC 8017 § 7). The latter tells
//! nothing of the padding of a ciphertext: see [`keyway_rsa::PrivateKey::decrypt`].

use super::session::{Opened, misfit, opened, put};
use super::signature::padded_rsa;
use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::error::KeyRejected;
use aws_lc_rs::rsa::{
    self, OaepAlgorithm, OaepPrivateDecryptingKey, OaepPublicEncryptingKey, PrivateDecryptingKey,
    PublicEncryptingKey,
};
use keyway_engine::{Algorithm, DriverSession, Error, Key, OaepParameters, Request};
use keyway_rsa::EncryptionPadding;

/// The libraries' form of an algorithm.
pub(super) enum Named {
    Oaep(&'static OaepAlgorithm),
    /// In `keyway-rsa`, with the padding that each request names.
    Padded,
}

pub(super) fn named(algorithm: Algorithm) -> Option<Named> {
    match algorithm {
        Algorithm::RsaOaepSha1 => Some(Named::Oaep(&rsa::OAEP_SHA1_MGF1SHA1)),
        Algorithm::RsaOaepSha256 => Some(Named::Oaep(&rsa::OAEP_SHA256_MGF1SHA256)),
        Algorithm::RsaOaep | Algorithm::RsaesPkcs1 => Some(Named::Padded),
        _ => None,
    }
}

pub(super) fn open(algorithm: Algorithm, key: Key<'_>) -> Opened {
    let named = match named(algorithm).ok_or(Error::Unsupported(algorithm))? {
        Named::Oaep(named) => named,
        Named::Padded => return open_padded(algorithm, key),
    };
    let rejected = |_: KeyRejected| {
        Error::InvalidKey(
            "it is not a sound RSA private key of 2,048 to 8,192 bits, with two primes, and for rsaEncryption",
        )
    };
    let pair = match key {
        Key::None => return opened(Session { named, key: None }),
        Key::Pkcs8(der) => rsa::KeyPair::from_pkcs8(der).map_err(rejected)?,
        Key::Pkcs1(der) => rsa::KeyPair::from_der(der).map_err(rejected)?,
        _ => return Err(Error::Unsupported(algorithm)),
    };
    // The library has two types for the two uses of a key, and PKCS#8 leads from one to the other.
    let unfit = |_| Error::InvalidKey("it is not a key to decrypt with");
    let pkcs8: Pkcs8V1Der<'_> = pair.as_der().map_err(unfit)?;
    let private = PrivateDecryptingKey::from_pkcs8(pkcs8.as_ref()).map_err(rejected)?;
    let private = OaepPrivateDecryptingKey::new(private).map_err(unfit)?;
    let public = aws_lc_rs::signature::KeyPair::public_key(&pair).clone();
    opened(Session { named, key: Some((private, public)) })
}

struct Session {
    named: &'static OaepAlgorithm,
    key: Option<(OaepPrivateDecryptingKey, rsa::PublicKey)>,
}

/// A public key from an RSAPublicKey, and from no other encoding.
fn parse(der: &[u8]) -> Option<OaepPublicEncryptingKey> {
    let key = rsa::PublicKey::from_der(der).ok().filter(|key| key.as_ref() == der)?;
    let key = PublicEncryptingKey::from_der(key.as_der().ok()?.as_ref()).ok()?;
    OaepPublicEncryptingKey::new(key).ok()
}

impl DriverSession for Session {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        let no_room = Error::invalid_request("there is too little room");
        match request {
            Request::PublicEncrypt { public_key, message, out, .. } => {
                let key = parse(public_key).ok_or(Error::Authentication)?;
                if message.len() > key.max_plaintext_size(self.named) {
                    return Err(Error::invalid_request("the message is too long for the key"));
                }
                let out = out.get_mut(..key.ciphertext_size()).ok_or(no_room)?;
                let sealed = key.encrypt(self.named, message, out, None);
                sealed.map(|sealed| sealed.len()).map_err(|_| Error::Authentication)
            }
            Request::PrivateDecrypt { ciphertext, out, .. } => {
                let (key, _) = self.key()?;
                let out = out.get_mut(..key.min_output_size()).ok_or(no_room)?;
                let text = key.decrypt(self.named, ciphertext, out, None);
                text.map(|text| text.len()).map_err(|_| Error::Authentication)
            }
            Request::PublicKey { out } => put(self.key()?.1.as_ref(), out),
            other => misfit(other),
        }
    }
}

impl Session {
    fn key(&self) -> Result<&(OaepPrivateDecryptingKey, rsa::PublicKey), Error> {
        self.key.as_ref().ok_or(Error::invalid_request("the session has no private key"))
    }
}

fn open_padded(algorithm: Algorithm, key: Key<'_>) -> Opened {
    let key = match key {
        Key::None => None,
        key => Some(padded_rsa(algorithm, key)?),
    };
    opened(PaddedSession { algorithm, key })
}

struct PaddedSession {
    algorithm: Algorithm,
    key: Option<(keyway_rsa::PrivateKey, rsa::PublicKey)>,
}

impl PaddedSession {
    fn key(&self) -> Result<&(keyway_rsa::PrivateKey, rsa::PublicKey), Error> {
        self.key.as_ref().ok_or(Error::invalid_request("the session has no private key"))
    }

    fn padding<'a>(
        &self,
        parameters: &OaepParameters,
        label: &'a [u8],
    ) -> Result<EncryptionPadding<'a>, Error> {
        if self.algorithm == Algorithm::RsaesPkcs1 {
            return Ok(EncryptionPadding::Pkcs1);
        }
        let hash =
            parameters.hash.ok_or(Error::invalid_request("the request has to name a hash"))?;
        let mgf1_hash = parameters.mgf1_hash.unwrap_or(hash);
        Ok(EncryptionPadding::Oaep { hash, mgf1_hash, label })
    }
}

impl DriverSession for PaddedSession {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        match request {
            Request::PublicEncrypt { public_key, message, parameters, label, out } => {
                let padding = self.padding(parameters, label)?;
                let key = keyway_rsa::PublicKey::from_der(public_key);
                let key = key.map_err(|_| Error::Authentication)?;
                let too_long = Error::invalid_request("the message is too long for the key");
                key.encrypt(padding, message, out).map_err(|_| too_long)
            }
            Request::PrivateDecrypt { ciphertext, parameters, label, out } => {
                let padding = self.padding(parameters, label)?;
                let (key, _) = self.key()?;
                key.decrypt(padding, ciphertext, out).map_err(|_| Error::Authentication)
            }
            Request::PublicKey { out } => put(self.key()?.1.as_ref(), out),
            other => misfit(other),
        }
    }
}
