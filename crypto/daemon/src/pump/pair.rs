//! A queue pair, and its requests that are under way.

use super::command::ClientId;
use keyway_ring::descriptor::Descriptor;
use keyway_ring::{DaemonEnd, Doorbell, SharedMemory};
use rustix::event::epoll::{EventData, EventFlags};
use std::sync::Arc;
use std::time::Instant;

/// A queue pair.
pub struct Pair {
    pub client: usize,
    pub number: u32,
    pub end: DaemonEnd,
    pub bell: Doorbell,
    pub entries: u32,
    /// Requests that were taken and not answered.
    pub in_flight: u32,
    /// Since when it was looked at and nothing was found.
    pub idle_since: Option<Instant>,
    /// Whether its client has to ring, and it is not polled.
    pub parked: bool,
    /// Whether something was answered since its client was last looked after.
    pub answered: bool,
    /// Tells it from those that have its place later.
    pub generation: u32,
    /// It is not looked at before then, since its client rings too often.
    pub muted_until: Option<Instant>,
}

/// How a pump waits for a client's bell: each ring is told once, and nothing has to be read, which the
/// client could make wait.
pub const RUNG: EventFlags = EventFlags::IN.union(EventFlags::ET);

impl Pair {
    /// The event that tells of it when its client has rung: its place, and its generation.
    pub fn event(&self, index: usize) -> EventData {
        EventData::new_u64(u64::from(self.generation) << 32 | index as u64)
    }

    /// Something was answered: its client is looked after at the end of the turn.
    #[inline]
    pub fn note_answer(&mut self, index: usize, answered: &mut Vec<usize>) {
        if !self.answered {
            self.answered = true;
            answered.push(index);
        }
    }
}

/// A request that was taken in this turn, and not looked at.
pub struct Taken {
    pub pair: usize,
    /// The pair's.
    pub generation: u32,
    pub descriptor: Descriptor,
    /// Whether it is too much for a pump, by its bytes or by what it costs.
    pub large: bool,
}

/// A request that was taken and not answered.
pub struct InFlight {
    pub pair: usize,
    pub pair_generation: u32,
    pub client: usize,
    pub client_number: ClientId,
    pub descriptor: Descriptor,
    pub memory: Arc<SharedMemory>,
    pub bytes: usize,
    /// Bytes of its task with its buffers; 0 where it has no task yet.
    pub task_bytes: usize,
    /// Among which of its client's slow ones it counts, if it is slow
    /// ([`Entry::slow_kind`](super::client::Entry::slow_kind)).
    pub slow: Option<usize>,
    pub makes_nonces: bool,
}
