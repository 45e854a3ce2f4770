//! Authenticated encryption.

use super::cbc_mac::{BLOCK, Chain};
use super::cipher;
use super::session::{Opened, failed, misfit, opened};
use aws_lc_rs::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::cipher::{EncryptingKey, EncryptionContext};
use aws_lc_rs::iv::FixedLength;
use keyway_engine::{Algorithm, DriverSession, Error, Key, NONCE_BYTES, Request};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

pub(super) enum Named {
    Library(&'static aead::Algorithm),
    Ccm,
}

pub(super) fn named(algorithm: Algorithm) -> Option<Named> {
    match algorithm {
        // GMAC is GCM without a text, which the engine sees to.
        Algorithm::Aes128Gcm | Algorithm::Aes128Gmac => Some(Named::Library(&aead::AES_128_GCM)),
        Algorithm::Aes256Gcm | Algorithm::Aes256Gmac => Some(Named::Library(&aead::AES_256_GCM)),
        Algorithm::ChaCha20Poly1305 => Some(Named::Library(&aead::CHACHA20_POLY1305)),
        Algorithm::Aes128Ccm | Algorithm::Aes256Ccm => Some(Named::Ccm),
        _ => None,
    }
}

pub(super) fn open(algorithm: Algorithm, key: Key<'_>) -> Opened {
    match (named(algorithm), key) {
        (Some(Named::Library(named)), Key::Secret(secret)) => {
            let key = UnboundKey::new(named, secret)
                .map_err(|_| Error::InvalidKey("it is not as long as the algorithm's keys are"))?;
            opened(Session(LessSafeKey::new(key)))
        }
        (Some(Named::Ccm), Key::Secret(secret)) => {
            let unusable = |_| failed("AES takes no key");
            opened(Ccm {
                cbc: EncryptingKey::cbc(cipher::key(algorithm, secret)?).map_err(unusable)?,
                ctr: EncryptingKey::ctr(cipher::key(algorithm, secret)?).map_err(unusable)?,
            })
        }
        _ => Err(Error::Unsupported(algorithm)),
    }
}

const TOO_LONG: Error = Error::invalid_request("the text is too long");

struct Session(LessSafeKey);

impl DriverSession for Session {
    #[inline]
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        match request {
            Request::Seal { nonce, aad, data, tag } => {
                let nonce = Nonce::assume_unique_for_key(**nonce);
                let sealed = self.0.seal_in_place_separate_tag(nonce, Aad::from(*aad), data);
                // It fails when the text is longer than the mode allows, and only then.
                let sealed = sealed.map_err(|_| TOO_LONG)?;
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

/// CCM (SP 800-38C) with a nonce of 12 bytes, so a length of 3, and a tag of 16: RFC 5116 § 5.3.
struct Ccm {
    cbc: EncryptingKey,
    ctr: EncryptingKey,
}

/// One more than the longest text of CCM, in bytes.
const CCM_TEXT_END: usize = 1 << 24;

impl Ccm {
    /// CBC-MAC over the formatted message (SP 800-38C § A.2).
    fn mac(
        &self,
        nonce: &[u8; NONCE_BYTES],
        aad: &[u8],
        text: &[u8],
    ) -> Result<Zeroizing<[u8; BLOCK]>, Error> {
        let mut chain = Chain::new(&self.cbc);
        let length = (text.len() as u32).to_be_bytes();
        let flags = if aad.is_empty() { 0x3a } else { 0x7a };
        chain.update(&[flags])?;
        chain.update(nonce)?;
        chain.update(&length[1..])?;
        if !aad.is_empty() {
            match aad.len() {
                short @ 0..0xff00 => chain.update(&(short as u16).to_be_bytes())?,
                long @ 0xff00..0x1_0000_0000 => {
                    chain.update(&[0xff, 0xfe])?;
                    chain.update(&(long as u32).to_be_bytes())?;
                }
                _ => return Err(TOO_LONG),
            }
            chain.update(aad)?;
            chain.pad();
        }
        chain.update(text)?;
        chain.finish()
    }

    /// Counter mode from this counter on (SP 800-38C § A.3): the tag has 0, the text begins at 1.
    fn count(&self, nonce: &[u8; NONCE_BYTES], from: u8, data: &mut [u8]) -> Result<(), Error> {
        let mut block = [0; BLOCK];
        block[0] = 2;
        block[1..=NONCE_BYTES].copy_from_slice(nonce);
        block[BLOCK - 1] = from;
        let block = EncryptionContext::Iv128(FixedLength::from(block));
        self.ctr.less_safe_encrypt(data, block).map_err(|_| failed("AES failed"))?;
        Ok(())
    }
}

impl DriverSession for Ccm {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        match request {
            Request::Seal { nonce, aad, data, tag } => {
                if data.len() >= CCM_TEXT_END {
                    return Err(TOO_LONG);
                }
                **tag = *self.mac(nonce, aad, data)?;
                self.count(nonce, 0, &mut tag[..])?;
                self.count(nonce, 1, data)?;
                Ok(data.len())
            }
            Request::Open { nonce, aad, data } => {
                let (text, tag) =
                    data.split_last_chunk_mut::<BLOCK>().ok_or(Error::Authentication)?;
                if text.len() >= CCM_TEXT_END {
                    return Err(Error::Authentication);
                }
                self.count(nonce, 1, text)?;
                let mut expected = self.mac(nonce, aad, text)?;
                self.count(nonce, 0, &mut expected[..])?;
                if !bool::from(expected.ct_eq(tag)) {
                    text.fill(0);
                    return Err(Error::Authentication);
                }
                Ok(text.len())
            }
            other => misfit(other),
        }
    }
}
