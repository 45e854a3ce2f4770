//! A network device whose frames a test reads and writes.

use rustix::fs::{Mode, OFlags, open};
use rustix::ioctl::{Opcode, Setter, ioctl};
use std::io;
use std::os::fd::OwnedFd;

/// `TUNSETIFF` (Linux, `if_tun.h`), and the flags for frames without anything before them.
const TUNSETIFF: Opcode = 0x4004_54ca;
const IFF_TAP: u16 = 2;
const IFF_NO_PI: u16 = 0x1000;

/// `struct ifreq`
#[repr(C)]
struct Request {
    name: [u8; 16],
    flags: u16,
    rest: [u8; 22],
}

/// Makes a device in this thread's network namespace. It goes with the file.
pub fn open_device(name: &str) -> io::Result<OwnedFd> {
    let file = open("/dev/net/tun", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let mut request = Request { name: [0; 16], flags: IFF_TAP | IFF_NO_PI, rest: [0; 22] };
    request.name[..name.len()].copy_from_slice(name.as_bytes());
    // SAFETY: the request takes a `struct ifreq`, which this is in layout.
    let request = unsafe { Setter::<TUNSETIFF, Request>::new(request) };
    // SAFETY: the kernel reads from it, and knows that number only on such a file.
    unsafe { ioctl(&file, request) }?;
    Ok(file)
}
