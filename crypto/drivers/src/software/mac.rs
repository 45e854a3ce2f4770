//! HMAC.

use super::{Opened, misfit, opened, put};
use aws_lc_rs::hmac;
use keyway_engine::{Algorithm, DriverSession, Error, Key, Request};
use zeroize::Zeroizing;

/// The longest MAC, in bytes.
const MAC_BYTES_MAX: usize = 64;

pub(super) fn named(algorithm: Algorithm) -> Option<hmac::Algorithm> {
    match algorithm {
        Algorithm::HmacSha256 => Some(hmac::HMAC_SHA256),
        Algorithm::HmacSha384 => Some(hmac::HMAC_SHA384),
        Algorithm::HmacSha512 => Some(hmac::HMAC_SHA512),
        _ => None,
    }
}

pub(super) fn open(algorithm: Algorithm, key: Key<'_>) -> Opened {
    match (named(algorithm), key) {
        (Some(named), Key::Secret(secret)) => opened(Session(hmac::Key::new(named, secret))),
        _ => Err(Error::Unsupported(algorithm)),
    }
}

struct Session(hmac::Key);

impl DriverSession for Session {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        match request {
            Request::Mac { data: [whole], out } => {
                // A MAC may be a key to somebody, so no copy of it stays behind.
                let mut mac = Zeroizing::new([0; MAC_BYTES_MAX]);
                let mac = hmac::sign_to_buffer(&self.0, whole, &mut *mac)
                    .map_err(|_| super::failed("HMAC failed"))?;
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
