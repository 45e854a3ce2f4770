//! A client, as the control thread knows it: its connection, and what was set up for it.

use crate::closing::Line;
use crate::keys::Caller;
use crate::limits::{FILES_OF_MACHINE, FILES_OF_QUEUE};
use crate::machine::{Bell, Room};
use crate::pump::{ClientId, Usage};
use crate::slab::Slab;
use keyway_ring::control::{self, Answer, ClientStatus};
use keyway_ring::{Doorbell, RingMemory, SharedMemory};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// A client's connection.
pub struct Guest {
    pub socket: Arc<Line>,
    pub caller: Caller,
    /// Where its memory comes from, if it is a virtual machine.
    pub room: Option<Arc<Room>>,
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
    /// That bell as long as a virtual machine has it.
    pub place: Option<Bell>,
}

impl QueuePair {
    /// Makes one of so many entries, by this number.
    ///
    /// # Errors
    /// The system's; `OutOfMemory` if the memory of a virtual machine is in use.
    pub fn make(number: u32, entries: u32, room: Option<&Arc<Room>>) -> io::Result<QueuePair> {
        let Some(room) = room else {
            let (memory, bell) = (RingMemory::create(entries)?, Doorbell::new()?);
            let bell = bell.as_fd().try_clone_to_owned()?;
            return Ok(QueuePair { number, memory, bell, place: None });
        };
        let place = room.bell().ok_or(io::ErrorKind::OutOfMemory)?;
        let memory = RingMemory::create_in(&room.arena, entries);
        let memory = memory.ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(QueuePair { number, memory, bell: place.file()?, place: Some(place) })
    }

    /// What its client is told.
    pub fn answer(&self) -> Answer {
        let (queue, entries) = (self.number, self.memory.entries());
        match &self.place {
            None => Answer::Queue { queue, entries },
            Some(place) => {
                let memory = self.memory.memory();
                let (at, bytes) = (memory.offset() as u64, memory.bytes() as u64);
                Answer::QueueAt { queue, entries, at, bytes, bell: place.peer() }
            }
        }
    }
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
    pub fn new(socket: Line, caller: Caller, room: Option<Arc<Room>>) -> Self {
        Guest {
            socket: Arc::new(socket),
            caller,
            room,
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

    /// The daemon's files that it takes.
    pub fn files(&self) -> usize {
        match self.room {
            None => 1 + FILES_OF_QUEUE * self.queues.len() + self.regions.used(),
            // Their memory is one file.
            Some(_) => FILES_OF_MACHINE + (FILES_OF_QUEUE - 1) * self.queues.len(),
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
