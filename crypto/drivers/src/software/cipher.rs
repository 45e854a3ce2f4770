//! Ciphers without authentication.

use super::session::{Opened, WRONG_LENGTH, failed, misfit, opened};
use super::xts;
use aws_lc_rs::cipher::{self, DecryptingKey, EncryptingKey, EncryptionContext, UnboundCipherKey};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::iv::FixedLength;
use keyway_engine::{Algorithm, DriverSession, Error, IV_BYTES_MAX, Key, Request};

pub(super) enum Mode {
    Cbc,
    Ctr,
    Xts,
}

pub(super) fn named(algorithm: Algorithm) -> Option<Mode> {
    match algorithm {
        Algorithm::Aes128Cbc
        | Algorithm::Aes192Cbc
        | Algorithm::Aes256Cbc
        | Algorithm::TripleDesCbc => Some(Mode::Cbc),
        Algorithm::Aes128Ctr | Algorithm::Aes256Ctr => Some(Mode::Ctr),
        Algorithm::Aes128Xts | Algorithm::Aes256Xts if cfg!(feature = "xts") => Some(Mode::Xts),
        _ => None,
    }
}

pub(super) fn open(algorithm: Algorithm, key: Key<'_>) -> Opened {
    let (Some(mode), Key::Secret(secret)) = (named(algorithm), key) else {
        return Err(Error::Unsupported(algorithm));
    };
    // Only Triple DES has them: a key with a part that is weak, or whose second part is one of the others.
    let weak = |_| Error::InvalidKey("it is weak");
    match mode {
        Mode::Cbc => opened(Cbc {
            encrypting: EncryptingKey::cbc(self::key(algorithm, secret)?).map_err(weak)?,
            decrypting: DecryptingKey::cbc(self::key(algorithm, secret)?).map_err(weak)?,
            short: algorithm == Algorithm::TripleDesCbc,
        }),
        Mode::Ctr => opened(Ctr(EncryptingKey::ctr(self::key(algorithm, secret)?).map_err(weak)?)),
        Mode::Xts => xts::open(algorithm, key),
    }
}

/// A key for the library's ciphers; also for those that the MACs are made of.
#[allow(deprecated)] // The use of Triple DES is deprecated, which the engine decides.
pub(super) fn key(algorithm: Algorithm, secret: &[u8]) -> Result<UnboundCipherKey, Error> {
    let (named, secret) = match (algorithm, secret) {
        (Algorithm::Aes192Cbc, _) => (&cipher::AES_192, secret),
        // Two keys: the third is the first again (SP 800-67 § 2, keying option 2). The library has that by itself.
        (Algorithm::TripleDesCbc, [two @ .., _, _, _, _, _, _, _, _])
            if two.len() == 16 && verify_slices_are_equal(&two[..8], &secret[16..]).is_ok() =>
        {
            (&cipher::DES_EDE_FOR_LEGACY_USE_ONLY, two)
        }
        (Algorithm::TripleDesCbc, _) => (&cipher::DES_EDE3_FOR_LEGACY_USE_ONLY, secret),
        _ if algorithm.key_bytes() == Some(16) => (&cipher::AES_128, secret),
        _ => (&cipher::AES_256, secret),
    };
    UnboundCipherKey::new(named, secret).map_err(|_| WRONG_LENGTH)
}
const NOT_WHOLE: Error = Error::invalid_request("the text is not whole blocks");

/// Cipher block chaining, AES or Triple DES.
struct Cbc {
    encrypting: EncryptingKey,
    decrypting: DecryptingKey,
    /// Whether the initialisation vector has 8 bytes.
    short: bool,
}

impl Cbc {
    fn context(&self, iv: &[u8; IV_BYTES_MAX]) -> EncryptionContext {
        match iv.first_chunk() {
            Some(first) if self.short => EncryptionContext::Iv64(FixedLength::from(first)),
            _ => EncryptionContext::Iv128(FixedLength::from(iv)),
        }
    }
}

impl DriverSession for Cbc {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        // The library fails where the text is not whole blocks, and only there.
        match request {
            Request::Encrypt { iv, data } => {
                let encrypted = self.encrypting.less_safe_encrypt(data, self.context(iv));
                encrypted.map_err(|_| NOT_WHOLE)?;
                Ok(data.len())
            }
            Request::Decrypt { iv, data } => {
                let text = self.decrypting.decrypt(data, self.context(iv).into());
                Ok(text.map_err(|_| NOT_WHOLE)?.len())
            }
            other => misfit(other),
        }
    }
}

/// Counter mode; decrypting is encrypting.
struct Ctr(EncryptingKey);

impl DriverSession for Ctr {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        match request {
            Request::Encrypt { iv, data } | Request::Decrypt { iv, data } => {
                let iv = EncryptionContext::Iv128(FixedLength::from(*iv));
                self.0.less_safe_encrypt(data, iv).map_err(|_| failed("AES failed"))?;
                Ok(data.len())
            }
            other => misfit(other),
        }
    }
}
