//! A client, as its pump knows it.

use super::command::{ClientId, Usage};
use crate::fair::{self, Credit};
use crate::keys::KeySession;
use crate::limits::ClientLimits;
use keyway_drivers::remote::wire;
use keyway_engine::{Algorithm, Class, Session, Task};
use keyway_ring::SharedMemory;
use keyway_ring::descriptor::{Descriptor, Opcode, RegionHandle, SessionHandle, Status};
use std::sync::Arc;
use std::time::Instant;

/// About what it takes to refuse a request, in nanoseconds.
const REFUSAL_COST_NS: u32 = 200;

pub struct Client {
    pub number: ClientId,
    /// The user it runs as.
    pub owner: u32,
    pub limits: ClientLimits,
    pub weight: u32,
    pub credit: Credit,
    /// The turn that it got credit for last.
    pub turn: u64,
    /// In the places that the control thread has given them, and so are the regions.
    pub sessions: Vec<Option<Entry>>,
    pub regions: Vec<Option<(u16, Arc<SharedMemory>)>>,
    pub bytes_in_flight: usize,
    pub slow_in_flight: usize,
    /// Doorbells of the second that began then.
    pub rung: (Instant, u32),
    pub usage: Arc<Usage>,
}

impl Client {
    /// One that was admitted.
    pub fn new(
        number: ClientId,
        owner: u32,
        limits: ClientLimits,
        weight: u32,
        usage: Arc<Usage>,
    ) -> Self {
        Client {
            number,
            owner,
            limits,
            weight: weight.max(1),
            credit: Credit::default(),
            turn: 0,
            sessions: Vec::new(),
            regions: Vec::new(),
            bytes_in_flight: 0,
            slow_in_flight: 0,
            rung: (Instant::now(), 0),
            usage,
        }
    }

    /// What a request takes, or what it takes to refuse it: nonsense is no cheaper than what makes
    /// sense.
    #[inline]
    pub fn cost(&self, descriptor: &Descriptor) -> u32 {
        match self.session(descriptor.session) {
            Some(entry) => {
                let bytes = wire::named_bytes(descriptor).min(self.limits.request_bytes);
                fair::cost(entry.algorithm, bytes)
            }
            None => REFUSAL_COST_NS,
        }
    }

    /// The session that it calls so.
    #[inline]
    pub fn session(&self, handle: SessionHandle) -> Option<&Entry> {
        let entry = self.sessions.get(usize::from(handle.index))?.as_ref()?;
        (entry.generation == handle.generation).then_some(entry)
    }

    /// The same, to be changed.
    #[inline]
    pub fn session_mut(&mut self, handle: SessionHandle) -> Option<&mut Entry> {
        let entry = self.sessions.get_mut(usize::from(handle.index))?.as_mut()?;
        (entry.generation == handle.generation).then_some(entry)
    }

    /// The region that it calls so.
    #[inline]
    pub fn region(&self, handle: RegionHandle) -> Option<&Arc<SharedMemory>> {
        let (generation, memory) = self.regions.get(usize::from(handle.index))?.as_ref()?;
        (*generation == handle.generation).then_some(memory)
    }

    /// Whether it may have so many bytes more under way.
    ///
    /// # Errors
    /// What it is told if not.
    #[inline]
    pub fn admit(&self, bytes: usize) -> Result<(), Status> {
        if bytes > self.limits.request_bytes {
            return Err(Status::InvalidRequest);
        }
        match self.bytes_in_flight + bytes > self.limits.bytes_in_flight {
            true => Err(Status::Busy),
            false => Ok(()),
        }
    }
}

/// A session of a client.
pub struct Entry {
    pub generation: u64,
    pub session: Session,
    pub algorithm: Algorithm,
    /// The daemon's own key, which says what it may be used for.
    pub key: Option<KeySession>,
    pub makes_nonces: bool,
    /// Tasks that are done, with their buffers.
    pub spare: Vec<Box<Task>>,
}

impl Entry {
    /// A task for a request of this kind.
    #[inline]
    pub fn task(&mut self, opcode: Opcode) -> Result<Box<Task>, Status> {
        match self.spare.pop() {
            Some(task) => Ok(task),
            None => {
                let operation = wire::empty(opcode).ok_or(Status::InvalidRequest)?;
                Ok(Task::new(&self.session, operation))
            }
        }
    }

    /// Whether its key may be used for this, and of what class it is. A slow one is refused where
    /// none may be taken.
    ///
    /// # Errors
    /// What its client is told if not.
    #[inline]
    pub fn admit(&self, task: &mut Task, takes_slow: bool) -> Result<Class, Status> {
        if let Some(key) = &self.key
            && !task.operation.with(|request| key.permits(request))
        {
            return Err(if key.is_ended() { Status::Gone } else { Status::Unsupported });
        }
        let class = task.operation.class(self.algorithm);
        if class == Class::Slow && !takes_slow {
            return Err(Status::Busy);
        }
        if let Some(key) = &self.key {
            key.count(1);
        }
        Ok(class)
    }
}
