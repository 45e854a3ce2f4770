//! X25519MLKEM768 (draft-ietf-tls-ecdhe-mlkem): the secret holds as long as either half does.
//!
//! Everywhere ML-KEM's part stands before X25519's: in the client's share (encapsulation key), in
//! the server's (ciphertext) and in the secret.

use crate::exchange::{Curve, KeyPair, share_fault};
use crate::random_fallback::fault;
use keyway_engine::{Algorithm, Engine, Key, Parameters, Request, Session};
use rustls::crypto::{ActiveKeyExchange, CompletedKeyExchange, SharedSecret, SupportedKxGroup};
use rustls::ffdhe_groups::FfdheGroup;
use rustls::{Error, NamedGroup, PeerMisbehaved, ProtocolVersion};
use std::fmt;
use zeroize::Zeroizing;

/// Length of ML-KEM-768's encapsulation key in bytes (FIPS 203, table 3).
const KEY_BYTES: usize = 1184;
/// Length of ML-KEM-768's ciphertext in bytes (FIPS 203, table 3).
const CIPHERTEXT_BYTES: usize = 1088;
/// Length of ML-KEM's secret, and of X25519's, in bytes.
const SECRET_BYTES: usize = 32;

const NAME: NamedGroup = NamedGroup::X25519MLKEM768;

pub(crate) struct Hybrid {
    pub engine: &'static Engine,
    pub classical: Curve,
}

impl SupportedKxGroup for Hybrid {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let classical = self.classical.generate()?;
        let parameters = Parameters::new(Algorithm::MlKem768, Key::Generate);
        let kem = self.engine.session(parameters).map_err(fault)?;
        let mut share = kem.public_key().map_err(fault)?;
        share.extend_from_slice(&classical.share);
        Ok(Box::new(Started { classical, kem, share }))
    }

    fn start_and_complete(&self, client_share: &[u8]) -> Result<CompletedKeyExchange, Error> {
        let (peer, classical_peer) = split(client_share, KEY_BYTES)?;
        let classical = self.classical.generate()?;
        let classical_secret = classical.agree(classical_peer)?;

        let mut share = vec![0; CIPHERTEXT_BYTES];
        let mut secret = Zeroizing::new(vec![0; SECRET_BYTES]);
        let request =
            &mut Request::Encapsulate { peer, ciphertext: &mut share, secret: &mut secret };
        self.engine.run(Algorithm::MlKem768, request).map_err(share_fault)?;

        share.extend_from_slice(&classical.share);
        let secret = both(&secret, &classical_secret);
        Ok(CompletedKeyExchange { group: NAME, pub_key: share, secret })
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn name(&self) -> NamedGroup {
        NAME
    }

    fn usable_for_version(&self, version: ProtocolVersion) -> bool {
        version == ProtocolVersion::TLSv1_3
    }
}

impl fmt::Debug for Hybrid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        NAME.fmt(f)
    }
}

/// A client's two key pairs.
struct Started {
    classical: KeyPair,
    kem: Session,
    share: Vec<u8>,
}

impl ActiveKeyExchange for Started {
    fn complete(self: Box<Self>, server_share: &[u8]) -> Result<SharedSecret, Error> {
        let (ciphertext, classical_peer) = split(server_share, CIPHERTEXT_BYTES)?;
        let classical_secret = self.classical.agree(classical_peer)?;
        let mut secret = Zeroizing::new(vec![0; SECRET_BYTES]);
        let request = &mut Request::Decapsulate { ciphertext, secret: &mut secret };
        self.kem.run(request).map_err(share_fault)?;
        Ok(both(&secret, &classical_secret))
    }

    /// Lets rustls offer the X25519 key alone too, so that an older server need not ask again.
    fn hybrid_component(&self) -> Option<(NamedGroup, &[u8])> {
        Some((self.classical.name, &self.classical.share))
    }

    fn complete_hybrid_component(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        Box::new(self.classical).complete(peer)
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn group(&self) -> NamedGroup {
        NAME
    }

    fn pub_key(&self) -> &[u8] {
        &self.share
    }
}

/// A share's ML-KEM part and X25519 part; the latter's length is checked where it is used.
fn split(share: &[u8], kem_bytes: usize) -> Result<(&[u8], &[u8]), Error> {
    share.split_at_checked(kem_bytes).ok_or(PeerMisbehaved::InvalidKeyShare.into())
}

fn both(kem: &[u8], classical: &[u8]) -> SharedSecret {
    SharedSecret::from([kem, classical].concat())
}
