//! Key encapsulation.

use super::session::{Opened, failed, misfit, opened, put};
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
    let pair = match key {
        Key::None => None,
        Key::Generate => {
            let made = DecapsulationKey::generate(named).and_then(|key| {
                let public = key.encapsulation_key()?.key_bytes()?.as_ref().to_vec();
                Ok((key, public))
            });
            Some(made.map_err(|_| failed("no key was generated"))?)
        }
        Key::Secret(raw) => {
            let unfit = Error::InvalidKey("it is not a decapsulation key");
            let key = DecapsulationKey::new(named, raw).map_err(|_| unfit)?;
            Some((key, public_half(algorithm, raw).ok_or(unfit)?.to_vec()))
        }
        _ => return Err(Error::Unsupported(algorithm)),
    };
    opened(Session { named, pair })
}

/// The encapsulation key within a decapsulation key: before a digest of it and a seed, of 32 bytes
/// each (FIPS 203, algorithm 16). The library does not give it out.
fn public_half(algorithm: Algorithm, raw: &[u8]) -> Option<&[u8]> {
    let end = raw.len().checked_sub(64)?;
    raw.get(end.checked_sub(algorithm.public_key_bytes()?)?..end)
}

struct Session {
    named: &'static kem::Algorithm,
    /// With its public half.
    pair: Option<(DecapsulationKey, Vec<u8>)>,
}

impl Session {
    fn pair(&self) -> Result<&(DecapsulationKey, Vec<u8>), Error> {
        self.pair.as_ref().ok_or(Error::invalid_request("the session has no private key"))
    }
}

impl DriverSession for Session {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        match request {
            Request::PublicKey { out } => put(&self.pair()?.1, out),
            Request::Encapsulate { peer, ciphertext, secret } => {
                // FIPS 203 § 7.2: length and modulus of the peer's key are checked.
                let peer = EncapsulationKey::new(self.named, peer);
                let made = peer.map_err(|_| Error::Authentication)?.encapsulate();
                let (sealed, shared) = made.map_err(|_| Error::Authentication)?;
                put(shared.as_ref(), secret)?;
                put(sealed.as_ref(), ciphertext)
            }
            Request::Decapsulate { ciphertext, secret } => {
                let shared = self.pair()?.0.decapsulate((*ciphertext).into());
                put(shared.map_err(|_| Error::Authentication)?.as_ref(), secret)
            }
            other => misfit(other),
        }
    }
}
