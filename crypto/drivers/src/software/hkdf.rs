//! HKDF: extracted once when the session is opened, expanded by request.

use super::session::{Opened, failed, misfit, opened};
use aws_lc_rs::hmac;
use keyway_engine::{Algorithm, DriverSession, Error, Key, Request};
use zeroize::Zeroizing;

/// The longest pseudo-random key, and the longest block, in bytes.
const KEY_BYTES_MAX: usize = 64;

pub(super) fn named(algorithm: Algorithm) -> Option<hmac::Algorithm> {
    match algorithm {
        Algorithm::HkdfSha256 => Some(hmac::HMAC_SHA256),
        Algorithm::HkdfSha384 => Some(hmac::HMAC_SHA384),
        _ => None,
    }
}

pub(super) fn open(algorithm: Algorithm, key: Key<'_>) -> Opened {
    let named = named(algorithm).ok_or(Error::Unsupported(algorithm))?;
    match key {
        Key::Secret(secret) => {
            // RFC 5869 § 2.3: at least as long as the hash.
            if !(named.tag_len()..=KEY_BYTES_MAX).contains(&secret.len()) {
                return Err(Error::InvalidKey("it is not as long as a pseudo-random key is"));
            }
            opened(Session(hmac::Key::new(named, secret)))
        }
        Key::Extract { salt, secret } => {
            // RFC 5869 § 2.2. An empty salt and one of zeros are the same key to HMAC.
            let mut key = Zeroizing::new([0; KEY_BYTES_MAX]);
            let key = mac(&hmac::Key::new(named, salt), secret, &mut key)?;
            opened(Session(hmac::Key::new(named, key)))
        }
        _ => Err(Error::Unsupported(algorithm)),
    }
}

fn mac<'a>(
    key: &hmac::Key,
    message: &[u8],
    out: &'a mut [u8; KEY_BYTES_MAX],
) -> Result<&'a [u8], Error> {
    hmac::sign_to_buffer(key, message, out).map(|mac| &*mac).map_err(|_| failed("HMAC failed"))
}

/// The pseudo-random key, with which HMAC has begun: the library's own HKDF begins anew with each
/// expansion, which then takes four blocks of the hash instead of two.
struct Session(hmac::Key);

impl Session {
    /// RFC 5869 § 2.3.
    fn expand(&self, info: &[&[u8]], out: &mut [u8]) -> Result<usize, Error> {
        let block_bytes = self.0.algorithm().tag_len();
        // The number of a block is a byte.
        if out.len() > usize::from(u8::MAX) * block_bytes {
            return Err(Error::invalid_request("the output is too long"));
        }
        let info_bytes: usize = info.iter().map(|part| part.len()).sum();
        // The block before, what is asked for, and this block's number. With its room at once, none
        // of it stays behind where a shorter one was.
        let mut message = Zeroizing::new(Vec::with_capacity(block_bytes + info_bytes + 1));
        let mut schedule = Zeroizing::new([0; KEY_BYTES_MAX]);
        for (number, out) in (1..=u8::MAX).zip(out.chunks_mut(block_bytes)) {
            info.iter().for_each(|part| message.extend_from_slice(part));
            message.push(number);
            let block = mac(&self.0, &message, &mut schedule)?;
            out.copy_from_slice(&block[..out.len()]);
            message.clear();
            message.extend_from_slice(block);
        }
        Ok(out.len())
    }
}

impl DriverSession for Session {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        match request {
            Request::Expand { info, out } => self.expand(info, out),
            other => misfit(other),
        }
    }
}
