//! Where a future finds its result.

use keyway_lock::Unpoisoned;
use std::sync::{Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

/// Holds one value from when the work is done until its future takes it.
pub(crate) struct Slot<T> {
    state: Mutex<State<T>>,
}

struct State<T> {
    value: Option<T>,
    /// The task of the async executor that waits for the value.
    waker: Option<Waker>,
}

impl<T> Slot<T> {
    pub fn new() -> Self {
        Slot { state: Mutex::new(State { value: None, waker: None }) }
    }

    /// Puts the value in, and wakes whatever waits for it.
    pub fn fill(&self, value: T) {
        let mut state = self.lock();
        state.value = Some(value);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Takes the value out, or remembers what to wake when it is there.
    pub fn poll(&self, context: &mut Context<'_>) -> Poll<T> {
        let mut state = self.lock();
        match state.value.take() {
            Some(value) => Poll::Ready(value),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unpoisoned()
    }
}
