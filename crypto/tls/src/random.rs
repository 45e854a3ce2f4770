//! Random bytes.

use keyway_engine::Engine;
use rustls::crypto::{GetRandomFailed, SecureRandom};
use std::fmt;

pub(crate) struct Random {
    pub engine: &'static Engine,
}

impl SecureRandom for Random {
    fn fill(&self, buf: &mut [u8]) -> Result<(), GetRandomFailed> {
        self.engine.random(buf).map_err(|_| GetRandomFailed)
    }
}

impl fmt::Debug for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Random")
    }
}
