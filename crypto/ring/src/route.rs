//! A client's way to its daemon: a socket, or the device of a virtual machine.

use crate::control::Answer;
use crate::descriptor::RegionHandle;
use crate::device::Slot;
use crate::limits::REGION_BYTES_MAX;
use crate::{DEVICES, Device, Doorbell, Received, RingMemory, SharedMemory, Socket};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::Shutdown;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

/// Where cryptod listens if nothing else is said.
pub const DEFAULT_SOCKET: &str = "/run/keyway/cryptod.socket";

/// The way that messages take. One at a time is said, and its answer waited for.
#[derive(Debug)]
pub enum Route {
    /// To a daemon of this system.
    Socket(Socket),
    /// To that of the host of this virtual machine.
    Slot(Slot),
}

impl Route {
    /// Whether a path names a device, or [`DEVICES`], and not a socket.
    pub fn is_device(path: &Path) -> bool {
        path == Path::new(DEVICES) || path.join("resource2").exists()
    }

    /// Connects to a daemon: at its socket; or by a device, whose folder in sysfs the path is, or [`DEVICES`] for the
    /// first that is one. Where no socket is at [`DEFAULT_SOCKET`], a device is looked for.
    ///
    /// # Errors
    /// The system's.
    pub fn connect(path: &Path) -> io::Result<Route> {
        if Route::is_device(path) {
            let is_any = path == Path::new(DEVICES);
            return Route::by(if is_any { Device::find() } else { Device::open(path) });
        }
        match Socket::connect(path) {
            Err(why)
                if why.kind() == io::ErrorKind::NotFound && path == Path::new(DEFAULT_SOCKET) =>
            {
                match Device::find() {
                    // There is none: the socket is what is missing.
                    Err(none) if none.kind() == io::ErrorKind::NotFound => Err(why),
                    device => Route::by(device),
                }
            }
            socket => Ok(Route::Socket(socket?)),
        }
    }

    fn by(device: io::Result<std::sync::Arc<Device>>) -> io::Result<Route> {
        Ok(Route::Slot(Slot::take(device?)?))
    }

    /// Says a message, and waits for its answer for so long. `None` at the end of the connection.
    ///
    /// # Errors
    /// The system's; `TimedOut` if no answer comes.
    pub fn ask(&self, message: &[u8], most: Duration) -> io::Result<Option<Received>> {
        let socket = match self {
            Route::Socket(socket) => socket,
            Route::Slot(slot) => return slot.ask(message, most),
        };
        for direction in [Timeout::Recv, Timeout::Send] {
            set_socket_timeout(socket, direction, Some(most))?;
        }
        match socket.send(message, &[]) {
            // It has said why before it hung up.
            Err(why) if why.kind() != io::ErrorKind::BrokenPipe => Err(why),
            _ => socket.receive(),
        }
        .map_err(|why| match why.kind() {
            io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
            _ => why,
        })
    }

    /// Says what has no answer.
    ///
    /// # Errors
    /// The system's.
    pub fn tell(&self, message: &[u8], most: Duration) -> io::Result<()> {
        match self {
            Route::Socket(socket) => socket.send(message, &[]),
            Route::Slot(slot) => slot.tell(message, most),
        }
    }

    /// Whether the daemon has ended the connection.
    pub fn has_hung_up(&self) -> bool {
        match self {
            Route::Socket(socket) => {
                let mut events = [PollFd::new(socket, PollFlags::RDHUP)];
                let now = Timespec { tv_sec: 0, tv_nsec: 0 };
                matches!(rustix::event::poll(&mut events, Some(&now)), Ok(1..))
            }
            Route::Slot(slot) => slot.device().is_over(),
        }
    }

    /// Ends the connection: threads that wait for it see that.
    pub fn end(&self) {
        if let Route::Socket(socket) = self {
            let _ = rustix::net::shutdown(socket, Shutdown::Both);
        }
    }

    /// The queue pair that an answer brings, with its number and its doorbell. `None` if it brings none that can be used.
    pub fn queue_pair(
        &self,
        answer: &Answer,
        files: Vec<OwnedFd>,
    ) -> Option<(u32, RingMemory, Doorbell)> {
        match (self, answer) {
            (Route::Socket(_), Answer::Queue { queue, entries }) => {
                let mut files = files.into_iter();
                let (ring, bell) = (files.next()?, files.next()?);
                Some((*queue, RingMemory::adopt(ring, *entries).ok()?, Doorbell::from_fd(bell)))
            }
            (Route::Slot(slot), Answer::QueueAt { queue, entries, at, bytes, bell }) => {
                let memory = slot.device().part(*at, *bytes)?;
                let memory = RingMemory::of(memory, *entries).ok()?;
                Some((*queue, memory, slot.device().doorbell(*bell)))
            }
            _ => None,
        }
    }

    /// The region that an answer brings, and its handle. `None` if it brings none that can be used.
    pub fn region(
        &self,
        answer: &Answer,
        files: Vec<OwnedFd>,
    ) -> Option<(SharedMemory, RegionHandle)> {
        match (self, answer) {
            (Route::Socket(_), Answer::Region { region }) => {
                let file = files.into_iter().next()?;
                Some((SharedMemory::adopt(file, REGION_BYTES_MAX).ok()?, *region))
            }
            (Route::Slot(slot), Answer::RegionAt { region, at, bytes }) => {
                Some((slot.device().part(*at, *bytes)?, *region))
            }
            _ => None,
        }
    }
}

impl AsFd for Route {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Route::Socket(socket) => socket.as_fd(),
            Route::Slot(slot) => slot.device().as_fd(),
        }
    }
}
