//! How a thread that has nothing to poll sleeps, and is woken.

use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Wakes the thread that waits in a [`Queue`](crate::Queue). Cheap to clone, and cheap to ring
/// while nobody sleeps: a fence and a load.
#[derive(Clone, Default)]
pub struct Bell {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    armed: AtomicBool,
    rung: Mutex<bool>,
    heard: Condvar,
}

impl Bell {
    /// A bell that nobody listens to yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Wakes the listener if he sleeps or is about to. Call it after the finished work can be seen.
    #[inline]
    pub fn ring(&self) {
        // Either the listener's look comes after what was published, or this load after his arming.
        fence(Ordering::SeqCst);
        if self.inner.armed.load(Ordering::Relaxed) {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        *self.inner.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.inner.heard.notify_all();
    }

    /// Sleeps until the bell is rung or the time is over, unless `look`, which is called once the
    /// bell is armed, finds something.
    pub(crate) fn listen(&self, most: Duration, look: impl FnOnce() -> bool) {
        self.inner.armed.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if !look() {
            let rung = self.inner.rung.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = self.inner.heard.wait_timeout_while(rung, most, |rung| !*rung);
        }
        self.inner.armed.store(false, Ordering::Relaxed);
        *self.inner.rung.lock().unwrap_or_else(PoisonError::into_inner) = false;
    }
}
