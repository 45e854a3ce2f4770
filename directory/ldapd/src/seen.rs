//! The state of a connection that others may see.

use crate::peer::Peer;
use crate::request_record::RequestRecord;
use keyway_lock::Unpoisoned;
use keyway_server::Clock;
use keyway_server::access::Strength;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant, SystemTime};

/// The visible state of a connection while it is open.
pub(crate) struct Seen {
    pub peer: Peer,
    /// It is the process of an administrator of this machine: it needs no bind to keep its place.
    pub is_at_home: bool,
    /// When it was opened, by the wall clock.
    pub since: SystemTime,
    /// When it was opened, by the monotonic clock.
    opened: Instant,
    /// The outcome of its TLS handshake, if it had one.
    pub tls: OnceLock<TlsSeen>,
    /// Requests taken.
    requests: AtomicU64,
    /// Steps of searches after their first.
    steps: AtomicU64,
    /// Requests read and not taken.
    queued: AtomicU64,
    /// It speaks for a user.
    is_bound: AtomicBool,
    /// It is among the strangers that may have to make room.
    is_listed: AtomicBool,
    /// When bytes came in last, in microseconds since it was opened.
    heard_us: AtomicU64,
    who: Mutex<Who>,
    /// Requests that are under way.
    waiting: Mutex<Vec<RequestRecord>>,
}

/// The outcome of a TLS handshake.
#[derive(Clone, Debug)]
pub(crate) struct TlsSeen {
    pub version: String,
    pub suite: String,
    /// The group of the key exchange; none where TLS 1.2 resumed a session.
    pub group: Option<String>,
    pub resumed: bool,
}

/// The user that it speaks for, and over what.
#[derive(Clone, Debug, Default)]
pub(crate) struct Who {
    /// `None` before a bind.
    pub dn: Option<String>,
    pub strength: Strength,
}

impl Seen {
    pub fn new(peer: Peer, is_at_home: bool, clock: Clock) -> Seen {
        Seen {
            peer,
            is_at_home,
            since: (clock.wall)(),
            opened: (clock.monotonic)(),
            tls: OnceLock::new(),
            requests: AtomicU64::new(0),
            steps: AtomicU64::new(0),
            queued: AtomicU64::new(0),
            is_bound: AtomicBool::new(false),
            is_listed: AtomicBool::new(false),
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

    /// A search goes on.
    pub fn step(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }

    /// A number that grows with what is done for the peer.
    pub fn asked(&self) -> u64 {
        self.requests().wrapping_add(self.steps.load(Ordering::Relaxed))
    }

    /// Whether it is known whose connection it is.
    pub fn is_known(&self) -> bool {
        self.is_at_home || self.is_bound.load(Ordering::Relaxed)
    }

    /// Whether it is among the strangers is noted.
    pub fn is_listed(&self, is_listed: bool) {
        self.is_listed.store(is_listed, Ordering::Relaxed);
    }

    /// Whether it is a stranger's, and not noted as such.
    pub fn is_to_be_listed(&self) -> bool {
        !self.is_known() && !self.is_listed.load(Ordering::Relaxed)
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
    pub fn heard(&self, now: Instant) {
        let us = now.saturating_duration_since(self.opened).as_micros();
        self.heard_us.store(u64::try_from(us).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// For how long none have.
    pub fn idle(&self, now: Instant) -> Duration {
        let open = now.saturating_duration_since(self.opened);
        open.saturating_sub(Duration::from_micros(self.heard_us.load(Ordering::Relaxed)))
    }

    /// It speaks for him from now on.
    pub fn speaks_for(&self, dn: Option<&str>, strength: Strength) {
        self.is_bound.store(dn.is_some(), Ordering::Relaxed);
        let mut who = self.who.lock().unpoisoned();
        if who.dn.as_deref() != dn {
            who.dn = dn.map(str::to_owned);
        }
        who.strength = strength;
    }

    pub fn who(&self) -> Who {
        self.who.lock().unpoisoned().clone()
    }

    /// The requests that are under way.
    pub fn waiting(&self) -> MutexGuard<'_, Vec<RequestRecord>> {
        self.waiting.lock().unpoisoned()
    }
}
