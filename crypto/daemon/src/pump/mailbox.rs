//! How a sleeping pump learns of commands and of slow work that is done.

use keyway_engine::Task;
use keyway_lock::Unpoisoned;
use keyway_ring::descriptor::Completion;
use keyway_ring::{Alarm, Armed};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};

/// The outcome of a slow request.
pub struct Finished {
    /// Its place among those that the pump has under way.
    pub place: usize,
    pub answer: Completion,
    /// The request, if the pump had loaded it.
    pub task: Option<Box<Task>>,
}

pub struct Mailbox {
    pub bell: Alarm,
    pub asleep: AtomicU32,
    /// Whether there are commands.
    pub any: AtomicBool,
    pub ended: AtomicBool,
    /// Whether another daemon serves the clients from now on.
    pub handed_over: AtomicBool,
    /// Slow requests that are done, and whether there are any.
    finished: Mutex<Vec<Finished>>,
    any_finished: AtomicBool,
    memory: Mutex<Memory>,
    memory_changed: Condvar,
}

/// The writers to the memory of a pump's clients.
#[derive(Default)]
struct Memory {
    /// Threads of the slow class that put results there now.
    writers: usize,
    /// It may be another daemon's to write to.
    closed: bool,
    /// And it is so for good.
    gone: bool,
}

/// Leave to put a result into a client's memory, until it is dropped.
pub struct Writing(Arc<Mailbox>);

impl Drop for Writing {
    fn drop(&mut self) {
        self.0.memory.lock().unpoisoned().writers -= 1;
        self.0.memory_changed.notify_all();
    }
}

impl Mailbox {
    pub fn new() -> io::Result<Self> {
        Ok(Mailbox {
            bell: Alarm::new()?,
            asleep: AtomicU32::new(0),
            any: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            handed_over: AtomicBool::new(false),
            finished: Mutex::default(),
            any_finished: AtomicBool::new(false),
            memory: Mutex::default(),
            memory_changed: Condvar::new(),
        })
    }

    pub fn wake(&self) {
        if Armed(&self.asleep).take() {
            self.bell.ring();
        }
    }

    /// Leave to put a result into a client's memory. It waits while the pump is frozen: another daemon may do the
    /// request again. `None` if that has taken over, or the pump has ended.
    pub fn write(self: &Arc<Self>) -> Option<Writing> {
        let memory = self.memory.lock().unpoisoned();
        let waits = |memory: &mut Memory| memory.closed && !memory.gone;
        let waited = self.memory_changed.wait_while(memory, waits);
        let mut memory = waited.unpoisoned();
        if memory.gone {
            return None;
        }
        memory.writers += 1;
        Some(Writing(self.clone()))
    }

    /// From now on no thread writes there. Waits for threads that are writing, each for one request
    /// at most.
    pub fn close_memory(&self) {
        let mut memory = self.memory.lock().unpoisoned();
        memory.closed = true;
        let writes = |memory: &mut Memory| memory.writers > 0;
        drop(self.memory_changed.wait_while(memory, writes));
    }

    /// It is this daemon's again.
    pub fn open_memory(&self) {
        self.memory.lock().unpoisoned().closed = false;
        self.memory_changed.notify_all();
    }

    /// The pump has ended.
    pub fn leave_memory(&self) {
        self.memory.lock().unpoisoned().gone = true;
        self.memory_changed.notify_all();
    }

    /// A slow request is done: its pump hears of it, asleep or not.
    pub fn finished(&self, finished: Finished) {
        self.finished.lock().unpoisoned().push(finished);
        self.any_finished.store(true, Ordering::Release);
        self.wake();
    }

    /// Whether [`Mailbox::take_finished`] would find any.
    #[inline]
    pub fn has_finished(&self) -> bool {
        self.any_finished.load(Ordering::Acquire)
    }

    /// Takes those that are done.
    pub fn take_finished(&self) -> Vec<Finished> {
        self.any_finished.store(false, Ordering::Release);
        std::mem::take(&mut *self.finished.lock().unpoisoned())
    }
}
