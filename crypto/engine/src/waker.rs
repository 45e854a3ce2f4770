//! How a thread that has nothing to poll sleeps, and is woken.
//!
//! It sleeps here, unless it waits for other things too and sleeps where those are waited for.

use keyway_lock::Unpoisoned;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex};
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
    /// Wakes a thread that sleeps elsewhere.
    call: Option<Box<dyn Fn() + Send + Sync>>,
}

impl Waker {
    /// A waker of a thread that does not sleep yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A waker of a thread that sleeps elsewhere, where `call` wakes it.
    pub(crate) fn calling(call: impl Fn() + Send + Sync + 'static) -> Self {
        Waker { inner: Arc::new(Inner { call: Some(Box::new(call)), ..Inner::default() }) }
    }

    /// The thread is about to sleep elsewhere. It then looks once more.
    pub(crate) fn arm(&self) {
        self.inner.armed.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
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
        if let Some(call) = &self.inner.call {
            if self.inner.armed.swap(false, Ordering::Relaxed) {
                call();
            }
            return;
        }
        *self.inner.woken.lock().unpoisoned() = true;
        self.inner.changed.notify_all();
    }

    /// Sleeps until it is woken or the time is over. It first arms the waker and calls `look`; if
    /// that finds something, it does not sleep.
    pub(crate) fn sleep(&self, most: Duration, look: impl FnOnce() -> bool) {
        self.arm();
        if !look() {
            let woken = self.inner.woken.lock().unpoisoned();
            let _ = self.inner.changed.wait_timeout_while(woken, most, |woken| !*woken);
        }
        self.inner.armed.store(false, Ordering::Relaxed);
        *self.inner.woken.lock().unpoisoned() = false;
    }
}
