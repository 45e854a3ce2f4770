//! The queue of a driver that runs several tasks at once on the submitting thread.
//!
//! It gathers what is submitted with `more`, and runs it as one batch when the batch is full, when
//! a submission comes without `more`, or when it is polled.

use keyway_engine::{DriverQueue, Flow, Task};
use std::mem;

/// Runs the batches of one queue.
pub(crate) trait BatchRunner: Send {
    /// Most tasks of a batch, at least 1.
    const BATCH_MAX: usize;

    /// Runs and completes each of at most [`BATCH_MAX`](Self::BATCH_MAX) tasks. It may change their
    /// order.
    fn run(&mut self, tasks: &mut Vec<Box<Task>>);
}

/// A consumer's queue at such a driver. It takes whatever it is given.
pub(crate) struct BatchQueue<R> {
    runner: R,
    waiting: Vec<Box<Task>>,
    finished: Vec<Box<Task>>,
}

impl<R: BatchRunner> BatchQueue<R> {
    pub fn new(runner: R) -> Self {
        BatchQueue { runner, waiting: Vec::with_capacity(R::BATCH_MAX), finished: Vec::new() }
    }

    fn run_waiting(&mut self) {
        if !self.waiting.is_empty() {
            self.runner.run(&mut self.waiting);
            move_all(&mut self.waiting, &mut self.finished);
        }
    }
}

impl<R: BatchRunner> DriverQueue for BatchQueue<R> {
    fn submit(&mut self, tasks: &mut Vec<Box<Task>>, more: bool) -> Flow {
        while !tasks.is_empty() {
            let capacity = R::BATCH_MAX - self.waiting.len();
            self.waiting.extend(tasks.drain(..capacity.min(tasks.len())));
            if self.waiting.len() == R::BATCH_MAX {
                self.run_waiting();
            }
        }
        if !more {
            self.run_waiting();
        }
        Flow::Open
    }

    fn poll(&mut self, done: &mut Vec<Box<Task>>) {
        self.run_waiting();
        move_all(&mut self.finished, done);
    }
}

/// Moves all of `from` to the end of `to`: without a copy, if that is empty.
fn move_all(from: &mut Vec<Box<Task>>, to: &mut Vec<Box<Task>>) {
    if to.is_empty() {
        mem::swap(from, to);
    } else {
        to.append(from);
    }
}
