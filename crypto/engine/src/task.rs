//! A request on its way through a queue.

use crate::lengths::LengthLimits;
use crate::session::Session;
use crate::slot::Slot;
use crate::{DriverSession, Error, Operation, clock};
use std::any::Any;
use std::fmt;
use std::ptr;
use std::sync::Arc;

/// An operation on a session, with its buffers, its result and a number of the consumer's. A box of
/// it goes into a [`Queue`](crate::Queue), comes out again, and may go in again. Nothing is
/// allocated on the way.
#[repr(C, align(64))]
pub struct Task {
    // In this order, what every task touches on its way lies in two lines of the cache.
    pub(crate) session: Session,
    /// The session's binding that it was placed on.
    pub(crate) binding: u32,
    /// Nanoseconds that the scheduler reckons with.
    pub(crate) predicted: u32,
    pub(crate) marks: u8,
    pub(crate) result: Result<usize, Error>,
    /// The operation to be done; afterwards, with its output.
    pub operation: Operation,
    /// The consumer's: it comes back as it was.
    pub user: u64,
    /// Bytes to be worked on. Not set on the cached route.
    pub(crate) bytes: usize,
    /// Its place in the session's order.
    pub(crate) order: u64,
    pub(crate) stamps: Stamps,
    /// Where its future waits for it.
    pub(crate) slot: Option<Arc<Slot<Box<Task>>>>,
}

/// Flags of a task in a queue.
pub(crate) mod mark {
    /// Its stages are timed.
    pub const SAMPLED: u8 = 1;
    /// It was counted as having found its driver full.
    pub const WAITED: u8 = 2;
    /// A driver gave it back without having begun it.
    pub const GIVEN_BACK: u8 = 4;
    /// It took a cached route, where [`bytes`](super::Task::bytes) is not set.
    pub const ROUTED: u8 = 8;
    /// It failed.
    pub const FAILED: u8 = 16;
}

/// The binding of a task that was not admitted, where uses of the key are counted. No driver can
/// run it.
const NOT_ADMITTED: u32 = u32::MAX;

/// When a timed task passed each stage, in nanoseconds of the engine's clock. 0 where its driver
/// did not say.
#[derive(Clone, Copy, Default)]
pub(crate) struct Stamps {
    pub submitted: u64,
    pub started: u64,
    pub finished: u64,
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Task");
        shown.field("session", &self.session).field("operation", &self.operation);
        shown.field("user", &self.user).field("result", &self.result).finish_non_exhaustive()
    }
}

impl Task {
    /// A task ready to be submitted.
    pub fn new(session: &Session, operation: Operation) -> Box<Task> {
        let mut task = Box::new(Task {
            user: 0,
            operation,
            session: session.clone(),
            result: Err(Error::invalid_request("it has not been run")),
            marks: 0,
            bytes: 0,
            binding: 0,
            predicted: 0,
            order: 0,
            stamps: Stamps::default(),
            slot: None,
        });
        task.end_admission();
        task
    }

    /// It goes to the consumer, and does not count as admitted any more.
    #[inline]
    pub(crate) fn end_admission(&mut self) {
        self.binding = if self.session.inner().needs_admission() { NOT_ADMITTED } else { 0 };
    }

    /// A task with a number for the consumer to know it by.
    pub fn tagged(session: &Session, operation: Operation, user: u64) -> Box<Task> {
        let mut task = Task::new(session, operation);
        task.user = user;
        task
    }

    /// The session it runs on.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Lets it run on another session from now on.
    pub fn set_session(&mut self, session: &Session) {
        self.session = session.clone();
        self.end_admission();
    }

    /// How it ended: bytes put out, as [`DriverSession::run`] says.
    ///
    /// # Errors
    /// Why it was not done, or that it has not been run.
    #[inline]
    pub fn result(&self) -> Result<usize, Error> {
        self.result
    }

    /// Its output, where that is in its operation: [`Operation::output`], as much of it as counts.
    ///
    /// # Errors
    /// As [`Task::result`].
    pub fn output(&self) -> Result<&[u8], Error> {
        let (used, output) = (self.result?, self.operation.output());
        let start = match &self.operation {
            Operation::Unprotect { opened, .. } => opened.header_bytes,
            _ => 0,
        };
        Ok(output.get(start..).map_or(output, |rest| rest.get(..used).unwrap_or(rest)))
    }

