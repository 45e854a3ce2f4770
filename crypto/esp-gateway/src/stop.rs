//! The end of the threads: asked for once, heard by each.

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A wish that threads end.
#[derive(Clone)]
pub struct Stop(Arc<Inner>);

struct Inner {
    /// It can be read once an end is asked for.
    event: OwnedFd,
    is_asked: AtomicBool,
}

/// Why a wait is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// There may be something to do.
    Woken,
    /// It is to end.
    Stopped,
}

impl Stop {
    /// One that is not asked for yet.
    ///
    /// # Errors
    /// The system's.
    pub fn new() -> io::Result<Stop> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Stop(Arc::new(Inner { event, is_asked: AtomicBool::new(false) })))
    }

    /// Asks for the end.
    pub fn ask(&self) {
        self.0.is_asked.store(true, Ordering::Release);
        // It has room for the one that is ever written.
        let _ = rustix::io::write(&self.0.event, &1_u64.to_ne_bytes());
    }

    /// Whether it is asked for.
    pub fn is_asked(&self) -> bool {
        self.0.is_asked.load(Ordering::Relaxed)
    }

    /// Waits until one of these can be read, the time is over, or the end is asked for.
    pub fn wait(&self, files: &[&dyn AsFd], most: Option<Duration>) -> Waited {
        let files: Vec<BorrowedFd<'_>> = files.iter().map(|it| it.as_fd()).collect();
        let event = self.0.event.as_fd();
        let all = [&event].into_iter().chain(&files);
        let mut all: Vec<_> = all.map(|it| PollFd::new(it, PollFlags::IN)).collect();
        let most = most.and_then(|most| Timespec::try_from(most).ok());
        // A signal is one more reason to look.
        let _ = poll(&mut all, most.as_ref());
        if self.is_asked() { Waited::Stopped } else { Waited::Woken }
    }
}

impl AsFd for Stop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.event.as_fd()
    }
}
