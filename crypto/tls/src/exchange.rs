//! Key exchange on one curve (RFC 8446 § 4.2.8.2, RFC 8422 § 5.11).

use crate::random_fallback::fault;
use keyway_engine::{Algorithm, Engine, Key, Parameters, Request, Session};
use rustls::crypto::{ActiveKeyExchange, SharedSecret, SupportedKxGroup};
use rustls::ffdhe_groups::FfdheGroup;
use rustls::{Error, NamedGroup, PeerMisbehaved};
use std::fmt;
use zeroize::Zeroizing;

/// An error of working with the peer's share, which may be the share's fault.
pub(crate) fn share_fault(error: keyway_engine::Error) -> Error {
    match error {
        keyway_engine::Error::Authentication => PeerMisbehaved::InvalidKeyShare.into(),
        error => fault(error),
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Curve {
    pub engine: &'static Engine,
    pub algorithm: Algorithm,
    pub name: NamedGroup,
}

impl Curve {
    /// A fresh key pair.
    pub fn generate(&self) -> Result<KeyPair, Error> {
        let parameters = Parameters::new(self.algorithm, Key::Generate);
        let session = self.engine.session(parameters).map_err(fault)?;
        let share = session.public_key().map_err(fault)?;
        Ok(KeyPair { name: self.name, session, share })
    }
}

impl SupportedKxGroup for Curve {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        Ok(Box::new(self.generate()?))
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn name(&self) -> NamedGroup {
        self.name
    }
}

impl fmt::Debug for Curve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)
    }
}

/// A key pair whose private half is in the engine.
pub(crate) struct KeyPair {
    pub name: NamedGroup,
    session: Session,
    pub share: Vec<u8>,
}

impl KeyPair {
    /// The secret shared with the owner of `peer`, whose form and value the engine checks.
    pub fn agree(&self, peer: &[u8]) -> Result<Zeroizing<Vec<u8>>, Error> {
        let algorithm = self.session.algorithm();
        let mut secret = Zeroizing::new(vec![0; algorithm.output_bytes().unwrap_or_default()]);
        self.session.run(&mut Request::Agree { peer, out: &mut secret }).map_err(share_fault)?;
        Ok(secret)
    }
}

impl ActiveKeyExchange for KeyPair {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        Ok(SharedSecret::from(self.agree(peer)?.as_slice()))
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn group(&self) -> NamedGroup {
        self.name
    }

    fn pub_key(&self) -> &[u8] {
        &self.share
    }
}
