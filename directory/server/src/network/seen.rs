//! What others may see of a connection.

use super::journal::Asked;
use super::peer::Peer;
use crate::access::Strength;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

/// What is seen of a connection while it is open.
pub(super) struct Seen {
    pub peer: Peer,
    pub since: SystemTime,
    /// What its TLS handshake came to, if it had one.
    pub tls: OnceLock<TlsSeen>,
    /// Requests taken.
    requests: AtomicU64,
    /// Requests read and not taken.
    queued: AtomicU64,
    /// When bytes came in last, in microseconds since it was opened.
    heard_us: AtomicU64,
    who: Mutex<Who>,
    /// Requests that are under way.
    waiting: Mutex<Vec<Asked>>,
}

/// What a TLS handshake came to.
#[derive(Clone, Debug)]
pub(super) struct TlsSeen {
    pub version: String,
    pub suite: String,
    /// Of the key exchange; none where TLS 1.2 resumed a session.
    pub group: Option<String>,
    pub resumed: bool,
}

/// Whom it speaks for, and over what.
#[derive(Clone, Debug, Default)]
pub(super) struct Who {
    /// `None` before a bind.
    pub dn: Option<String>,
    pub strength: Strength,
}

impl Seen {
    pub fn new(peer: Peer, since: SystemTime) -> Seen {
        Seen {
            peer,
            since,
            tls: OnceLock::new(),
            requests: AtomicU64::new(0),
            queued: AtomicU64::new(0),
            heard_us: AtomicU64::new(0),
            who: Mutex::default(),
            waiting: Mutex::default(),
        }
    }

    /// A request is taken.
    pub fn request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// So many requests are read and not taken.
    pub fn queued(&self, requests: u64) {
        self.queued.store(requests, Ordering::Relaxed);
    }

    /// How many are.
    pub fn queue(&self) -> u64 {
        self.queued.load(Ordering::Relaxed)
    }

    /// Bytes have come in.
    pub fn heard(&self, now: SystemTime) {
        let us = now.duration_since(self.since).unwrap_or_default().as_micros();
        self.heard_us.store(u64::try_from(us).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// For how long none have.
    pub fn idle(&self, now: SystemTime) -> Duration {
        let open = now.duration_since(self.since).unwrap_or_default();
        open.saturating_sub(Duration::from_micros(self.heard_us.load(Ordering::Relaxed)))
    }

    /// It speaks for him from now on.
    pub fn speaks_for(&self, dn: Option<&str>, strength: Strength) {
        let mut who = self.who.lock().unwrap_or_else(PoisonError::into_inner);
        if who.dn.as_deref() != dn {
            who.dn = dn.map(str::to_owned);
        }
        who.strength = strength;
    }

    pub fn who(&self) -> Who {
        self.who.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The requests that are under way.
    pub fn waiting(&self) -> MutexGuard<'_, Vec<Asked>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
