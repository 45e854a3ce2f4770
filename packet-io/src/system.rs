//! System calls that no library of this workspace has: of TUN devices, options of sockets, and many messages at once. All
//! unsafe code of this crate is in this file.

use crate::limits::MESSAGES_MAX;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr;

/// Bytes of an address: `struct sockaddr_in6`, the longer one.
pub(crate) const ADDRESS_BYTES: usize = size_of::<libc::sockaddr_in6>();
/// Bytes for control messages of a datagram that was received: more than all that were asked for have.
pub(crate) const CONTROL_BYTES: usize = 192;

/// `struct ifreq`: the name and the flags. The rest is not looked at.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; libc::IFNAMSIZ],
    flags: libc::c_short,
    rest: [u8; 22],
}

/// Makes an open `/dev/net/tun` a queue of the device of this name, which it makes if there is none.
pub(crate) fn attach(file: impl AsFd, name: &str, flags: libc::c_int) -> io::Result<()> {
    let mut request = InterfaceRequest {
        name: [0; libc::IFNAMSIZ],
        flags: flags as libc::c_short,
        rest: [0; 22],
    };
    // The last byte stays zero.
    if name.is_empty() || name.len() >= libc::IFNAMSIZ {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    request.name[..name.len()].copy_from_slice(name.as_bytes());
    // SAFETY: the call reads and writes a `struct ifreq`, and this one has its size and its layout.
    let code = unsafe { libc::ioctl(file.as_fd().as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    check(code as isize).map(|_| ())
}

/// Says which packets the owner of a device cuts, and joins, itself.
pub(crate) fn set_offloads(file: impl AsFd, offloads: libc::c_uint) -> io::Result<()> {
    let offloads = libc::c_ulong::from(offloads);
    // SAFETY: the call takes a number, and no memory.
    let code = unsafe { libc::ioctl(file.as_fd().as_raw_fd(), libc::TUNSETOFFLOAD, offloads) };
    check(code as isize).map(|_| ())
}

/// Sets an option of a socket.
pub(crate) fn set_option(
    socket: impl AsFd,
    level: libc::c_int,
    name: libc::c_int,
    value: &[u8],
) -> io::Result<()> {
    let descriptor = socket.as_fd().as_raw_fd();
    let bytes = value.len() as libc::socklen_t;
    // SAFETY: the call reads `bytes` bytes of `value`, which has as many.
    let code = unsafe { libc::setsockopt(descriptor, level, name, value.as_ptr().cast(), bytes) };
    check(code as isize).map(|_| ())
}

/// An option of a socket that is an `int`.
pub(crate) fn option(socket: impl AsFd, level: libc::c_int, name: libc::c_int) -> io::Result<i32> {
    let mut value: libc::c_int = 0;
    let mut bytes = size_of::<libc::c_int>() as libc::socklen_t;
    let descriptor = socket.as_fd().as_raw_fd();
    // SAFETY: the call writes at most `bytes` bytes to `value`, which has as many; any of them make an `int`.
    let code = unsafe {
        libc::getsockopt(descriptor, level, name, (&raw mut value).cast(), &raw mut bytes)
    };
    check(code as isize).map(|_| value)
}

/// A message to be sent.
pub(crate) struct Outgoing<'a> {
    /// `struct sockaddr_in` or `struct sockaddr_in6`.
    pub address: &'a [u8],
    /// Control messages.
    pub control: &'a [u8],
    pub data: &'a [u8],
}

/// Sends messages, at most [`MESSAGES_MAX`], without waiting. The count of those sent; an error is the first one's.
pub(crate) fn send<'a>(
    socket: BorrowedFd<'_>,
    messages: impl Iterator<Item = Outgoing<'a>>,
) -> io::Result<usize> {
    let mut pieces = [NO_PIECE; MESSAGES_MAX];
    let mut headers = [NO_HEADER; MESSAGES_MAX];
    let mut count = 0;
    for ((message, piece), header) in messages.zip(&mut pieces).zip(&mut headers) {
        piece.iov_base = message.data.as_ptr().cast_mut().cast();
        piece.iov_len = message.data.len();
        let header = &mut header.msg_hdr;
        header.msg_name = message.address.as_ptr().cast_mut().cast();
        header.msg_namelen = message.address.len() as libc::socklen_t;
        header.msg_iov = piece;
        header.msg_iovlen = 1;
        if !message.control.is_empty() {
            header.msg_control = message.control.as_ptr().cast_mut().cast();
            header.msg_controllen = message.control.len() as _;
        }
        count += 1;
    }
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the first `count` headers point to addresses, control messages and pieces with the lengths they say, all of
    // which live for `'a` or in this function; the call only reads them, and writes to the headers.
    let sent =
        unsafe { libc::sendmmsg(socket.as_raw_fd(), headers.as_mut_ptr(), count, flags as _) };
    check(sent as isize)
}

/// What came with a message.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    pub address: [u8; ADDRESS_BYTES],
    pub control: [u8; CONTROL_BYTES],
    /// Bytes of control messages.
    pub control_bytes: usize,
    /// Bytes of the message in its buffer.
    pub bytes: usize,
    /// The message was longer than its buffer.
    pub is_cut: bool,
}

