//! What a consumer holds: a session, or a hash fed in pieces.

use crate::scheduler::{Lane, Meters};
use crate::{Algorithm, DriverSession, DriverStream, Error, Key, NONCE_BYTES, Request, TAG_BYTES};
use std::sync::Arc;

/// A key in a driver, ready for requests. Cheap to clone; shared by threads freely.
///
/// The handle gives no way back to the key. Dropping the last clone makes the driver forget it.
#[derive(Clone)]
pub struct Session {
    inner: Arc<Inner>,
}

struct Inner {
    algorithm: Algorithm,
    driver: &'static str,
    meters: Meters,
    state: Box<dyn DriverSession>,
}

impl Session {
    pub(crate) fn open(lane: &Lane, algorithm: Algorithm, key: Key<'_>) -> Result<Self, Error> {
        let meters = lane.meters(algorithm);
        let state = lane.driver.open(algorithm, key);
        if matches!(key, Key::Generate | Key::Extract { .. }) {
            // Opening such a session is cryptographic work, so it counts as an operation.
            meters.count(0, &state);
        }
        let state = state?;
        Ok(Session {
            inner: Arc::new(Inner { algorithm, driver: lane.driver.name(), meters, state }),
        })
    }

    /// What it was opened for.
    pub fn algorithm(&self) -> Algorithm {
        self.inner.algorithm
    }

    /// The driver it landed on.
    pub fn driver(&self) -> &'static str {
        self.inner.driver
    }

    pub(crate) fn meters(&self) -> Meters {
        self.inner.meters
    }

    /// Runs one request on this stack and returns the bytes it put out (see
    /// [`DriverSession::run`]).
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] if the request does not fit the algorithm,
    /// [`Error::Authentication`] if a tag or signature does not check, else the driver's.
    #[inline]
    pub fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        let inner = &*self.inner;
        let bytes = request.bytes();
        let result = match request.check(inner.algorithm) {
            Ok(()) => inner.state.run(request),
            Err(error) => Err(error),
        };
        inner.meters.count(bytes, &result);
        result
    }

    /// Encrypts `data` in place and returns its tag.
    #[inline]
    pub fn seal(
        &self,
        nonce: &[u8; NONCE_BYTES],
        aad: &[u8],
        data: &mut [u8],
    ) -> Result<[u8; TAG_BYTES], Error> {
        let mut tag = [0; TAG_BYTES];
        self.run(&mut Request::Seal { nonce, aad, data, tag: &mut tag })?;
        Ok(tag)
    }

    /// Checks and decrypts ciphertext and tag in place, and returns the plaintext's length.
    #[inline]
    pub fn open_in_place(
        &self,
        nonce: &[u8; NONCE_BYTES],
        aad: &[u8],
        data: &mut [u8],
    ) -> Result<usize, Error> {
        self.run(&mut Request::Open { nonce, aad, data })
    }

    /// The public half of the session's key.
    pub fn public_key(&self) -> Result<Vec<u8>, Error> {
        let room = self.inner.algorithm.public_key_bytes().unwrap_or(PUBLIC_KEY_BYTES_MAX);
        let mut out = vec![0; room];
        let used = self.run(&mut Request::PublicKey { out: &mut out })?;
        out.truncate(used);
        Ok(out)
    }

    /// Signs the whole message.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        let mut out = vec![0; self.inner.state.signature_bytes_max()];
        let used = self.run(&mut Request::Sign { message, out: &mut out })?;
        out.truncate(used);
        Ok(out)
    }
}

/// Room for the longest public key of a signature algorithm: RSA with 8,192 bits, with its DER.
const PUBLIC_KEY_BYTES_MAX: usize = 1_100;

/// A hash fed in pieces, for those who do not have the message at once (a TLS transcript).
pub struct Stream {
    algorithm: Algorithm,
    meters: Meters,
    state: Box<dyn DriverStream>,
}

impl Stream {
    pub(crate) fn open(lane: &Lane, algorithm: Algorithm) -> Result<Self, Error> {
        let state = lane.driver.stream(algorithm)?;
        Ok(Stream { algorithm, meters: lane.meters(algorithm), state })
    }

    /// Takes the next piece; one operation in the meters.
    pub fn update(&mut self, data: &[u8]) -> Result<(), Error> {
        let result = self.state.update(data);
        self.meters.count(data.len(), &result);
        result
    }

    /// A second stream that has seen the same.
    pub fn fork(&self) -> Result<Stream, Error> {
        let state = self.state.fork();
        if state.is_err() {
            self.meters.count(0, &state);
        }
        Ok(Stream { algorithm: self.algorithm, meters: self.meters, state: state? })
    }

    /// The digest, into exactly [`Algorithm::output_bytes`]; one operation in the meters.
    pub fn finish(self, out: &mut [u8]) -> Result<(), Error> {
        if self.algorithm.output_bytes() != Some(out.len()) {
            return Err(Error::InvalidRequest("the digest has another length"));
        }
        let result = self.state.finish(out);
        self.meters.count(0, &result);
        result
    }
}
