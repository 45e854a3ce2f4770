//! A key in use.

use super::access::{Purpose, Purposes};
use keyway_engine::{Kind, Request, Session};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A session of the engine with a key of the store, and what may be done on it. Clones count and
/// end together.
#[derive(Clone, Debug)]
pub struct KeySession {
    pub(super) session: Session,
    pub(super) version: u32,
    pub(super) purposes: Purposes,
    pub(super) uses: Arc<AtomicU64>,
    pub(super) ended: Arc<AtomicBool>,
    pub(super) token: Option<usize>,
}

impl KeySession {
    /// The session. It would do more than is permitted: every request has to be asked about with
    /// [`KeySession::permits`]. For an AEAD it makes its own nonces
    /// ([`Nonces::Salted`](keyway_engine::Nonces::Salted)), unless it is for ESP.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Whether the session makes its nonces: with an AEAD it does, unless the client protects ESP's packets.
    pub fn makes_nonces(&self) -> bool {
        self.session.algorithm().kind() == Kind::Aead && !self.purposes.contains(Purpose::Esp)
    }

    /// The version of the key that it has.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The token that has to do its requests, by its place among the daemon's tokens: they may take long, and belong
    /// to threads that wait for this token alone.
    #[inline]
    pub fn token(&self) -> Option<usize> {
        self.token
    }

    /// Whether a request may be done: the session has not ended, and was opened for that. Costs two
    /// comparisons.
    #[inline]
    pub fn permits(&self, request: &Request<'_>) -> bool {
        let is_for = |purpose| match purpose {
            Purpose::Encrypt | Purpose::Decrypt if self.purposes.contains(Purpose::Esp) => true,
            purpose => self.purposes.contains(purpose),
        };
        !self.is_ended() && Purpose::of(request).is_none_or(is_for)
    }

    /// Whether its key was rotated, revoked, deleted, or taken from a caller since.
    #[inline]
    pub fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Counts requests that were done.
    #[inline]
    pub fn count(&self, requests: u64) {
        self.uses.fetch_add(requests, Ordering::Relaxed);
    }
}
