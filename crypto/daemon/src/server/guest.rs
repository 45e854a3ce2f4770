//! A client, as the control thread knows it: its connection, and what was set up for it.

use crate::closing::Line;
use crate::keys::Caller;
use crate::pump::{ClientId, Usage};
use crate::slab::Slab;
use keyway_ring::control::{self, ClientStatus};
use keyway_ring::{RingMemory, SharedMemory};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// A client's connection.
pub struct Guest {
    pub socket: Arc<Line>,
    pub caller: Caller,
    /// Its name for itself, once it has one.
    pub name: Option<String>,
    pub since: Instant,
    /// Whether it has asked to take over once.
    pub takes_over: bool,
    pub pump: usize,
    /// How many times the time of others it gets.
    pub weight: u32,
    pub queues: Vec<QueuePair>,
    pub next_queue: u32,
    pub sessions: Slab<Opened>,
    pub regions: Slab<(u16, Arc<SharedMemory>)>,
    /// Generation of the next region.
    pub region_generation: u16,
    pub region_bytes: usize,
    pub usage: Arc<Usage>,
}

/// A queue pair, as it may have to be handed over.
pub struct QueuePair {
    pub number: u32,
    pub memory: RingMemory,
    pub bell: OwnedFd,
}

/// A session, as it may have to be handed over.
pub struct Opened {
    pub generation: u64,
    pub steps: Vec<control::Step>,
    /// Whether its key was made here.
    pub is_generated: bool,
}

impl Opened {
    fn has_held_key(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.key, control::Key::Named { .. }))
    }
}

impl Guest {
    pub fn new(socket: Line, caller: Caller) -> Self {
        Guest {
            socket: Arc::new(socket),
            caller,
            name: None,
            since: Instant::now(),
            takes_over: false,
            pump: 0,
            weight: 1,
            queues: Vec::new(),
            next_queue: 0,
            sessions: Slab::new(),
            regions: Slab::new(),
            region_generation: 0,
            region_bytes: 0,
            usage: Arc::default(),
        }
    }

    pub fn status(&self, number: ClientId) -> ClientStatus {
        let Usage { requests, bytes, refused, doorbells, wakeups, throttled } = &*self.usage;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ClientStatus {
            number,
            name: self.name.clone().unwrap_or_default(),
            process: self.caller.pid,
            user: self.caller.uid,
            queues: self.queues.len() as u32,
            sessions: self.sessions.used() as u32,
            regions: self.regions.used() as u32,
            region_bytes: self.region_bytes as u64,
            requests: read(requests),
            bytes: read(bytes),
            refused: read(refused),
            doorbells: read(doorbells),
            wakeups: read(wakeups),
            weight: self.weight,
            throttled: read(throttled),
            keys: self.sessions.iter().filter(|(_, opened)| opened.has_held_key()).count() as u32,
        }
    }
}
