//! The sessions of a connection: keys that the guest gave, as sessions of the engine. They are gone with the connection,
//! and their numbers count anew, so that a front end that repeats its sessions after a restart finds them under the
//! numbers that it knows.

use crate::crypto::{Direction, SessionRequest, Status};
use keyway_engine::{Algorithm, Engine, Error, Key, Parameters, Session};
use std::collections::HashMap;

/// Longest modulus of RSA, in bytes.
const MODULUS_BYTES_MAX: usize = 1_024;

/// The open sessions.
pub(crate) struct Sessions {
    engine: Engine,
    open: HashMap<u64, Opened>,
    last: u64,
    most: usize,
}

/// An open session.
pub(crate) enum Opened {
    Cipher { session: Session, direction: Direction },
    Rsa(Box<RsaSession>),
}

/// RSA has a session of the engine for each use of a key.
pub(crate) struct RsaSession {
    pub signing: Session,
    pub encryption: Session,
    pub has_private: bool,
    /// An RSAPublicKey, DER.
    pub public_key: Vec<u8>,
    pub modulus_bytes: usize,
    pub hash: Option<Algorithm>,
}

impl Sessions {
    /// None yet, and at most so many.
    pub fn new(engine: &Engine, most: usize) -> Sessions {
        Sessions { engine: engine.clone(), open: HashMap::new(), last: 0, most }
    }

    /// Opens one, and says its number.
    pub fn create(&mut self, request: SessionRequest<'_>) -> Result<u64, Status> {
        if self.open.len() >= self.most {
            return Err(Status::NoSpace);
        }
        let opened = match request {
            SessionRequest::AesCbc { direction, key } => {
                let algorithm = match key.len() {
                    16 => Algorithm::Aes128Cbc,
                    24 => Algorithm::Aes192Cbc,
                    32 => Algorithm::Aes256Cbc,
                    _ => return Err(Status::KeyRejected),
                };
                let session = self.session(algorithm, Key::Secret(key))?;
                Opened::Cipher { session, direction }
            }
            SessionRequest::Rsa { private, hash, key } => {
                Opened::Rsa(Box::new(self.rsa(private, hash, key)?))
            }
        };
        self.last += 1;
        self.open.insert(self.last, opened);
        Ok(self.last)
    }

    /// Closes one. Requests that were taken before are done.
    pub fn destroy(&mut self, number: u64) -> Result<(), Status> {
        self.open.remove(&number).map(drop).ok_or(Status::InvalidSession)
    }

    /// Closes all, and counts on.
    pub fn close_all(&mut self) {
        self.open.clear();
    }

    pub fn get(&self, number: u64) -> Result<&Opened, Status> {
        self.open.get(&number).ok_or(Status::InvalidSession)
    }

    fn rsa(
        &self,
        has_private: bool,
        hash: Option<Algorithm>,
        key: &[u8],
    ) -> Result<RsaSession, Status> {
        let private = if has_private { Key::Pkcs1(key) } else { Key::None };
        let signing = self.session(Algorithm::RsaPkcs1, private)?;
        let encryption = self.session(Algorithm::RsaesPkcs1, private)?;
        let public_key = match has_private {
            true => signing.public_key().map_err(status)?,
            false => key.to_vec(),
        };
        // Whether a public key is one shows when it is used, and so does the length of its modulus.
        let mut out = [0; MODULUS_BYTES_MAX];
        let modulus_bytes = encryption
            .run(&mut keyway_engine::Request::PublicEncrypt {
                public_key: &public_key,
                message: &[],
                parameters: keyway_engine::OaepParameters::default(),
                label: &[],
                out: &mut out,
            })
            .map_err(|_| Status::KeyRejected)?;
        Ok(RsaSession { signing, encryption, has_private, public_key, modulus_bytes, hash })
    }

    fn session(&self, algorithm: Algorithm, key: Key<'_>) -> Result<Session, Status> {
        self.engine.session(Parameters::new(algorithm, key)).map_err(status)
    }
}

/// The answer for an error of the engine.
pub(crate) fn status(error: Error) -> Status {
    match error {
        Error::InvalidKey(_) | Error::Authentication => Status::KeyRejected,
        Error::Unsupported(_) | Error::Disabled(_) => Status::NotSupported,
        _ => Status::Err,
    }
}
