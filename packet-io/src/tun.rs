//! A TUN device: made, addressed and routed; and its queues.

use crate::coalesce::Coalescer;
use crate::error::Error;
use crate::limits::{PACKET_BYTES_MAX, QUEUE_PACKETS_MAX};
use crate::netlink::Netlink;
use crate::split::split;
use crate::system;
use crate::virtio::VIRTIO_HEADER_BYTES;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::io::{self, ErrorKind, IoSlice};
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// What a device is to be.
#[derive(Clone, Debug)]
pub struct TunOptions {
    /// Its name, of 1 to 15 bytes.
    pub name: String,
    /// Its queues, 1 to 256. The kernel keeps the packets of a flow in one queue.
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
    index: u32,
    netlink: Netlink,
}

/// A queue of a device, one thread's: packets are read and written here.
#[derive(Debug)]
pub struct TunQueue {
    file: OwnedFd,
    joins_udp: bool,
    /// A virtio header and a packet. Made by the first reading.
    frame: Vec<u8>,
    coalescer: Coalescer,
    written: Written,
    malformed: u64,
}

/// What a flush wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Packets that the kernel took, each counted by itself although it was joined to others.
    pub packets: u64,
    /// Packets that the kernel refused: the device is down, the packet is not one, or memory is short.
    pub dropped: u64,
}

const PATH: &str = "/dev/net/tun";
/// Checksums, and TCP packets to be cut, also such with ECN.
const OFFLOADS: u32 = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
/// UDP packets to be cut (Linux 6.2).
const UDP_OFFLOADS: u32 = libc::TUN_F_USO4 | libc::TUN_F_USO6;
/// Most queues of a device: the kernel's `MAX_TAP_QUEUES`.
const QUEUES_MAX: usize = 256;

/// Makes a device: addresses, MTU, up.
///
/// # Errors
/// The device is there already, a name, an address, an MTU or a count of queues is not one, or the process has no
/// `CAP_NET_ADMIN`.
pub fn open(options: &TunOptions) -> Result<(Tun, Vec<TunQueue>), Error> {
    let name = &options.name;
    let failed = |why: io::Error| {
        let advice = match why.kind() {
            ErrorKind::PermissionDenied => ": it takes CAP_NET_ADMIN",
            ErrorKind::NotFound => ": the kernel has no TUN driver (modprobe tun)",
            ErrorKind::ResourceBusy => {
                ": there is a device of that name; another program has it, or remove it (ip link delete)"
            }
            ErrorKind::InvalidInput => ": a name has 1 to 15 bytes, without / and spaces",
            _ => "",
        };
        Error::new(format!("opening the TUN device {name}"), why, advice)
    };
    if !(1..=QUEUES_MAX).contains(&options.queues) {
        let why = io::Error::from(ErrorKind::InvalidInput);
        let what = format!("opening the TUN device {name} with {} queues", options.queues);
        return Err(Error::new(what, why, ": it has 1 to 256"));
    }
    let mut queues = Vec::with_capacity(options.queues);
    for index in 0..options.queues {
        // The first makes the device: that of another program is not joined.
        let exclusive = if index == 0 { libc::IFF_TUN_EXCL } else { 0 };
        queues.push(TunQueue::open(name, exclusive).map_err(failed)?);
    }
    let mut tun = Tun {
        name: name.clone(),
        index: index(name).map_err(failed)?,
        netlink: Netlink::open().map_err(failed)?,
    };
    tun.netlink.set_queue_length(tun.index, QUEUE_PACKETS_MAX).map_err(failed)?;
    tun.set_mtu(options.mtu)?;
    for &(address, prefix) in &options.addresses {
        let added = tun.netlink.add_address(tun.index, address, prefix);
        added.map_err(|why| {
            let advice = match address {
                IpAddr::V6(_) if why.kind() == ErrorKind::PermissionDenied => {
                    ": is IPv6 off (sysctl net.ipv6.conf.all.disable_ipv6)?"
                }
                _ => "",
            };
            Error::new(
                format!("giving the device {name} the address {address}/{prefix}"),
                why,
                advice,
            )
        })?;
    }
    let up = tun.netlink.set_up(tun.index);
    up.map_err(|why| Error::new(format!("setting the device {name} up"), why, ""))?;
    Ok((tun, queues))
}

