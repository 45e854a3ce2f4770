//! The link to the process that is a virtual machine's vhost-user device: a client of the daemon's, which gets its
//! connection by the link, since it is to be known as the machine and not as the daemon's own user.

use super::thread::{Door, Newcomer, caller};
use crate::vital::vital;
use keyway_ring::{Alarm, Socket};
use rustix::event::{PollFd, PollFlags, poll};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// The control thread's handle on a device. When it is dropped, so is the link, and with it the process ends.
pub struct Device {
    pub name: String,
    end: Arc<(AtomicBool, Alarm)>,
    thread: Option<JoinHandle<OwnedFd>>,
}

impl Device {
    /// Gives the device of a machine by this name, the so-manyth of the daemon's, a connection as often as it asks.
    ///
    /// # Errors
    /// The system's.
    pub fn start(name: &str, number: usize, link: OwnedFd, door: Door) -> io::Result<Device> {
        let end = Arc::new((AtomicBool::new(false), Alarm::new()?));
        let (its_end, its_name, link) = (end.clone(), name.to_owned(), Socket::from_fd(link));
        let thread = thread::Builder::new().name(format!("device-{number}"));
        let thread = thread.spawn(move || {
            vital(|| serve(&its_name, number, &link, &its_end, &door));
            link.into()
        })?;
        Ok(Device { name: name.to_owned(), end, thread: Some(thread) })
    }

    /// Stops its thread, and gives the link, to be handed over or served again.
    pub fn stop(mut self) -> Option<OwnedFd> {
        self.end()
    }

    fn end(&mut self) -> Option<OwnedFd> {
        let thread = self.thread.take()?;
        self.end.0.store(true, Ordering::Release);
        self.end.1.ring();
        thread.join().ok()
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.end();
    }
}

fn serve(name: &str, number: usize, link: &Socket, end: &(AtomicBool, Alarm), door: &Door) {
    let mut events = [PollFd::new(&end.1, PollFlags::IN), PollFd::new(link, PollFlags::IN)];
    while !end.0.load(Ordering::Acquire) {
        if poll(&mut events, None).is_err() || events[1].revents().is_empty() {
            continue;
        }
        let given = match link.try_receive_plain() {
            Ok(Some(_)) => give(name, number, link, door),
            Err(why) if why.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Ok(None) => Err(io::ErrorKind::UnexpectedEof.into()),
            Err(why) => Err(why),
        };
        if let Err(why) = given {
            (door.report)(&format!(
                "virtual machine {name}: its vhost-user device has ended, and comes back with the daemon: {why}"
            ));
            // Nothing more comes over it.
            events[1] = PollFd::new(&end.1, PollFlags::IN);
        }
    }
}

/// Gives the device another connection.
fn give(name: &str, number: usize, link: &Socket, door: &Door) -> io::Result<()> {
    let (socket, its) = Socket::pair()?;
    let caller = caller(name, number, std::process::id());
    let gone = |_| io::Error::from(io::ErrorKind::NotConnected);
    door.newcomers.send(Newcomer { socket, caller, room: None }).map_err(gone)?;
    door.alarm.ring();
    link.try_send(b"connection", &[its.as_fd()])
}
