//! A hash that is fed in pieces.

use crate::metrics::Work;
use crate::registry::Registry;
use crate::{Algorithm, Demand, DriverStream, Error, ExpectedLength, Field, Kind};
use std::fmt;
use std::sync::Arc;

/// A hash fed in pieces, for a message that is not there at once (a TLS transcript).
pub struct Stream {
    algorithm: Algorithm,
    work: Arc<Work>,
    state: Box<dyn DriverStream>,
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}

impl Stream {
    pub(crate) fn open(registry: &Registry, algorithm: Algorithm) -> Result<Self, Error> {
        if algorithm.kind() != Kind::Hash {
            return Err(Error::Unsupported(algorithm));
        }
        let (drivers, _) = registry.fitting(&[algorithm], Demand::Any, false);
        for driver in drivers {
            let Some(opener) = &driver.opener else { continue };
            match opener.stream(algorithm) {
                Err(Error::Unsupported(_) | Error::Gone) => {}
                state => {
                    return Ok(Stream {
                        algorithm,
                        work: driver.work(&[algorithm]),
                        state: state?,
                    });
                }
            }
        }
        Err(Error::Unsupported(algorithm))
    }

    /// Takes the next piece; one operation in the meters.
    pub fn update(&mut self, data: &[u8]) -> Result<(), Error> {
        let result = self.state.update(data);
        self.work.count(data.len(), &result);
        result
    }

    /// A second stream that has seen the same.
    pub fn fork(&self) -> Result<Stream, Error> {
        let state = self.state.fork();
        if state.is_err() {
            self.work.count(0, &state);
        }
        Ok(Stream { algorithm: self.algorithm, work: self.work.clone(), state: state? })
    }

    /// The digest, into exactly [`Algorithm::output_bytes`]; one operation in the meters.
    pub fn finish(self, out: &mut [u8]) -> Result<(), Error> {
        if self.algorithm.output_bytes() != Some(out.len()) {
            let expected = ExpectedLength::Exactly(self.algorithm.output_bytes().unwrap_or(0));
            return Err(Error::length(Field::Out, out.len(), expected));
        }
        let result = self.state.finish(out);
        self.work.count(0, &result);
        result
    }
}
