//! An event of the front end's, which is written to: an eventfd, or a pipe of User-Mode Linux.

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::OFlags;
use std::os::fd::OwnedFd;

/// The event.
#[derive(Debug)]
pub(crate) struct Notifier(OwnedFd);

impl Notifier {
    /// The flag that a write does not wait is the open file's, and so the front end's too: it may take it away again.
    pub fn new(file: OwnedFd) -> Notifier {
        if let Ok(flags) = rustix::fs::fcntl_getfl(&file) {
            let _ = rustix::fs::fcntl_setfl(&file, flags | OFlags::NONBLOCK);
        }
        Notifier(file)
    }

    /// Signals it. One that is full is signalled already, and its reader has not looked yet. So the write is left out,
    /// and waits for no reader, unless a front end fills a blocking event between the look and the write. It then stops
    /// its own device.
    pub fn notify(&self) {
        let mut polled = [PollFd::new(&self.0, PollFlags::OUT)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let ready = rustix::event::poll(&mut polled, Some(&now));
        if ready == Ok(1) && polled[0].revents().contains(PollFlags::OUT) {
            let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::EventfdFlags;

    #[test]
    fn a_full_event_is_left_as_it_is() {
        let event = rustix::event::eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        let full = u64::MAX - 1;
        rustix::io::write(&event, &full.to_ne_bytes()).unwrap();
        let notifier = Notifier::new(rustix::io::dup(&event).unwrap());
        // The front end lets it block again.
        rustix::fs::fcntl_setfl(&event, OFlags::empty()).unwrap();
        notifier.notify();
        let mut count = [0; 8];
        rustix::io::read(&event, &mut count).unwrap();
        assert_eq!(u64::from_ne_bytes(count), full);
        notifier.notify();
        rustix::io::read(&event, &mut count).unwrap();
        assert_eq!(u64::from_ne_bytes(count), 1);
    }
}