/// The number of the interface of this name.
fn index(name: &str) -> io::Result<u32> {
    let socket = rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    Ok(rustix::net::netdevice::name_to_index(&socket, name)?)
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
    /// The kernel refuses: below 68 bytes or above 65,535. Below 1,280, a device loses its IPv6 addresses.
    pub fn set_mtu(&mut self, mtu: u32) -> Result<(), Error> {
        let set = self.netlink.set_mtu(self.index, mtu);
        set.map_err(|why| Error::new(format!("setting the MTU of {} to {mtu}", self.name), why, ""))
    }

    /// Has packets to this prefix go into the device. One that goes there already is fine. Bits behind the prefix are not
    /// looked at.
    ///
    /// # Errors
    /// There is a route of this prefix to elsewhere, or the kernel refuses.
    pub fn add_route(&mut self, to: IpAddr, prefix: u8) -> Result<(), Error> {
        self.netlink.add_route(self.index, to, prefix).map_err(|why| {
            let advice = match why.kind() {
                ErrorKind::AlreadyExists => ": it leads elsewhere; remove that route first",
                _ => "",
            };
            Error::new(format!("adding the route {to}/{prefix} to {}", self.name), why, advice)
        })
    }

    /// Takes such a route away. One that is gone already is fine.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn remove_route(&mut self, to: IpAddr, prefix: u8) -> Result<(), Error> {
        let removed = self.netlink.remove_route(self.index, to, prefix);
        removed.map_err(|why| {
            Error::new(format!("removing the route {to}/{prefix} of {}", self.name), why, "")
        })
    }
}

impl TunQueue {
    fn open(name: &str, exclusive: libc::c_int) -> io::Result<TunQueue> {
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::open(PATH, flags, Mode::empty())?;
        let kind = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR | libc::IFF_MULTI_QUEUE;
        system::attach(&file, name, kind | exclusive)?;
        let joins_udp = match system::set_offloads(&file, OFFLOADS | UDP_OFFLOADS) {
            Ok(()) => true,
            Err(why) if why.kind() == ErrorKind::InvalidInput => {
                system::set_offloads(&file, OFFLOADS)?;
                false
            }
            Err(why) => return Err(why),
        };
        Ok(TunQueue::new(file, joins_udp))
    }

    fn new(file: OwnedFd, joins_udp: bool) -> TunQueue {
        TunQueue {
            file,
            joins_udp,
            frame: Vec::new(),
            coalescer: Coalescer::new(joins_udp),
            written: Written::default(),
            malformed: 0,
        }
    }

    /// A second end of this queue, for a second thread: one reads, the other writes.
    ///
    /// # Errors
    /// The process has no descriptor left.
    pub fn try_clone(&self) -> io::Result<TunQueue> {
        Ok(TunQueue::new(self.file.try_clone()?, self.joins_udp))
    }

    /// One read, which does not wait: cuts what the kernel handed over as one (up to 64 KiB of a TCP or UDP flow),
    /// finishes checksums, and calls `each` with whole IP packets. The count of them; 0 where nothing is there.
    ///
    /// # Errors
    /// The device is down or gone.
    pub fn receive(&mut self, mut each: impl FnMut(&[u8])) -> io::Result<usize> {
        if self.frame.is_empty() {
            self.frame = vec![0; VIRTIO_HEADER_BYTES + PACKET_BYTES_MAX];
        }
        loop {
            match rustix::io::read(&self.file, &mut self.frame[..]) {
                Ok(bytes) => {
                    let frame = self.frame.get_mut(..bytes).unwrap_or_default();
                    match split(frame, &mut each) {
                        Ok(count) => return Ok(count),
                        Err(_) => self.malformed += 1,
                    }
                }
                Err(Errno::AGAIN) => return Ok(0),
                Err(Errno::INTR) => {}
                Err(why) => return Err(why.into()),
            }
        }
    }

    /// Takes a packet to be written. It is joined to those before it where the kernel's own GRO would do so, and written
    /// with them; one that cannot be joined is written at once.
    pub fn push(&mut self, packet: &[u8]) {
        let TunQueue { file, coalescer, written, .. } = self;
        coalescer.push(packet, |header, packet, count| {
            write(file.as_fd(), written, header, packet, count);
        });
    }

    /// Writes what is left, and says what became of all packets since the last flush.
    pub fn flush(&mut self) -> Written {
        let TunQueue { file, coalescer, written, .. } = self;
        coalescer.flush(|header, packet, count| {
            write(file.as_fd(), written, header, packet, count);
        });
        std::mem::take(&mut self.written)
    }

    /// How many packets the kernel handed over with a header that does not fit them. They were dropped.
    #[must_use]
    pub fn malformed(&self) -> u64 {
        self.malformed
    }
}

impl AsFd for TunQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn write(
    file: BorrowedFd<'_>,
    written: &mut Written,
    header: &[u8; VIRTIO_HEADER_BYTES],
    packet: &[u8],
    count: usize,
) {
    let parts = [IoSlice::new(header), IoSlice::new(packet)];
    let result = loop {
        match rustix::io::writev(file, &parts) {
            Err(Errno::INTR) => {}
            result => break result,
        }
    };
    match result {
        Ok(_) => written.packets += count as u64,
        Err(_) => written.dropped += count as u64,
    }
}
