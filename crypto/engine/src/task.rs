//! A request on its way through a queue.

use crate::carrier::Slot;
use crate::session::Session;
use crate::{DriverSession, Error, Operation, clock};
use std::any::Any;
use std::sync::Arc;

/// An operation on a session, with its buffers, its result and whatever number the consumer wants
/// back with it. A box of it goes into a [`Queue`](crate::Queue) and comes out again, and may go in
/// anew: nothing is allocated on the way.
pub struct Task {
    /// The consumer's: it comes back as it was.
    pub user: u64,
    /// What is to be done; afterwards, what it put out.
    pub operation: Operation,
    pub(crate) session: Session,
    pub(crate) result: Result<usize, Error>,
    /// Whether a driver gave it back without having begun it.
    pub(crate) given_back: bool,
    /// Whether it was counted as having found its driver full.
    pub(crate) waited: bool,
    /// Which of the session's bindings it was placed on.
    pub(crate) binding: u32,
    /// Nanoseconds that the scheduler reckons with.
    pub(crate) predicted: u32,
    /// Its place in the session's order.
    pub(crate) order: u64,
    pub(crate) stamps: Stamps,
    /// Where its future waits for it.
    pub(crate) slot: Option<Arc<Slot>>,
}

/// When a task passed which stage, in nanoseconds of the engine's clock; 0 where nobody looked.
#[derive(Clone, Copy, Default)]
pub(crate) struct Stamps {
    pub submitted: u64,
    pub started: u64,
    pub finished: u64,
}

impl Task {
    /// A task ready to be submitted.
    pub fn new(session: &Session, operation: Operation) -> Box<Task> {
        Box::new(Task {
            user: 0,
            operation,
            session: session.clone(),
            result: Err(Error::InvalidRequest("it has not been run")),
            given_back: false,
            waited: false,
            binding: 0,
            predicted: 0,
            order: 0,
            stamps: Stamps::default(),
            slot: None,
        })
    }

    /// The same, with a number for the consumer to know it by.
    pub fn tagged(session: &Session, operation: Operation, user: u64) -> Box<Task> {
        let mut task = Task::new(session, operation);
        task.user = user;
        task
    }

    /// The session it runs on.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Has it run on another session from now on.
    pub fn set_session(&mut self, session: &Session) {
        self.session = session.clone();
    }

    /// How it ended: bytes put out, as [`DriverSession::run`] says.
    ///
    /// # Errors
    /// Why it was not done, or that it has not been run.
    #[inline]
    pub fn result(&self) -> Result<usize, Error> {
        self.result
    }

    /// Checks it and, where the session counts its uses, counts this one.
    #[inline]
    pub(crate) fn admit(&mut self) -> Result<(), Error> {
        let inner = self.session.inner();
        self.operation.with(|request| inner.check(request))?;
        if inner.is_guarded() {
            match &mut self.operation {
                Operation::Seal { nonce, .. } if inner.makes_nonces() => {
                    *nonce = inner.next_nonce()?;
                }
                Operation::Seal { .. } => inner.count_seal()?,
                Operation::Open { .. } => inner.admit_open()?,
                _ => {}
            }
        }
        Ok(())
    }

    /// For drivers: the state their session has for this task, and what is to be done.
    ///
    /// `None` if the task was never placed.
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
        if self.stamps.submitted != 0 {
            self.stamps.started = clock::now();
        }
    }

    /// For drivers: the work has ended so. [`Error::Gone`] says that it was not begun.
    #[inline]
    pub fn complete(&mut self, result: Result<usize, Error>) {
        self.given_back = result == Err(Error::Gone);
        self.result = result;
        if self.stamps.submitted != 0 {
            self.stamps.finished = clock::now();
        }
    }

    /// For drivers: the work was not begun and the buffers are untouched; the engine runs it
    /// elsewhere.
    pub fn give_back(&mut self) {
        self.complete(Err(Error::Gone));
    }
}
