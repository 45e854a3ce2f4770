//! The memory of a virtual machine, and the bells that it rings.

use crate::limits::{MACHINE_BELLS, MACHINE_BYTES};
use keyway_lock::Unpoisoned;
use keyway_ring::mailbox::MAILBOX_BYTES;
use keyway_ring::{Arena, Doorbell, SharedMemory};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex};

/// What a machine's hypervisor has from the daemon. Used by all threads at once.
#[derive(Debug)]
pub struct Room {
    /// The memory, shared out behind the mailbox.
    pub arena: Arc<Arena>,
    /// That of the mailbox, and those of queue pairs. Their number is fixed, since a hypervisor may not survive it when a
    /// peer that has gone comes back.
    pub bells: Vec<Doorbell>,
    /// Those of queue pairs that no pair has, by their places.
    free: Mutex<Vec<usize>>,
}

impl Room {
    /// A fresh one.
    ///
    /// # Errors
    /// The system's.
    pub fn new() -> io::Result<Arc<Room>> {
        let memory = Arc::new(SharedMemory::create(MACHINE_BYTES)?);
        let bells = (0..=MACHINE_BELLS).map(|_| Doorbell::new()).collect::<io::Result<_>>()?;
        Ok(Room::of(memory, bells))
    }

    /// One that another daemon has made.
    pub fn of(memory: Arc<SharedMemory>, bells: Vec<Doorbell>) -> Arc<Room> {
        let free = Mutex::new((1..bells.len()).rev().collect());
        Arc::new(Room { arena: Arena::new(memory, MAILBOX_BYTES), bells, free })
    }

    /// The peer of the hypervisor's that rings a bell: 0 is the hypervisor itself.
    pub fn peer(place: usize) -> u32 {
        place as u32 + 1
    }

    /// A bell that no queue pair has. `None` if there is none.
    pub fn bell(self: &Arc<Self>) -> Option<Bell> {
        let place = self.free.lock().unpoisoned().pop()?;
        Some(Bell { room: self.clone(), place })
    }

    /// The bell of a queue pair that another daemon has made. `None` if a pair has it.
    pub fn bell_of(self: &Arc<Self>, peer: u32) -> Option<Bell> {
        let mut free = self.free.lock().unpoisoned();
        let at = free.iter().position(|place| Room::peer(*place) == peer)?;
        Some(Bell { room: self.clone(), place: free.swap_remove(at) })
    }
}

/// A bell as long as a queue pair has it.
#[derive(Debug)]
pub struct Bell {
    room: Arc<Room>,
    place: usize,
}

impl Bell {
    /// The hypervisor's peer that rings it.
    pub fn peer(&self) -> u32 {
        Room::peer(self.place)
    }

    /// The bell itself once more.
    ///
    /// # Errors
    /// The system's.
    pub fn file(&self) -> io::Result<OwnedFd> {
        let bell = self.room.bells.get(self.place).ok_or(io::ErrorKind::NotFound)?;
        bell.as_fd().try_clone_to_owned()
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        self.room.free.lock().unpoisoned().push(self.place);
    }
}
