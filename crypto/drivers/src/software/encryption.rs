//! Encryption to a public key: RSAES-OAEP (RFC 8017 § 7.1) with an empty label.
//!
//! RSAES-PKCS1-v1_5 (§ 7.2) is deliberately not offered: an attacker who can find out whether the
//! padding of chosen ciphertexts was sound can decrypt any message, and callers keep telling, by an
//! answer or by its time.

use super::session::{Opened, misfit, opened, put};
use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::error::KeyRejected;
use aws_lc_rs::rsa::{
    self, OaepAlgorithm, OaepPrivateDecryptingKey, OaepPublicEncryptingKey, PrivateDecryptingKey,
    PublicEncryptingKey,
};
use keyway_engine::{Algorithm, DriverSession, Error, Key, Request};

pub(super) fn named(algorithm: Algorithm) -> Option<&'static OaepAlgorithm> {
    match algorithm {
        Algorithm::RsaOaepSha1 => Some(&rsa::OAEP_SHA1_MGF1SHA1),
        Algorithm::RsaOaepSha256 => Some(&rsa::OAEP_SHA256_MGF1SHA256),
        _ => None,
    }
}

pub(super) fn open(algorithm: Algorithm, key: Key<'_>) -> Opened {
    let named = named(algorithm).ok_or(Error::Unsupported(algorithm))?;
    let rejected = |_: KeyRejected| {
        Error::InvalidKey("it is not a sound RSA private key of 2,048 to 8,192 bits")
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
            Request::PublicEncrypt { public_key, message, out } => {
                let key = parse(public_key).ok_or(Error::Authentication)?;
                if message.len() > key.max_plaintext_size(self.named) {
                    return Err(Error::invalid_request("the message is too long for the key"));
                }
                let out = out.get_mut(..key.ciphertext_size()).ok_or(no_room)?;
                let sealed = key.encrypt(self.named, message, out, None);
                sealed.map(|sealed| sealed.len()).map_err(|_| Error::Authentication)
            }
            Request::PrivateDecrypt { ciphertext, out } => {
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
