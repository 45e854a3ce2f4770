//! Devices and sockets in network namespaces of their own. That takes root, and `ip`.

mod namespace;
mod sockets;
mod tun;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use std::os::fd::AsFd;

/// Waits until there is something to read.
///
/// # Panics
/// If nothing comes.
pub fn wait(file: &impl AsFd) {
    let timeout = Timespec { tv_sec: 20, tv_nsec: 0 };
    let ready = loop {
        match rustix::event::poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&timeout)) {
            Err(Errno::INTR) => {}
            ready => break ready,
        }
    };
    assert_eq!(ready, Ok(1), "nothing came in 20 seconds");
}
