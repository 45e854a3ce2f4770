//! Key encapsulation.

use super::{Opened, failed, misfit, opened, put};
use aws_lc_rs::kem::{self, DecapsulationKey, EncapsulationKey};
use keyway_engine::{Algorithm, DriverSession, Error, Key, Request};

pub(super) fn named(algorithm: Algorithm) -> Option<&'static kem::Algorithm> {
    match algorithm {
        Algorithm::MlKem512 => Some(&kem::ML_KEM_512),
        Algorithm::MlKem768 => Some(&kem::ML_KEM_768),
        Algorithm::MlKem1024 => Some(&kem::ML_KEM_1024),
        _ => None,
    }
}

pub(super) fn open(algorithm: Algorithm, key: Key<'_>) -> Opened {
    let named = named(algorithm).ok_or(Error::Unsupported(algorithm))?;
    let key = match key {
        Key::None => None,
        Key::Generate => {
            let key = DecapsulationKey::generate(named);
            Some(key.map_err(|_| failed("no key was generated"))?)
        }
        Key::Secret(raw) => {
            let key = DecapsulationKey::new(named, raw);
            Some(key.map_err(|_| Error::InvalidKey("it is not a decapsulation key"))?)
        }
        _ => return Err(Error::Unsupported(algorithm)),
    };
    opened(Session { named, key })
}

struct Session {
    named: &'static kem::Algorithm,
    key: Option<DecapsulationKey>,
}

impl Session {
    fn key(&self) -> Result<&DecapsulationKey, Error> {
        self.key.as_ref().ok_or(Error::invalid_request("the session has no private key"))
    }
}

impl DriverSession for Session {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        match request {
            Request::PublicKey { out } => {
                let public = self.key()?.encapsulation_key().and_then(|key| key.key_bytes());
                let public = public.map_err(|_| {
                    Error::invalid_request("a raw key does not show its public half")
                })?;
                put(public.as_ref(), out)
            }
            Request::Encapsulate { peer, ciphertext, secret } => {
                // FIPS 203 § 7.2: length and modulus of the peer's key are checked.
                let peer = EncapsulationKey::new(self.named, peer);
                let made = peer.map_err(|_| Error::Authentication)?.encapsulate();
                let (sealed, shared) = made.map_err(|_| Error::Authentication)?;
                put(shared.as_ref(), secret)?;
                put(sealed.as_ref(), ciphertext)
            }
            Request::Decapsulate { ciphertext, secret } => {
                let shared = self.key()?.decapsulate((*ciphertext).into());
                put(shared.map_err(|_| Error::Authentication)?.as_ref(), secret)
            }
            other => misfit(other),
        }
    }
}
