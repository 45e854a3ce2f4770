//! Random bytes.

use super::session::{Opened, failed, misfit, opened};
use aws_lc_rs::rand;
use keyway_engine::{Algorithm, DriverSession, Error, Key, Request};

pub(super) fn open(algorithm: Algorithm, key: Key<'_>) -> Opened {
    match key {
        Key::None => opened(Session),
        _ => Err(Error::Unsupported(algorithm)),
    }
}

struct Session;

impl DriverSession for Session {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        match request {
            Request::Random { out } => {
                rand::fill(out).map_err(|_| failed("the system has no randomness"))?;
                Ok(out.len())
            }
            other => misfit(other),
        }
    }
}
