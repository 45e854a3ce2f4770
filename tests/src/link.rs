//! A wire between two network devices, with a rule on what each end gets: all, or less, more, otherwise.

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::{Errno, read, write};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// More than any frame has, in bytes.
const FRAME_MAX: usize = 65536 + 64;

/// Turns a frame into those that the other end gets.
pub type Rule = Box<dyn FnMut(Vec<u8>) -> Vec<Vec<u8>> + Send>;

/// An end of the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The first that it was made of.
    Left,
    /// The second.
    Right,
}

/// The wire. It is cut when this is dropped.
pub struct Link {
    ends: [Arc<OwnedFd>; 2],
    /// By the end that gets what they return.
    rules: [Arc<Mutex<Rule>>; 2],
    stop: Arc<OwnedFd>,
    threads: Vec<JoinHandle<()>>,
}

impl Link {
    /// Makes one between two files of which a read or write is a frame. It lets all pass.
    ///
    /// # Panics
    /// If the system has no file for it.
    #[must_use]
    pub fn new(left: OwnedFd, right: OwnedFd) -> Link {
        let ends = [Arc::new(left), Arc::new(right)];
        let rules = [all(), all()].map(|rule| Arc::new(Mutex::new(rule)));
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).expect("an eventfd"));
        let threads = [(0, 1), (1, 0)].map(|(from, to)| {
            let (source, target): (Arc<OwnedFd>, Arc<OwnedFd>) =
                (ends[from].clone(), ends[to].clone());
            let (rule, stop) = (rules[to].clone(), stop.clone());
            thread::spawn(move || carry(&source, &target, &rule, &stop))
        });
        Link { ends, rules, stop, threads: threads.into() }
    }

    /// From now on a rule says what an end gets. When this returns, the one before has had its last frame.
    pub fn rule(&self, to: End, rule: impl FnMut(Vec<u8>) -> Vec<Vec<u8>> + Send + 'static) {
        *self.rules[to as usize].lock().unwrap_or_else(PoisonError::into_inner) = Box::new(rule);
    }

    /// From now on an end gets all.
    pub fn pass(&self, to: End) {
        self.rule(to, all());
    }

    /// Gives an end a frame that the other has not sent.
    ///
    /// # Panics
    /// If that end has gone.
    #[track_caller]
    pub fn send(&self, to: End, frame: &[u8]) {
        write(&self.ends[to as usize], frame).expect("the other end");
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        write(&self.stop, &1u64.to_ne_bytes()).expect("an eventfd");
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn all() -> Rule {
    Box::new(|frame| vec![frame])
}

/// Carries frames until an end goes, or it is told to stop.
fn carry(source: &OwnedFd, target: &OwnedFd, rule: &Mutex<Rule>, stop: &OwnedFd) {
    let mut frame = vec![0; FRAME_MAX];
    loop {
        let mut both = [PollFd::new(source, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
        match poll(&mut both, None) {
            Err(Errno::INTR) => continue,
            Err(_) => return,
            Ok(_) if !both[1].revents().is_empty() => return,
            Ok(_) => {}
        }
        let bytes = match read(source, &mut frame) {
            Err(Errno::INTR | Errno::AGAIN) => continue,
            Err(_) | Ok(0) => return,
            Ok(bytes) => bytes,
        };
        // A frame at a time, so that a rule that is replaced has had its last one.
        let mut rule = rule.lock().unwrap_or_else(PoisonError::into_inner);
        for frame in rule(frame[..bytes].to_vec()) {
            // An end that is down or full takes none: so it is on a wire.
            let _ = write(target, &frame);
        }
    }
}
