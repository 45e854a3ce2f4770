//! Diffie-Hellman.

use super::ffdh;
use super::session::{Opened, failed, misfit, opened, put};
use aws_lc_rs::agreement::{self, PrivateKey, UnparsedPublicKey, agree};
use keyway_engine::{Algorithm, DriverSession, Error, Key, Request};

/// The libraries' form of an algorithm.
pub(super) enum Named {
    Curve(&'static agreement::Algorithm),
    /// In [`ffdh`], which knows them by name.
    Field,
}

pub(super) fn named(algorithm: Algorithm) -> Option<Named> {
    use Algorithm::*;
    match algorithm {
        X25519 => Some(Named::Curve(&agreement::X25519)),
        EcdhP256 => Some(Named::Curve(&agreement::ECDH_P256)),
        EcdhP384 => Some(Named::Curve(&agreement::ECDH_P384)),
        EcdhP521 => Some(Named::Curve(&agreement::ECDH_P521)),
        Ffdhe2048 | Ffdhe3072 | Ffdhe4096 if cfg!(feature = "ffdh") => Some(Named::Field),
        _ => None,
    }
}

pub(super) fn open(algorithm: Algorithm, key: Key<'_>) -> Opened {
    let named = match named(algorithm) {
        Some(Named::Curve(named)) => named,
        Some(Named::Field) => return ffdh::open(algorithm, key),
        None => return Err(Error::Unsupported(algorithm)),
    };
    let unfit = Error::InvalidKey("it is not a private key of this group");
    let key = match key {
        Key::Generate => PrivateKey::generate(named).map_err(|_| failed("no key was generated"))?,
        Key::Secret(raw) => PrivateKey::from_private_key(named, raw).map_err(|_| unfit)?,
        Key::Pkcs8(der) if algorithm == Algorithm::X25519 => {
            let raw = der.strip_prefix(&X25519_PKCS8).ok_or(unfit)?;
            PrivateKey::from_private_key(named, raw).map_err(|_| unfit)?
        }
        Key::Pkcs8(der) | Key::Sec1(der) if algorithm != Algorithm::X25519 => {
            PrivateKey::from_private_key_der(named, der).map_err(|_| unfit)?
        }
        _ => return Err(Error::Unsupported(algorithm)),
    };
    opened(Session { algorithm, key })
}

/// The bytes of a private key of X25519 before its own 32 (RFC 8410 § 7): a sequence of version 0,
/// the algorithm, and two octet strings, one in the other. The library reads this of other curves
/// only.
const X25519_PKCS8: [u8; 16] = [0x30, 46, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x6e, 4, 34, 4, 32];

struct Session {
    algorithm: Algorithm,
    key: PrivateKey,
}

impl Session {
    /// Whether a share looks like one. The library would take other encodings of a key as well,
    /// which no protocol here allows; whether a point is on its curve it checks itself.
    fn is_share(&self, peer: &[u8]) -> bool {
        Some(peer.len()) == self.algorithm.public_key_bytes()
            && (self.algorithm == Algorithm::X25519 || peer.first() == Some(&4))
    }
}

impl DriverSession for Session {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        match request {
            Request::PublicKey { out } => {
                let public = self.key.compute_public_key();
                put(public.map_err(|_| failed("no public key"))?.as_ref(), out)
            }
            Request::Agree { peer, out } => {
                if !self.is_share(peer) {
                    return Err(Error::Authentication);
                }
                // It fails on points off the curve and, with X25519, on shares of low order.
                let peer = UnparsedPublicKey::new(self.key.algorithm(), *peer);
                agree(&self.key, peer, Error::Authentication, |secret| put(secret, out))
            }
            other => misfit(other),
        }
    }
}
