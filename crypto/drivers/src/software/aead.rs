//! Authenticated encryption.

use super::{Opened, failed, misfit, opened};
use aws_lc_rs::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};
use keyway_engine::{Algorithm, DriverSession, Error, Key, Request};

pub(super) fn named(algorithm: Algorithm) -> Option<&'static aead::Algorithm> {
    match algorithm {
        Algorithm::Aes128Gcm => Some(&aead::AES_128_GCM),
        Algorithm::Aes256Gcm => Some(&aead::AES_256_GCM),
        Algorithm::ChaCha20Poly1305 => Some(&aead::CHACHA20_POLY1305),
        _ => None,
    }
}

pub(super) fn open(algorithm: Algorithm, key: Key<'_>) -> Opened {
    let (Some(named), Key::Secret(secret)) = (named(algorithm), key) else {
        return Err(Error::Unsupported(algorithm));
    };
    let key = UnboundKey::new(named, secret)
        .map_err(|_| Error::InvalidKey("it is not as long as the algorithm's keys are"))?;
    opened(Session(LessSafeKey::new(key)))
}

struct Session(LessSafeKey);

impl DriverSession for Session {
    #[inline]
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        match request {
            Request::Seal { nonce, aad, data, tag } => {
                let nonce = Nonce::assume_unique_for_key(**nonce);
                let sealed = self.0.seal_in_place_separate_tag(nonce, Aad::from(*aad), data);
                // It fails when the text is longer than the mode allows, and only then.
                let sealed = sealed.map_err(|_| Error::InvalidRequest("the text is too long"))?;
                // By its type, so that the copy is two moves and not a call.
                **tag = *sealed.as_ref().first_chunk().ok_or(failed("the tag is too short"))?;
                Ok(data.len())
            }
            Request::Open { nonce, aad, data } => {
                let nonce = Nonce::assume_unique_for_key(**nonce);
                let text = self.0.open_in_place(nonce, Aad::from(*aad), data);
                Ok(text.map_err(|_| Error::Authentication)?.len())
            }
            other => misfit(other),
        }
    }
}
