//! What others may see of a connection.

use super::peer::Peer;
use crate::access::Strength;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// What is seen of a connection while it is open.
#[derive(Debug)]
pub(super) struct Seen {
    pub peer: Peer,
    pub since: SystemTime,
    /// Requests taken.
    requests: AtomicU64,
    who: Mutex<Who>,
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
        Seen { peer, since, requests: AtomicU64::new(0), who: Mutex::default() }
    }

    /// A request is taken.
    pub fn request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
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
}
