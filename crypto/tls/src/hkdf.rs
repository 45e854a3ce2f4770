//! TLS 1.3's key schedule: HKDF (RFC 5869) and HMAC.

use crate::hash::Function;
use crate::random_fallback::{self, fault};
use keyway_engine::{Engine, Error, Key, Parameters, Request, Session};
use rustls::crypto::ActiveKeyExchange;
use rustls::crypto::hmac::Tag;
use rustls::crypto::tls13::{Hkdf, HkdfExpander, OkmBlock, OutputLengthError};
use zeroize::Zeroizing;

/// Most blocks one expansion gives (RFC 5869 § 2.3).
const BLOCKS_MAX: usize = 255;

#[derive(Clone, Copy)]
pub(crate) struct Schedule {
    pub engine: &'static Engine,
    pub function: Function,
}

impl Schedule {
    fn expander(&self, key: Key<'_>) -> Expander {
        let session = self.engine.session(Parameters::new(self.function.hkdf(), key));
        Expander { schedule: *self, session }
    }

    fn extract(&self, salt: Option<&[u8]>, secret: &[u8]) -> Expander {
        // To the engine an empty salt is what a missing one is to rustls: zeros.
        self.expander(Key::Extract { salt: salt.unwrap_or_default(), secret })
    }

    fn mac(&self, key: &[u8], message: &[u8], out: &mut [u8]) -> Result<(), Error> {
        let session =
            self.engine.session(Parameters::new(self.function.mac(), Key::Secret(key)))?;
        session.run(&mut Request::Mac { data: &[message], out }).map(drop)
    }
}

impl Hkdf for Schedule {
    fn extract_from_zero_ikm(&self, salt: Option<&[u8]>) -> Box<dyn HkdfExpander> {
        let zeros = [0; Function::BYTES_MAX];
        let (zeros, _) = zeros.split_at(self.function.bytes());
        Box::new(self.extract(salt, zeros))
    }

    fn extract_from_secret(&self, salt: Option<&[u8]>, secret: &[u8]) -> Box<dyn HkdfExpander> {
        Box::new(self.extract(salt, secret))
    }

    fn extract_from_kx_shared_secret(
        &self,
        salt: Option<&[u8]>,
        kx: Box<dyn ActiveKeyExchange>,
        peer_pub_key: &[u8],
    ) -> Result<Box<dyn HkdfExpander>, rustls::Error> {
        let secret = kx.complete(peer_pub_key)?;
        let expander = self.extract(salt, secret.secret_bytes());
        // Unlike its siblings this one may fail, so it does.
        match expander.session {
            Ok(_) => Ok(Box::new(expander)),
            Err(error) => Err(fault(error)),
        }
    }

    fn expander_for_okm(&self, okm: &OkmBlock) -> Box<dyn HkdfExpander> {
        Box::new(self.expander(Key::Secret(okm.as_ref())))
    }

    fn hmac_sign(&self, key: &OkmBlock, message: &[u8]) -> Tag {
        let mut buffer = [0; Function::BYTES_MAX];
        let (out, _) = buffer.split_at_mut(self.function.bytes());
        if self.mac(key.as_ref(), message, out).is_err() {
            random_fallback::fill(self.engine, out);
        }
        Tag::new(out)
    }
}

/// A pseudo-random key in the engine, or why there is none.
struct Expander {
    schedule: Schedule,
    session: Result<Session, Error>,
}

impl Expander {
    fn expand(&self, info: &[&[u8]], out: &mut [u8]) {
        let expanded = match &self.session {
            Ok(session) => session.run(&mut Request::Expand { info, out: &mut *out }),
            Err(error) => Err(*error),
        };
        if expanded.is_err() {
            random_fallback::fill(self.schedule.engine, out);
        }
    }
}

impl HkdfExpander for Expander {
    fn expand_slice(&self, info: &[&[u8]], output: &mut [u8]) -> Result<(), OutputLengthError> {
        // Only the length may be reported: rustls takes any error for that and panics.
        if output.len() > BLOCKS_MAX * self.hash_len() {
            return Err(OutputLengthError);
        }
        self.expand(info, output);
        Ok(())
    }

    fn expand_block(&self, info: &[&[u8]]) -> OkmBlock {
        let mut buffer = Zeroizing::new([0; Function::BYTES_MAX]);
        let (out, _) = buffer.split_at_mut(self.hash_len());
        self.expand(info, out);
        OkmBlock::new(out)
    }

    fn hash_len(&self) -> usize {
        self.schedule.function.bytes()
    }
}
