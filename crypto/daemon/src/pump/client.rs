//! A client, as its pump knows it.

use super::command::{ClientId, Usage};
use crate::fair::{self, Credit};
use crate::keys::KeySession;
use crate::limits::{
    ClientLimits, REQUEST_COPIED_BYTES_MAX, REQUEST_NS_MAX, SPARE_BYTES_MAX,
    SPARE_BYTES_OF_CLIENT_MAX, SPARE_TASKS_MAX,
};
use crate::slow::Tag;
use keyway_engine::{Algorithm, Class, Session, Task};
use keyway_ring::SharedMemory;
use keyway_ring::descriptor::{Descriptor, Opcode, RegionHandle, SessionHandle, Status};
use keyway_wire as wire;
use std::sync::Arc;
use std::time::Instant;

/// About what it takes to refuse a request, in nanoseconds.
const REFUSAL_COST_NS: u32 = 200;
/// About what it takes to hand one to the slow class.
const SLOW_COST_NS: u32 = 1_000;

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
    /// Bytes of the tasks that its sessions keep.
    pub spare_bytes: usize,
    /// By [`Entry::slow_kind`].
    pub slow_in_flight: [usize; 2],
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
            spare_bytes: 0,
            slow_in_flight: [0; 2],
            rung: (Instant::now(), 0),
            usage,
        }
    }

    /// The cost of a request to its pump, or of its refusal: nonsense is no cheaper than a request
    /// that makes sense. And whether it is too much for a pump.
    #[inline]
    pub fn cost(&self, descriptor: &Descriptor) -> (u32, bool) {
        match self.session(descriptor.session) {
            Some(entry) => {
                let bytes = wire::named_bytes(descriptor);
                let cost = fair::cost(entry.costliest, bytes);
                match cost > REQUEST_NS_MAX || bytes > REQUEST_COPIED_BYTES_MAX {
                    true => (SLOW_COST_NS, true),
                    false if entry.weight == self.weight => (cost, false),
                    // Credit is given by the client's weight.
                    false => (self.by_weight(cost, entry.weight), false),
                }
            }
            None => (REFUSAL_COST_NS, false),
        }
    }

    /// A task for a request of this kind, and how many bytes its buffers may have already.
    #[inline]
    pub fn task(
        &mut self,
        session: SessionHandle,
        opcode: Opcode,
    ) -> Result<(usize, Box<Task>), Status> {
        let entry = self.session_mut(session).ok_or(Status::NoSession)?;
        match entry.spare.pop() {
            Some((bytes, task)) => {
                self.spare_bytes -= bytes as usize;
                Ok((bytes as usize, task))
            }
            None => {
                let operation = wire::empty(opcode).ok_or(Status::InvalidRequest)?;
                Ok((size_of::<Task>(), Task::new(&entry.session, operation)))
            }
        }
    }

    /// Keeps a task that is done, of so many bytes with its buffers, for another request, if there is room.
    #[inline]
    pub fn keep(&mut self, session: SessionHandle, mut task: Box<Task>, bytes: usize) {
        if bytes > SPARE_BYTES_MAX || self.spare_bytes + bytes > SPARE_BYTES_OF_CLIENT_MAX {
            return;
        }
        if let Some(entry) = self.session_mut(session)
            && entry.spare.len() < SPARE_TASKS_MAX
        {
            task.user = 0;
            entry.spare.push((bytes as u32, task));
            self.spare_bytes += bytes;
        }
    }

    /// A session was closed: its tasks go with it.
    pub fn forget(&mut self, entry: Entry) {
        self.spare_bytes -= entry.spare.iter().map(|(bytes, _)| *bytes as usize).sum::<usize>();
    }

    #[cold]
    fn by_weight(&self, cost: u32, weight: u32) -> u32 {
        let cost = u64::from(cost) * u64::from(self.weight) / u64::from(weight);
        u32::try_from(cost).unwrap_or(u32::MAX)
    }

    /// The owner of its slow requests, for a session of this weight.
    pub fn tag(&self, weight: u32) -> Tag {
        Tag { user: self.owner, client: self.number, weight }
    }

    /// The session that it calls so.
    #[inline]
    pub fn session(&self, handle: SessionHandle) -> Option<&Entry> {
        let entry = self.sessions.get(usize::from(handle.index))?.as_ref()?;
        (entry.generation == handle.generation).then_some(entry)
    }

    /// The session that it calls so, to be changed.
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
    /// The status that it is told if not.
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
    /// The costliest algorithm among a chain's steps.
    pub costliest: Algorithm,
    /// The daemon's own key, which says what it may be used for.
    pub key: Option<KeySession>,
    pub makes_nonces: bool,
    /// How many times the time of others its requests get: no less than its client.
    pub weight: u32,
    /// Tasks that are done, with their buffers, and the bytes that each counts for.
    pub spare: Vec<(u32, Box<Task>)>,
}

impl Entry {
    /// Which of a client's slow requests those of this session are: 1 for those that tokens do, which are counted apart
    /// from 0, the others, so that a token that does not answer keeps a client from no other key.
    #[inline]
    pub fn slow_kind(&self) -> usize {
        usize::from(self.key.as_ref().is_some_and(|key| key.token().is_some()))
    }

    /// Whether its key may be used for this, and of what class it is. A slow one is refused where
    /// none may be taken.
    ///
    /// # Errors
    /// The status that its client is told if not.
    #[inline]
    pub fn admit(&self, task: &mut Task, takes_slow: [bool; 2]) -> Result<Class, Status> {
        if let Some(key) = &self.key
            && !task.operation.with(|request| key.permits(request))
        {
            return Err(if key.is_ended() { Status::Gone } else { Status::Unsupported });
        }
        let class = match self.key.as_ref().and_then(KeySession::token) {
            // A token takes as long as it likes.
            Some(_) => Class::Slow,
            None => task.operation.class(self.algorithm),
        };
        if class == Class::Slow && !takes_slow[self.slow_kind()] {
            return Err(Status::Busy);
        }
        if let Some(key) = &self.key {
            key.count(1);
        }
        Ok(class)
    }
}
