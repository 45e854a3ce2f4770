//! Hashes, at once and in pieces.

use super::session::{Opened, misfit, opened, put};
use aws_lc_rs::digest::{self, Context};
use keyway_engine::{Algorithm, DriverSession, DriverStream, Error, Key, Request};
use md5::{Digest, Md5};

/// The library that a hash is from.
#[derive(Clone, Copy)]
pub(super) enum Named {
    Aws(&'static digest::Algorithm),
    /// aws-lc-rs has none.
    Md5,
}

pub(super) fn named(algorithm: Algorithm) -> Option<Named> {
    let aws = match algorithm {
        Algorithm::Md5 => return Some(Named::Md5),
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
    };
    aws.map(Named::Aws)
}

/// The digest of a message. `None` for what is no hash.
pub(super) fn digest_of(hash: Algorithm, message: &[u8]) -> Option<Vec<u8>> {
    Some(match named(hash)? {
        Named::Aws(named) => digest::digest(named, message).as_ref().to_vec(),
        Named::Md5 => Md5::digest(message).to_vec(),
    })
}

pub(super) fn open(algorithm: Algorithm, key: Key<'_>) -> Opened {
    match (named(algorithm), key) {
        (Some(named), Key::None) => opened(Session(named)),
        _ => Err(Error::Unsupported(algorithm)),
    }
}

pub(super) fn stream(algorithm: Algorithm) -> Result<Box<dyn DriverStream>, Error> {
    let named = named(algorithm).ok_or(Error::Unsupported(algorithm))?;
    Ok(match named {
        Named::Aws(named) => Box::new(Stream(Context::new(named))),
        Named::Md5 => Box::new(Md5Stream(Md5::new())),
    })
}

struct Session(Named);

impl DriverSession for Session {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        match (self.0, request) {
            (Named::Aws(named), Request::Digest { data: [whole], out }) => {
                put(digest::digest(named, whole).as_ref(), out)
            }
            (Named::Aws(named), Request::Digest { data, out }) => {
                let mut context = Context::new(named);
                data.iter().for_each(|part| context.update(part));
                put(context.finish().as_ref(), out)
            }
            (Named::Md5, Request::Digest { data, out }) => {
                let mut context = Md5::new();
                data.iter().for_each(|part| context.update(part));
                put(&context.finalize(), out)
            }
            (_, other) => misfit(other),
        }
    }
}

struct Md5Stream(Md5);

impl DriverStream for Md5Stream {
    fn update(&mut self, data: &[u8]) -> Result<(), Error> {
        self.0.update(data);
        Ok(())
    }

    fn fork(&self) -> Result<Box<dyn DriverStream>, Error> {
        Ok(Box::new(Md5Stream(self.0.clone())))
    }

    fn finish(self: Box<Self>, out: &mut [u8]) -> Result<(), Error> {
        put(&self.0.finalize(), out).map(drop)
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
