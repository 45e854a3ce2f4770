//! A queue pair and a region: one request at a time.

use crate::kept::Kept;
use crate::limits::{POLL, REGION_KEPT_BYTES, REQUEST, SILENCE, SLICE};
use keyway_engine::Request;
use keyway_ring::descriptor::{Completion, RegionHandle, SessionHandle, Status};
use keyway_ring::{ClientEnd, Doorbell, SharedMemory};
use keyway_wire::{self as wire, Space};
use std::hint;
use std::time::Instant;

/// One thread's at a time.
pub(crate) struct Channel {
    /// The daemon's number for the pair.
    pub queue: u32,
    pub end: ClientEnd,
    pub bell: Kept<Doorbell>,
    pub memory: SharedMemory,
    pub region: RegionHandle,
}

/// The life of the connection that a channel belongs to, for a thread that waits on it.
pub(crate) trait Life {
    /// Whether the daemon has hung up.
    fn is_over(&self) -> bool;
    /// Asks the daemon for a sign of life; without one the connection is over.
    fn ping(&self);
    /// The daemon has taken too long: the connection is over.
    fn give_up(&self);
}

impl Channel {
    /// Whether a request fits into its region.
    pub fn fits(&self, request: &Request<'_>) -> bool {
        wire::bytes_max(request) <= self.memory.bytes()
    }

    /// Whether its region is larger than what is kept.
    pub fn is_large(&self) -> bool {
        self.memory.bytes() > REGION_KEPT_BYTES
    }

    /// Has a request done, and waits for it.
    ///
    /// # Errors
    /// The daemon's status; [`Status::Gone`] if the connection is over, and then the daemon may still work on it.
    pub fn run(
        &mut self,
        life: &impl Life,
        session: SessionHandle,
        request: &mut Request<'_>,
    ) -> Result<usize, Status> {
        // Where the device of a virtual machine has gone, another's memory may be there.
        if self.end.is_lost() {
            return Err(Status::Gone);
        }
        let mut space = Space::new(self.memory.whole());
        let mut descriptor = wire::encode(request, &mut space).ok_or(Status::InvalidRequest)?;
        descriptor.session = session;
        descriptor.region = self.region;
        self.end.submit(&descriptor);
        if self.end.must_ring() {
            // An event counter does not tell itself from another; the socket beside it does.
            match self.bell.get().filter(|_| !life.is_over()) {
                Some(bell) => bell.ring(),
                None => return Err(Status::Gone),
            }
        }
        let completion = self.wait(life)?;
        let segments = &descriptor.segments;
        let result = match completion.status {
            Status::Done => {
                let memory = self.memory.whole();
                let result = wire::decode(&completion, segments, memory, false, request);
                // Where the device of a virtual machine went meanwhile, the bytes are none.
                match (self.end.is_lost(), wire::changes_data(request)) {
                    (false, _) => result.map_err(|_| Status::Driver),
                    (true, true) => Err(Status::Driver),
                    (true, false) => Err(Status::Gone),
                }
            }
            // The session's key was rotated or revoked.
            Status::Gone if !self.end.is_closed() && !life.is_over() => Err(Status::NoSession),
            status => Err(status),
        };
        wire::wipe(request, segments, self.memory.whole());
        result
    }

    fn wait(&mut self, life: &impl Life) -> Result<Completion, Status> {
        let begun = Instant::now();
        while begun.elapsed() < POLL {
            // Reading the clock costs as much as several looks.
            for _ in 0..16 {
                if let Some(completion) = self.end.poll() {
                    return Ok(completion);
                }
                hint::spin_loop();
            }
        }
        let mut since = Instant::now();
        loop {
            let is_over = self.end.is_closed() || life.is_over();
            if let Some(completion) = self.end.poll() {
                return Ok(completion);
            }
            if is_over {
                return Err(Status::Gone);
            }
            if begun.elapsed() >= REQUEST {
                life.give_up();
                return Err(Status::Gone);
            }
            if since.elapsed() >= SILENCE {
                life.ping();
                since = Instant::now();
            }
            self.end.sleep(SLICE);
        }
    }
}
