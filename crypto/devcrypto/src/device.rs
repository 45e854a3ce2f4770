//! What a program has of the device: one end of a pipe, as a descriptor, and the sessions that belong to it.
//!
//! A pipe has an identity of its own, which all copies of a descriptor share, in this process and in those that are
//! forked from it. Its other end, which is kept here, hangs up when the last copy is closed, in whatever way that was
//! done.

use crate::abi::Descriptor;
use crate::daemon;
use crate::limits::SESSIONS_MAX;
use crate::session::Session;
use keyway_client::{Kept, Whole, above_standard};
use once_cell::race::OnceBox;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, dup, fcntl_dupfd_cloexec};
use rustix::pipe::{PipeFlags, pipe_with};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::{CStr, c_int};
use std::io;
use std::os::fd::{IntoRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The device.
pub const PATH: &CStr = c"/dev/crypto";

/// A pipe, by its file system and its number there.
pub type Identity = (u64, u64);

/// What was opened.
#[derive(Debug)]
pub struct Device {
    /// The end of the pipe that the program does not have.
    other: Kept<OwnedFd>,
    sessions: Whole<HashMap<u32, Arc<Session>>>,
}

type Devices = HashMap<Identity, Arc<Device>>;

static DEVICES: OnceBox<Whole<Devices>> = OnceBox::new();
/// The session that was opened last, of all devices: none has the number of another device's.
static LAST: AtomicU32 = AtomicU32::new(0);

/// Opens the device, if there is a daemon.
pub fn open(flags: c_int) -> Result<c_int, Errno> {
    daemon::client().reach().map_err(|why| daemon::not_opened(&why))?;
    let devices = DEVICES.get_or_init(|| Box::new(Whole::new(Devices::new())));
    // A program may have closed some without `close`.
    let known: Vec<_> = devices.read(|all| all.keys().copied().collect());
    known.into_iter().for_each(release);
    let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC)?;
    let stat = rustix::fs::fstat(&ours)?;
    // Ours goes to another place, so that the program gets the lowest number, as from any `open`.
    let other = fcntl_dupfd_cloexec(&ours, 3).map_err(io::Error::from).and_then(above_standard);
    let other = other
        .and_then(Kept::new)
        .map_err(|why| Errno::from_io_error(&why).unwrap_or(Errno::MFILE))?;
    drop(ours);
    let descriptor = match flags & libc::O_CLOEXEC {
        0 => dup(&theirs)?,
        _ => fcntl_dupfd_cloexec(&theirs, 0)?,
    };
    let device = Device { other, sessions: Whole::new(HashMap::new()) };
    devices.change().insert((stat.st_dev, stat.st_ino), Arc::new(device));
    // A program that changes its root has children that connect anew. Not before the program has its number.
    daemon::client().prepare();
    Ok(descriptor.into_raw_fd())
}

/// The device that a descriptor is of.
pub fn find(descriptor: Descriptor) -> Option<Arc<Device>> {
    let devices = DEVICES.get()?;
    let identity = descriptor.pipe()?;
    devices.read(|all| all.get(&identity).cloned())
}

/// Whether the program has ever opened one.
pub fn are_there() -> bool {
    DEVICES.get().is_some()
}

/// Whether a pipe is a device's.
pub fn is_one(identity: Identity) -> bool {
    DEVICES.get().is_some_and(|devices| devices.read(|all| all.contains_key(&identity)))
}

/// Ends the sessions of a device if its last descriptor has been closed.
pub fn release(identity: Identity) {
    let Some(devices) = DEVICES.get() else { return };
    let device = devices.read(|all| all.get(&identity).cloned());
    if device.is_none_or(|device| !device.is_closed()) {
        return;
    }
    let closed = devices.change().remove(&identity);
    // What follows waits for requests that are under way.
    if let Some(device) = closed {
        let sessions = std::mem::take(&mut *device.sessions.change());
        sessions.into_values().for_each(|session| session.close());
    }
}

impl Device {
    /// Whether no descriptor of it is left, in any process. Not known if the program has closed the other end, too.
    fn is_closed(&self) -> bool {
        let Some(other) = self.other.get() else { return false };
        let mut events = [PollFd::new(other, PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut events, Some(&now)), Ok(1..))
            && events[0].revents().contains(PollFlags::HUP)
    }

    /// Adds a session, and gives its number.
    pub fn add(&self, session: Session) -> Result<u32, Errno> {
        let mut sessions = self.sessions.change();
        if sessions.len() >= SESSIONS_MAX {
            drop(sessions);
            session.close();
            daemon::say(format_args!(
                "a device that was opened has no more sessions than {SESSIONS_MAX}"
            ));
            return Err(Errno::NOMEM);
        }
        loop {
            let number = LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
            if let Entry::Vacant(place) = sessions.entry(number) {
                place.insert(Arc::new(session));
                return Ok(number);
            }
        }
    }

    /// The session of a number.
    pub fn session(&self, number: u32) -> Option<Arc<Session>> {
        self.sessions.read(|all| all.get(&number).cloned())
    }

    /// Takes a session out.
    pub fn remove(&self, number: u32) -> Option<Arc<Session>> {
        self.sessions.change().remove(&number)
    }
}
