//! Hashes: at once, and of a transcript that grows.

use crate::random_fallback;
use keyway_engine::{Algorithm, Engine, Stream};
use rustls::crypto::hash::{Context, Hash, HashAlgorithm, Output};

/// The hash functions of TLS's suites, each with what is built on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Sha256,
    Sha384,
}

impl Function {
    pub fn digest(self) -> Algorithm {
        match self {
            Function::Sha256 => Algorithm::Sha256,
            Function::Sha384 => Algorithm::Sha384,
        }
    }

    pub fn mac(self) -> Algorithm {
        match self {
            Function::Sha256 => Algorithm::HmacSha256,
            Function::Sha384 => Algorithm::HmacSha384,
        }
    }

    pub fn hkdf(self) -> Algorithm {
        match self {
            Function::Sha256 => Algorithm::HkdfSha256,
            Function::Sha384 => Algorithm::HkdfSha384,
        }
    }

    /// Length of the digest, of the MAC and of HKDF's keys, in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Function::Sha256 => 32,
            Function::Sha384 => 48,
        }
    }

    /// Room for `bytes` of any.
    pub const BYTES_MAX: usize = Function::Sha384.bytes();
}

#[derive(Clone, Copy)]
pub(crate) struct Hasher {
    pub engine: &'static Engine,
    pub function: Function,
}

impl Hasher {
    /// Has `digest` write the output, and replaces it if that fails.
    fn output(&self, digest: impl FnOnce(&mut [u8]) -> Result<(), keyway_engine::Error>) -> Output {
        let mut buffer = [0; Function::BYTES_MAX];
        let (out, _) = buffer.split_at_mut(self.function.bytes());
        if digest(out).is_err() {
            random_fallback::fill(self.engine, out);
        }
        Output::new(out)
    }
}

impl Hash for Hasher {
    fn start(&self) -> Box<dyn Context> {
        let stream = self.engine.stream(self.function.digest());
        Box::new(Transcript { hasher: *self, stream })
    }

    fn hash(&self, data: &[u8]) -> Output {
        self.output(|out| self.engine.digest(self.function.digest(), &[data], out))
    }

    fn output_len(&self) -> usize {
        self.function.bytes()
    }

    fn algorithm(&self) -> HashAlgorithm {
        match self.function {
            Function::Sha256 => HashAlgorithm::SHA256,
            Function::Sha384 => HashAlgorithm::SHA384,
        }
    }
}

/// A hash that has seen part of a transcript. Once a step has failed it stays failed.
struct Transcript {
    hasher: Hasher,
    stream: Result<Stream, keyway_engine::Error>,
}

impl Transcript {
    fn forked(&self) -> Result<Stream, keyway_engine::Error> {
        self.stream.as_ref().map_err(|error| *error)?.fork()
    }
}

impl Context for Transcript {
    fn fork_finish(&self) -> Output {
        self.hasher.output(|out| self.forked()?.finish(out))
    }

    fn fork(&self) -> Box<dyn Context> {
        Box::new(Transcript { hasher: self.hasher, stream: self.forked() })
    }

    fn finish(self: Box<Self>) -> Output {
        let Transcript { hasher, stream } = *self;
        hasher.output(|out| stream?.finish(out))
    }

    fn update(&mut self, data: &[u8]) {
        if let Ok(stream) = &mut self.stream
            && let Err(error) = stream.update(data)
        {
            self.stream = Err(error);
        }
    }
}
