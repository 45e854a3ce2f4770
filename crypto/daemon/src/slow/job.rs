//! A slow request, from its descriptor to its answer.

use super::room;
use crate::fair;
use crate::keys::KeySession;
use crate::limits::ClientLimits;
use crate::pump::{Finished, Mailbox};
use keyway_engine::{Error, Operation, Session, Task};
use keyway_ring::SharedMemory;
use keyway_ring::descriptor::{Completion, Descriptor, Opcode, Status};
use keyway_wire as wire;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A request for a thread of the slow class.
pub struct Job {
    /// Its place among those that its pump has under way.
    pub place: usize,
    pub work: Work,
    /// The mailbox of the pump that is told of its end.
    pub mailbox: Arc<Mailbox>,
}

/// The request of a job, with all that is needed to answer it.
pub struct Work {
    pub descriptor: Descriptor,
    pub opcode: Opcode,
    pub memory: Arc<SharedMemory>,
    /// The user that its client runs as.
    pub owner: u32,
    pub session: Session,
    pub key: Option<KeySession>,
    pub makes_nonces: bool,
    pub limits: ClientLimits,
    /// The request, if its pump has loaded and admitted it. A large one is loaded here: to copy it takes
    /// about as long as to do it.
    pub task: Option<Box<Task>>,
}

impl Job {
    /// Does it, and tells its pump.
    pub fn run(self) {
        let Job { place, mut work, mailbox } = self;
        let mut task = work.task.take();
        let answer = match &mut task {
            Some(task) => work.done(&mut task.operation, &mailbox),
            None => match work.loaded() {
                Ok(mut operation) => work.done(&mut operation, &mailbox),
                Err(status) => Some(wire::refused(work.descriptor.cookie, status)),
            },
        };
        let Some(answer) = answer else { return };
        mailbox.finished(Finished { place, answer, task });
    }
}

impl Work {
    fn loaded(&self) -> Result<Operation, Status> {
        let Work { descriptor, opcode, memory, owner, session, key, limits, .. } = self;
        let mut operation = wire::empty(*opcode).ok_or(Status::InvalidRequest)?;
        room::make(&mut operation, descriptor);
        wire::load(descriptor, *opcode, memory, *owner, &mut operation)?;
        if let Some(key) = key {
            if !operation.with(|request| key.permits(request)) {
                return Err(if key.is_ended() { Status::Gone } else { Status::Unsupported });
            }
            key.count(1);
        }
        let signature_bytes = session.signature_bytes_max();
        match fair::slow_cost(session.algorithm(), &operation, signature_bytes).is_within(limits) {
            true => Ok(operation),
            false => Err(Status::InvalidRequest),
        }
    }

    /// `None` if no pump is to hear of it any more.
    fn done(&self, operation: &mut Operation, mailbox: &Arc<Mailbox>) -> Option<Completion> {
        let run = || self.run(operation);
        let result = catch_unwind(AssertUnwindSafe(run)).unwrap_or(Err(PANICKED));
        let _writing = mailbox.write()?;
        Some(wire::store(&self.descriptor, &self.memory, operation, result, self.makes_nonces))
    }

    fn run(&self, operation: &mut Operation) -> Result<usize, Error> {
        if let Operation::Seal { nonce, aad, data, tag } = operation
            && self.makes_nonces
        {
            (*nonce, *tag) = self.session.seal_next(aad, data)?;
            return Ok(data.len());
        }
        operation.with(|request| self.session.run(request))
    }
}

const PANICKED: Error = Error::Driver { driver: "in the slow class", why: "it panicked" };