impl Arrival {
    pub const NONE: Arrival = Arrival {
        address: [0; ADDRESS_BYTES],
        control: [0; CONTROL_BYTES],
        control_bytes: 0,
        bytes: 0,
        is_cut: false,
    };
}

/// Receives messages that are there, one for each arrival and at most [`MESSAGES_MAX`], without waiting. The data of each
/// lies in `data` at a multiple of `stride`. The count of them.
///
/// # Panics
/// `data` is shorter than `stride` bytes an arrival.
pub(crate) fn receive(
    socket: BorrowedFd<'_>,
    data: &mut [u8],
    stride: usize,
    arrivals: &mut [Arrival],
) -> io::Result<usize> {
    assert!(data.len() / stride >= arrivals.len());
    let mut pieces = [NO_PIECE; MESSAGES_MAX];
    let mut headers = [NO_HEADER; MESSAGES_MAX];
    let mut count = 0;
    let buffers = data.chunks_exact_mut(stride).zip(arrivals.iter_mut());
    for (((buffer, arrival), piece), header) in buffers.zip(&mut pieces).zip(&mut headers) {
        piece.iov_base = buffer.as_mut_ptr().cast();
        piece.iov_len = buffer.len();
        let header = &mut header.msg_hdr;
        header.msg_name = arrival.address.as_mut_ptr().cast();
        header.msg_namelen = ADDRESS_BYTES as libc::socklen_t;
        header.msg_iov = piece;
        header.msg_iovlen = 1;
        header.msg_control = arrival.control.as_mut_ptr().cast();
        header.msg_controllen = CONTROL_BYTES as _;
        count += 1;
    }
    // SAFETY: the first `count` headers point to addresses, control messages and pieces with the lengths they say, all
    // borrowed by this function, each by one header; the call writes bytes there, of which any are sound.
    let received = unsafe {
        libc::recvmmsg(
            socket.as_raw_fd(),
            headers.as_mut_ptr(),
            count,
            libc::MSG_DONTWAIT as _,
            ptr::null_mut(),
        )
    };
    let received = check(received as isize)?;
    for (header, arrival) in headers[..received].iter().zip(arrivals) {
        arrival.bytes = (header.msg_len as usize).min(stride);
        arrival.control_bytes = header.msg_hdr.msg_controllen.min(CONTROL_BYTES);
        arrival.is_cut = header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0;
    }
    Ok(received)
}

const NO_PIECE: libc::iovec = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };
const NO_HEADER: libc::mmsghdr = libc::mmsghdr {
    msg_hdr: libc::msghdr {
        msg_name: ptr::null_mut(),
        msg_namelen: 0,
        msg_iov: ptr::null_mut(),
        msg_iovlen: 0,
        msg_control: ptr::null_mut(),
        msg_controllen: 0,
        msg_flags: 0,
    },
    msg_len: 0,
};

/// The number that a call returned, which is no error.
fn check(returned: isize) -> io::Result<usize> {
    usize::try_from(returned).map_err(|_| io::Error::last_os_error())
}
