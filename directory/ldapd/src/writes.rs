//! Where changes are made.

use crate::forward::Forwarder;
use keyway_lock::Unpoisoned;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

/// Where changes are made that clients ask for.
#[derive(Clone, Default)]
pub enum Writes {
    /// Here.
    #[default]
    Here,
    /// At the server that writes, to which they are sent.
    Forwarded(Forwarding),
    /// There, and clients are told so: the URL.
    Referred(String),
    /// Nowhere, for now or until this server is mended: why, and what to do.
    Refused(String),
    /// Nowhere for now: why, and what to do.
    Unavailable(String),
}

/// How requests are sent to the server that writes.
#[derive(Clone)]
pub struct Forwarding {
    /// The way.
    pub forwarder: Forwarder,
    /// How long a read waits for what its connection has written, before it is sent as well.
    pub wait: Duration,
    /// Whether all connections from the address of one that has written wait for that.
    pub by_address: bool,
}

/// The parts of a server that say where changes are made.
#[derive(Default)]
pub(crate) struct Elsewhere {
    writes: RwLock<Arc<Writes>>,
    is_elsewhere: AtomicBool,
}

impl Elsewhere {
    pub fn writes(&self) -> Arc<Writes> {
        self.writes.read().unpoisoned().clone()
    }

    /// Whether they are made elsewhere, to be asked for every request.
    pub fn is_elsewhere(&self) -> bool {
        self.is_elsewhere.load(Ordering::Acquire)
    }

    pub fn set(&self, writes: Writes) {
        let is_elsewhere = !matches!(writes, Writes::Here);
        *self.writes.write().unpoisoned() = Arc::new(writes);
        self.is_elsewhere.store(is_elsewhere, Ordering::Release);
    }
}
