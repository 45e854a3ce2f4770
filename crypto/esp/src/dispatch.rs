//! How requests reach the engine.

use crate::limits::BATCH_PACKETS_MAX;
use keyway_engine::{Engine, Error, Queue, Session, Task};
use std::time::Duration;

/// How requests reach the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dispatch {
    /// One after the other, each before the call returns ([`Session::run`]).
    Direct,
    /// All that wait in one submission to a [`Queue`], so that drivers can work on many at a time.
    Queued,
}

/// Sleeps no longer than this at a time while a driver works, which says when it is done.
const WAIT: Duration = Duration::from_secs(1);

/// Has the engine do tasks one way or the other.
pub(crate) struct Dispatcher {
    /// `None` for [`Dispatch::Direct`].
    queue: Option<Queue>,
    tasks: Vec<Box<Task>>,
    /// The result of each of the tasks, with [`Dispatch::Direct`].
    results: Vec<Result<usize, Error>>,
}

impl Dispatcher {
    pub fn new(engine: &Engine, dispatch: Dispatch) -> Self {
        let queue = match dispatch {
            Dispatch::Direct => None,
            Dispatch::Queued => Some(engine.queue(BATCH_PACKETS_MAX)),
        };
        Dispatcher { queue, tasks: Vec::new(), results: Vec::new() }
    }

    /// Has this task done at once, or with the others; `session` is its own. At most [`BATCH_PACKETS_MAX`] before they
    /// are collected.
    #[inline]
    pub fn add(&mut self, session: &Session, mut task: Box<Task>) {
        if self.queue.is_none() {
            self.results.push(task.operation.with(|request| session.run(request)));
        }
        self.tasks.push(task);
    }

    /// Hands out all that were added, when they are done, in any order.
    pub fn collect(&mut self, mut each: impl FnMut(Box<Task>, Result<usize, Error>)) {
        let Some(queue) = &mut self.queue else {
            let done = self.tasks.drain(..).zip(self.results.drain(..));
            return done.for_each(|(task, result)| each(task, result));
        };
        // It has room for a batch, so that it takes all.
        queue.submit(&mut self.tasks, false);
        queue.poll(&mut self.tasks);
        // Each comes back, whatever becomes of its driver.
        while queue.in_flight() > 0 {
            queue.wait(&mut self.tasks, WAIT);
        }
        for task in self.tasks.drain(..) {
            let result = task.result();
            each(task, result);
        }
    }
}
