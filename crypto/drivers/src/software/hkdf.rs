//! HKDF: extracted once when the session is opened, expanded by request.

use super::{Opened, failed, misfit, opened};
use aws_lc_rs::{hkdf, hmac};
use keyway_engine::{Algorithm, DriverSession, Error, Key, Request};
use zeroize::Zeroizing;

/// The longest pseudo-random key the library takes, in bytes.
const KEY_BYTES_MAX: usize = 64;

pub(super) fn named(algorithm: Algorithm) -> Option<hkdf::Algorithm> {
    match algorithm {
        Algorithm::HkdfSha256 => Some(hkdf::HKDF_SHA256),
        Algorithm::HkdfSha384 => Some(hkdf::HKDF_SHA384),
        _ => None,
    }
}

pub(super) fn open(algorithm: Algorithm, key: Key<'_>) -> Opened {
    let named = named(algorithm).ok_or(Error::Unsupported(algorithm))?;
    match key {
        Key::Secret(secret) => {
            // RFC 5869 § 2.3: at least as long as the hash.
            if !(named.hmac_algorithm().tag_len()..=KEY_BYTES_MAX).contains(&secret.len()) {
                return Err(Error::InvalidKey("it is not as long as a pseudo-random key is"));
            }
            opened(Session(hkdf::Prk::new_less_safe(named, secret)))
        }
        Key::Extract { salt, secret } => opened(Session(extract(named, salt, secret)?)),
        _ => Err(Error::Unsupported(algorithm)),
    }
}

/// RFC 5869 § 2.2. The library's own extraction keeps the secret and repeats itself with every
/// expansion. An empty salt and one of zeros are the same key to HMAC.
fn extract(named: hkdf::Algorithm, salt: &[u8], secret: &[u8]) -> Result<hkdf::Prk, Error> {
    let mut key = Zeroizing::new([0; KEY_BYTES_MAX]);
    let salt = hmac::Key::new(named.hmac_algorithm(), salt);
    let key = hmac::sign_to_buffer(&salt, secret, &mut *key).map_err(|_| failed("HMAC failed"))?;
    Ok(hkdf::Prk::new_less_safe(named, key))
}

struct Session(hkdf::Prk);

/// How many bytes are wanted, as the library likes to be told.
struct Length(usize);

impl hkdf::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

impl DriverSession for Session {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        match request {
            Request::Expand { info, out } => {
                let key = self.0.expand(info, Length(out.len()));
                let key = key.map_err(|_| Error::InvalidRequest("the output is too long"))?;
                key.fill(out).map_err(|_| failed("HKDF-Expand failed"))?;
                Ok(out.len())
            }
            other => misfit(other),
        }
    }
}