    /// Admits it to the binding that the last task of this plain session was placed on. `false` if it is
    /// of another session, or if what `bytes` returns is outside the limits. The queue takes its packet
    /// number.
    #[inline(always)]
    pub(crate) fn follow(
        &mut self,
        session: u64,
        limits: &LengthLimits,
        binding: u32,
        bytes: impl Fn(&mut Task) -> Option<usize>,
    ) -> bool {
        if self.session.inner().id != session {
            return false;
        }
        let Some(bytes) = bytes(self).filter(|&bytes| limits.fit(bytes)) else { return false };
        self.bytes = bytes;
        self.marks = mark::ROUTED;
        self.binding = binding;
        true
    }

    /// Whether both are of one session and placed on one binding.
    #[inline]
    pub(crate) fn is_placed_as(&self, other: &Task) -> bool {
        ptr::eq(self.session.inner(), other.session.inner()) && self.binding == other.binding
    }

    /// Its bytes, if it fits its session.
    pub(crate) fn fits(&mut self) -> Option<usize> {
        let inner = self.session.inner();
        self.operation.with(|request| inner.check(request)).ok()?;
        Some(self.operation.bytes())
    }

    /// Checks it and, where the session counts its uses, counts this one.
    #[inline]
    pub(crate) fn admit(&mut self) -> Result<(), Error> {
        self.marks = 0;
        self.bytes = self.operation.bytes();
        let inner = self.session.inner();
        self.operation.with(|request| inner.check(request))?;
        if inner.needs_admission() {
            match &mut self.operation {
                Operation::Seal { nonce, .. } if inner.usage.makes_nonces() => {
                    *nonce = inner.usage.next_nonce()?;
                }
                Operation::Seal { .. } => inner.usage.count_seal()?,
                Operation::Protect { number, .. } => {
                    inner.usage.count_seal()?;
                    inner.usage.take_number(*number)?;
                }
                Operation::Open { .. } | Operation::Unprotect { .. } => inner.usage.admit_open()?,
                _ => {}
            }
        }
        Ok(())
    }

    /// For drivers: the state their session has for this task, and what is to be done.
    ///
    /// `None` if its session counts the uses of its key and the task was not admitted.
    pub fn parts(&mut self) -> Option<(&dyn DriverSession, &mut Operation)> {
        Some((self.session.state(self.binding)?, &mut self.operation))
    }

    /// For drivers: the same, where the state is of the driver's own type.
    #[inline]
    pub fn parts_as<S: DriverSession>(&mut self) -> Option<(&S, &mut Operation)> {
        let state = self.session.state(self.binding)? as &dyn Any;
        Some((state.downcast_ref()?, &mut self.operation))
    }

    /// For drivers: runs it on this stack and keeps the result.
    #[inline]
    pub fn run(&mut self) {
        self.begin();
        let result = match self.session.state(self.binding) {
            Some(state) => self.operation.with(|request| state.run(request)),
            None => Err(Error::Gone),
        };
        self.complete(result);
    }

    /// For drivers: the work begins now. Only the profile is interested.
    #[inline]
    pub fn begin(&mut self) {
        if self.is_marked(mark::SAMPLED) {
            self.stamps.started = clock::now();
        }
    }

    /// For drivers: the work has ended so. [`Error::Gone`] says that it was not begun.
    #[inline]
    pub fn complete(&mut self, result: Result<usize, Error>) {
        // By its parts: a copy of the whole would wait for stores of other widths.
        match result {
            Ok(used) => {
                self.result = Ok(used);
                if self.is_marked(mark::SAMPLED) {
                    self.stamps.finished = clock::now();
                }
            }
            Err(error) => self.fail(error),
        }
    }

    #[cold]
    fn fail(&mut self, error: Error) {
        self.result = Err(error);
        self.marks |= if error == Error::Gone { mark::GIVEN_BACK } else { mark::FAILED };
        if self.is_marked(mark::SAMPLED) {
            self.stamps.finished = clock::now();
        }
    }

    #[inline]
    pub(crate) fn is_marked(&self, mark: u8) -> bool {
        self.marks & mark != 0
    }

    /// For drivers: the work was not begun and the buffers are untouched; the engine runs it
    /// elsewhere.
    pub fn give_back(&mut self) {
        self.complete(Err(Error::Gone));
    }
}
