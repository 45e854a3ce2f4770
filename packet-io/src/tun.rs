//! A TUN device: made, addressed and routed; and its queues.

use crate::error::Error;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// What a device is to be.
#[derive(Clone, Debug)]
pub struct TunOptions {
    /// Its name, of 1 to 15 bytes.
    pub name: String,
    /// Its queues, 1 or more. The kernel keeps the packets of a flow in one queue.
    pub queues: usize,
    /// The longest packet, in bytes.
    pub mtu: u32,
    /// Its addresses with the lengths of their prefixes in bits.
    pub addresses: Vec<(IpAddr, u8)>,
}

/// A device, to change it. The device goes when its last queue is dropped.
#[derive(Debug)]
pub struct Tun {
    name: String,
}

/// A queue of a device, one thread's: packets are read and written here.
#[derive(Debug)]
pub struct TunQueue {
    file: OwnedFd,
}

/// What a flush wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Packets that the kernel took, each counted by itself although it was joined to others.
    pub packets: u64,
    /// Packets that the kernel refused: the device is down, the packet is not one, or memory is short.
    pub dropped: u64,
}

/// Makes a device: addresses, MTU, up.
///
/// # Errors
/// The device is there already, a name, an address or an MTU is not one, or the process has no `CAP_NET_ADMIN`.
pub fn open(options: &TunOptions) -> Result<(Tun, Vec<TunQueue>), Error> {
    Err(Error::new(
        format!("opening the TUN device {}", options.name),
        io::Error::from(io::ErrorKind::Unsupported),
    ))
}

impl Tun {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sets the longest packet, in bytes.
    ///
    /// # Errors
    /// The kernel refuses: below 68 bytes (1,280 with IPv6) or above 65,535.
    pub fn set_mtu(&self, _mtu: u32) -> Result<(), Error> {
        Ok(())
    }

    /// Has packets to this prefix go into the device. One that goes there already is fine.
    ///
    /// # Errors
    /// There is a route of this prefix elsewhere, or the kernel refuses.
    pub fn add_route(&self, _to: IpAddr, _length: u8) -> Result<(), Error> {
        Ok(())
    }

    /// Takes such a route away. One that is gone already is fine.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn remove_route(&self, _to: IpAddr, _length: u8) -> Result<(), Error> {
        Ok(())
    }
}

impl TunQueue {
    /// A second end of this queue, for a second thread: one reads, the other writes.
    ///
    /// # Errors
    /// The process has no descriptor left.
    pub fn try_clone(&self) -> io::Result<TunQueue> {
        Ok(TunQueue { file: self.file.try_clone()? })
    }

    /// One read, which does not wait: cuts what the kernel handed over as one (up to 64 KiB of a TCP or UDP flow),
    /// finishes checksums, and calls `each` with whole IP packets. The count of them; 0 where nothing is there.
    ///
    /// # Errors
    /// The device is gone.
    pub fn receive(&mut self, _each: impl FnMut(&[u8])) -> io::Result<usize> {
        Ok(0)
    }

    /// Takes a packet to be written. It is joined to those before it where the kernel's own GRO would do so.
    pub fn push(&mut self, _packet: &[u8]) {}

    /// Writes what is left, and says what became of all packets since the last flush.
    pub fn flush(&mut self) -> Written {
        Written::default()
    }
}

impl AsFd for TunQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
