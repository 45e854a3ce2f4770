//! Messages of the control thread to a pump, and the pump's to it.

use crate::keys::KeySession;
use crate::limits::ClientLimits;
use keyway_engine::Session;
use keyway_ring::descriptor::{Descriptor, RegionHandle, SessionHandle};
use keyway_ring::{DaemonEnd, Doorbell, SharedMemory};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;

/// A client, by the number it was admitted under; no number is given twice.
pub type ClientId = u64;

/// A command of the control thread to a pump.
pub enum Command {
    /// A client was admitted.
    Admit {
        /// Its number.
        client: ClientId,
        /// The user it runs as.
        owner: u32,
        /// Its limits.
        limits: ClientLimits,
        /// How many times the time of others it gets.
        weight: u32,
        /// Its figures, for those who watch.
        usage: Arc<Usage>,
    },
    /// A client is gone, and all that was its.
    Remove(ClientId),
    /// A client has another queue pair.
    Pair {
        /// The client it is for.
        client: ClientId,
        /// Its number among the client's.
        number: u32,
        /// Its end.
        end: DaemonEnd,
        /// The doorbell that the client rings.
        bell: Doorbell,
        /// Entries of each ring.
        entries: u32,
    },
    /// A queue pair is no longer used.
    ClosePair(ClientId, u32),
    /// A client has opened a session.
    Session {
        /// The client it is for.
        client: ClientId,
        /// The client's handle for it.
        handle: SessionHandle,
        /// The engine's.
        session: Session,
        /// The daemon's own key that it has, if it has one.
        key: Option<KeySession>,
        /// How many times the time of others its requests get, if that is more than its client gets.
        weight: u32,
    },
    /// A client has closed one.
    CloseSession(ClientId, SessionHandle),
    /// A client has registered memory.
    Region {
        /// The client it is for.
        client: ClientId,
        /// The client's handle for it.
        handle: RegionHandle,
        /// The memory.
        memory: Arc<SharedMemory>,
    },
    /// A client has given one up.
    Forget(ClientId, RegionHandle),
    /// A slow request of a client's pair that the daemon before this one had taken and not answered: it is
    /// done again.
    Again {
        /// The client it is of.
        client: ClientId,
        /// The pair's number among the client's.
        number: u32,
        /// The request.
        descriptor: Descriptor,
    },
    /// Takes no more requests, finishes those that were taken but for the slow ones, and says how
    /// far it is. Slow requests are not answered before it thaws.
    Freeze(Sender<Vec<Position>>),
    /// Goes on after all.
    Thaw,
}

/// How far a queue pair is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The client it is for.
    pub client: ClientId,
    /// Its number among the client's.
    pub queue: u32,
    /// Requests that were taken since it was made.
    pub taken: u64,
    /// Requests that were answered since it was made.
    pub answered: u64,
    /// Those that were taken and not answered, all of them slow.
    pub under_way: Vec<Descriptor>,
}

/// The figures of one client. The pump alone writes it.
#[derive(Debug, Default)]
pub struct Usage {
    /// Requests that were answered.
    pub requests: AtomicU64,
    /// Bytes that they named.
    pub bytes: AtomicU64,
    /// Requests that were refused before the engine saw them.
    pub refused: AtomicU64,
    /// Times that it rang, as far as they had to be looked after apart.
    pub doorbells: AtomicU64,
    /// Times that it was woken.
    pub wakeups: AtomicU64,
    /// Turns that ended because it had had its share.
    pub throttled: AtomicU64,
}

/// Adds to a counter that one thread writes.
pub fn add(to: &AtomicU64, n: u64) {
    to.store(to.load(Ordering::Relaxed) + n, Ordering::Relaxed);
}
