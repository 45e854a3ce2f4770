//! The thread that builds indexes in the background.

use keyway_lock::Unpoisoned;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// The thread that builds in the background, until the directory goes.
#[derive(Default)]
pub(crate) struct Builder {
    pub thread: Mutex<Option<JoinHandle<()>>>,
    /// Whether it is to end.
    pub stop: Arc<AtomicBool>,
}

impl Builder {
    /// Ends the work between two pieces.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.lock().unpoisoned().take();
        if let Some(thread) = thread {
            thread.thread().unpark();
            // A panic was a fault of the thread's own, and it is over.
            let _ = thread.join();
        }
    }
}

impl Drop for Builder {
    fn drop(&mut self) {
        self.stop();
    }
}
