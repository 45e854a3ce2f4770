//! How a thread that has nothing to poll sleeps, and is woken.

use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Wakes the thread that waits in a [`Queue`](crate::Queue). Cheap to clone. While the thread is
/// awake, a call costs a fence and a load.
#[derive(Clone, Default)]
pub struct Waker {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    /// Whether the thread sleeps or is about to.
    armed: AtomicBool,
    woken: Mutex<bool>,
    changed: Condvar,
}

impl Waker {
    /// A waker of a thread that does not sleep yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Wakes the thread if it sleeps or is about to. Call it after the finished work can be seen.
    #[inline]
    pub fn wake(&self) {
        // Either the sleeper's look comes after what was published, or this load after its arming.
        fence(Ordering::SeqCst);
        if self.inner.armed.load(Ordering::Relaxed) {
            self.notify();
        }
    }

    #[cold]
    fn notify(&self) {
        *self.inner.woken.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.inner.changed.notify_all();
    }

    /// Sleeps until it is woken or the time is over. It first arms the waker and calls `look`; if
    /// that finds something, it does not sleep.
    pub(crate) fn sleep(&self, most: Duration, look: impl FnOnce() -> bool) {
        self.inner.armed.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if !look() {
            let woken = self.inner.woken.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = self.inner.changed.wait_timeout_while(woken, most, |woken| !*woken);
        }
        self.inner.armed.store(false, Ordering::Relaxed);
        *self.inner.woken.lock().unwrap_or_else(PoisonError::into_inner) = false;
    }
}
