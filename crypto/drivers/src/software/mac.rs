//! HMAC and CMAC.

use super::cbc_mac::{BLOCK, Chain, subkeys};
use super::cipher;
use super::session::{Opened, failed, misfit, opened, put};
use aws_lc_rs::cipher::EncryptingKey;
use aws_lc_rs::hmac;
use keyway_engine::{Algorithm, DriverSession, Error, Key, Request};
use zeroize::Zeroizing;

/// The longest MAC, in bytes.
const MAC_BYTES_MAX: usize = 64;

pub(super) enum Named {
    Hmac(hmac::Algorithm),
    Cmac,
}

pub(super) fn named(algorithm: Algorithm) -> Option<Named> {
    match algorithm {
        Algorithm::HmacSha1 => Some(Named::Hmac(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY)),
        Algorithm::HmacSha256 => Some(Named::Hmac(hmac::HMAC_SHA256)),
        Algorithm::HmacSha384 => Some(Named::Hmac(hmac::HMAC_SHA384)),
        Algorithm::HmacSha512 => Some(Named::Hmac(hmac::HMAC_SHA512)),
        Algorithm::Aes128Cmac | Algorithm::Aes256Cmac => Some(Named::Cmac),
        _ => None,
    }
}

pub(super) fn open(algorithm: Algorithm, key: Key<'_>) -> Opened {
    match (named(algorithm), key) {
        (Some(Named::Hmac(named)), Key::Secret(secret)) => {
            opened(Hmac(hmac::Key::new(named, secret)))
        }
        (Some(Named::Cmac), Key::Secret(secret)) => {
            let key = EncryptingKey::cbc(cipher::key(algorithm, secret)?);
            let key = key.map_err(|_| failed("AES takes no key"))?;
            opened(Cmac { subkeys: subkeys(&key)?, key })
        }
        _ => Err(Error::Unsupported(algorithm)),
    }
}

struct Hmac(hmac::Key);

impl DriverSession for Hmac {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        match request {
            Request::Mac { data: [whole], out } => {
                // A MAC may be a caller's key, so no copy of it stays behind.
                let mut mac = Zeroizing::new([0; MAC_BYTES_MAX]);
                let mac = hmac::sign_to_buffer(&self.0, whole, &mut *mac)
                    .map_err(|_| failed("HMAC failed"))?;
                put(mac, out)
            }
            Request::Mac { data, out } => {
                let mut context = hmac::Context::with_key(&self.0);
                data.iter().for_each(|part| context.update(part));
                put(context.sign().as_ref(), out)
            }
            other => misfit(other),
        }
    }
}

/// CMAC (SP 800-38B). The library's own makes a context on the heap for each message.
struct Cmac {
    key: EncryptingKey,
    subkeys: [Zeroizing<[u8; BLOCK]>; 2],
}

impl DriverSession for Cmac {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        match request {
            Request::Mac { data, out } => {
                let mut chain = Chain::new(&self.key);
                data.iter().try_for_each(|part| chain.update(part))?;
                put(&*chain.finish_cmac(&self.subkeys)?, out)
            }
            other => misfit(other),
        }
    }
}
