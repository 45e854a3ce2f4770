//! The registers of a virtual machine's device.

use crate::SharedMemory;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;

/// How many bytes they are.
const BYTES: usize = 256;
/// The register that rings: the peer in its upper half, and which of the peer's bells below.
const RING: usize = 12;

/// The registers of a device, mapped. Used by all threads at once.
#[derive(Debug)]
pub struct Registers {
    memory: SharedMemory,
    file: OwnedFd,
}

impl Registers {
    /// Those that a file of the system's shows.
    ///
    /// # Errors
    /// The system's.
    pub fn map(file: OwnedFd) -> io::Result<Registers> {
        Ok(Registers { memory: SharedMemory::of_device(&file, BYTES)?, file })
    }

    /// Rings the first bell of a peer.
    pub fn ring(&self, peer: u32) {
        if let Some(register) = self.memory.flag(RING) {
            register.store(peer << 16, Ordering::Release);
        }
    }
}

impl AsFd for Registers {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
