//! Hashes, at once and in pieces.

use super::{Opened, misfit, opened, put};
use aws_lc_rs::digest::{self, Context};
use keyway_engine::{Algorithm, DriverSession, DriverStream, Error, Key, Request};

pub(super) fn named(algorithm: Algorithm) -> Option<&'static digest::Algorithm> {
    match algorithm {
        Algorithm::Sha1 => Some(&digest::SHA1_FOR_LEGACY_USE_ONLY),
        Algorithm::Sha224 => Some(&digest::SHA224),
        Algorithm::Sha256 => Some(&digest::SHA256),
        Algorithm::Sha384 => Some(&digest::SHA384),
        Algorithm::Sha512 => Some(&digest::SHA512),
        Algorithm::Sha512_256 => Some(&digest::SHA512_256),
        Algorithm::Sha3_256 => Some(&digest::SHA3_256),
        Algorithm::Sha3_384 => Some(&digest::SHA3_384),
        Algorithm::Sha3_512 => Some(&digest::SHA3_512),
        _ => None,
    }
}

pub(super) fn open(algorithm: Algorithm, key: Key<'_>) -> Opened {
    match (named(algorithm), key) {
        (Some(named), Key::None) => opened(Session(named)),
        _ => Err(Error::Unsupported(algorithm)),
    }
}

pub(super) fn stream(algorithm: Algorithm) -> Result<Box<dyn DriverStream>, Error> {
    let named = named(algorithm).ok_or(Error::Unsupported(algorithm))?;
    Ok(Box::new(Stream(Context::new(named))))
}

struct Session(&'static digest::Algorithm);

impl DriverSession for Session {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        match request {
            Request::Digest { data: [whole], out } => {
                put(digest::digest(self.0, whole).as_ref(), out)
            }
            Request::Digest { data, out } => {
                let mut context = Context::new(self.0);
                data.iter().for_each(|part| context.update(part));
                put(context.finish().as_ref(), out)
            }
            other => misfit(other),
        }
    }
}

struct Stream(Context);

impl DriverStream for Stream {
    fn update(&mut self, data: &[u8]) -> Result<(), Error> {
        self.0.update(data);
        Ok(())
    }

    fn fork(&self) -> Result<Box<dyn DriverStream>, Error> {
        Ok(Box::new(Stream(self.0.clone())))
    }

    fn finish(self: Box<Self>, out: &mut [u8]) -> Result<(), Error> {
        put(self.0.finish().as_ref(), out).map(drop)
    }
}
