//! Messages with file descriptors over a Unix socket that keeps their bounds (`SOCK_SEQPACKET`).

use crate::limits::{CONNECT, MESSAGE_BYTES_MAX, MESSAGE_FDS_MAX, MESSAGES_DISCARDED_MAX};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, RecvMsg, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use zeroize::Zeroizing;

/// One end. Used by one thread at a time for each direction.
#[derive(Debug)]
pub struct Socket(OwnedFd);

/// A message that came.
#[derive(Debug, Default)]
pub struct Received {
    /// Its bytes, which may be secret.
    pub bytes: Zeroizing<Vec<u8>>,
    /// The files that came with it.
    pub fds: Vec<OwnedFd>,
}

/// Does something with the address of a socket at a path. Where the path is longer than an address may be,
/// it is the path from its folder, which is open meanwhile.
///
/// # Errors
/// The system's; `InvalidFilename` if the name in its folder is too long as well.
pub fn with_address<T>(
    path: &Path,
    action: impl FnOnce(&SocketAddrUnix) -> rustix::io::Result<T>,
) -> io::Result<T> {
    match (SocketAddrUnix::new(path), path.parent(), path.file_name()) {
        (Err(Errno::NAMETOOLONG), Some(folder), Some(name)) => {
            let here = folder.as_os_str().is_empty();
            let folder = File::open(if here { Path::new(".") } else { folder })?;
            let number = folder.as_raw_fd().to_string();
            let near = Path::new("/proc/self/fd").join(number).join(name);
            Ok(action(&SocketAddrUnix::new(near)?)?)
        }
        (address, ..) => Ok(action(&address?)?),
    }
}

const FLAGS: SocketFlags = SocketFlags::CLOEXEC;

impl Socket {
    /// Connects to a daemon that listens there.
    ///
    /// # Errors
    /// The system's; `WouldBlock` if as many wait to be let in as may, for all of [`CONNECT`].
    pub fn connect(path: &Path) -> io::Result<Self> {
        let socket =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, FLAGS, None)?;
        set_socket_timeout(&socket, Timeout::Send, Some(CONNECT))?;
        with_address(path, |address| rustix::net::connect(&socket, address))?;
        set_socket_timeout(&socket, Timeout::Send, None)?;
        Ok(Socket(socket))
    }

    /// Two ends that are connected to each other.
    ///
    /// # Errors
    /// The system's.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (one, other) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, FLAGS, None)?;
        Ok((Socket(one), Socket(other)))
    }

    /// One that was accepted or inherited.
    pub fn from_fd(fd: OwnedFd) -> Self {
        Socket(fd)
    }

    /// Sends one message, whole.
    ///
    /// # Errors
    /// The system's; `InvalidInput` if it is longer than [`MESSAGE_BYTES_MAX`] or brings more than
    /// [`MESSAGE_FDS_MAX`] files.
    pub fn send(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        self.send_with(bytes, fds, SendFlags::NOSIGNAL)
    }

    /// As [`Socket::send`], without waiting: `WouldBlock` if the other side does not read.
    ///
    /// # Errors
    /// As [`Socket::send`].
    pub fn try_send(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        self.send_with(bytes, fds, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)
    }

    fn send_with(&self, bytes: &[u8], fds: &[BorrowedFd<'_>], flags: SendFlags) -> io::Result<()> {
        if bytes.len() > MESSAGE_BYTES_MAX || fds.len() > MESSAGE_FDS_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the message is too long"));
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MESSAGE_FDS_MAX))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(fds)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let sent = rustix::io::retry_on_intr(|| {
            rustix::net::sendmsg(&self.0, &[IoSlice::new(bytes)], &mut ancillary, flags)
        })?;
        match sent == bytes.len() {
            true => Ok(()),
            false => Err(io::ErrorKind::WriteZero.into()),
        }
    }

    /// Receives one message. `None` at the end.
    ///
    /// # Errors
    /// The system's; `InvalidData` for a message that is longer or brings more files than it may.
    pub fn receive(&self) -> io::Result<Option<Received>> {
        self.receive_with(RecvFlags::CMSG_CLOEXEC)
    }

    /// As [`Socket::receive`], without waiting: `WouldBlock` if there is none.
    ///
    /// # Errors
    /// As [`Socket::receive`].
    pub fn try_receive(&self) -> io::Result<Option<Received>> {
        self.receive_with(RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT)
    }

    /// Receives one message of a peer that may send anything, without waiting. `None` at the end.
    ///
    /// It takes no files. A message that brings some is left where it is, since the system would
    /// close them here and now, which can take as long as the peer likes. A caller that may wait
    /// can [discard](Socket::discard_all) it, or drop the socket.
    ///
    /// # Errors
    /// The system's; `WouldBlock` if there is none, `InvalidData` for a message that brings files or is
    /// longer than it may be.
    pub fn try_receive_plain(&self) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
        let refused = |why| io::Error::new(io::ErrorKind::InvalidData, why);
        let next = self.receive_into(&mut [], RecvFlags::PEEK | RecvFlags::DONTWAIT)?;
        // There was no room for the files: so there are some.
        if next.flags.contains(ReturnFlags::CTRUNC) {
            return Err(refused("the message brings files"));
        }
        // No other thread takes messages here, so it is still the next one.
        let mut bytes = Zeroizing::new(vec![0; MESSAGE_BYTES_MAX]);
        let received = self.receive_into(&mut bytes, RecvFlags::DONTWAIT)?;
        if received.flags.contains(ReturnFlags::TRUNC) {
            return Err(refused("the message is too long"));
        }
        bytes.truncate(received.bytes);
        Ok(Some(bytes).filter(|bytes| !bytes.is_empty()))
    }

    /// Takes all messages that are there, and drops them with their files, which can take as long as the
    /// peer likes. Those of a peer that goes on sending are bounded.
    pub fn discard_all(&self) {
        for _ in 0..MESSAGES_DISCARDED_MAX {
            // The end and an empty message look alike.
            if self.receive_into(&mut [], RecvFlags::DONTWAIT).is_err() {
                return;
            }
        }
    }

    fn receive_into(&self, bytes: &mut [u8], flags: RecvFlags) -> io::Result<RecvMsg> {
        let mut none = RecvAncillaryBuffer::default();
        let received = rustix::io::retry_on_intr(|| {
            let mut parts = [IoSliceMut::new(bytes)];
            rustix::net::recvmsg(&self.0, &mut parts, &mut none, flags)
        });
        Ok(received?)
    }

    fn receive_with(&self, flags: RecvFlags) -> io::Result<Option<Received>> {
        let mut bytes = Zeroizing::new(vec![0; MESSAGE_BYTES_MAX]);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MESSAGE_FDS_MAX))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let received = rustix::io::retry_on_intr(|| {
            let mut parts = [IoSliceMut::new(&mut bytes)];
            rustix::net::recvmsg(&self.0, &mut parts, &mut ancillary, flags)
        })?;
        let mut fds = Vec::new();
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                fds.extend(rights);
            }
        }
        if received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the message is too long"));
        }
        if received.bytes == 0 && fds.is_empty() {
            return Ok(None);
        }
        bytes.truncate(received.bytes);
        Ok(Some(Received { bytes, fds }))
    }
}

impl From<Socket> for OwnedFd {
    fn from(socket: Socket) -> OwnedFd {
        socket.0
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_whole_and_with_their_files() {
        let (one, other) = Socket::pair().unwrap();
        one.send(b"first", &[]).unwrap();
        one.send(b"second", &[one.as_fd(), other.as_fd()]).unwrap();
        one.send(&vec![7; MESSAGE_BYTES_MAX], &[]).unwrap();
        assert_eq!(**other.receive().unwrap().unwrap().bytes, *b"first");
        let second = other.receive().unwrap().unwrap();
        assert_eq!((&**second.bytes, second.fds.len()), (&b"second"[..], 2));
        assert_eq!(other.receive().unwrap().unwrap().bytes.len(), MESSAGE_BYTES_MAX);
        assert_eq!(other.try_receive().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert!(one.send(&vec![7; MESSAGE_BYTES_MAX + 1], &[]).is_err());
        drop(one);
        drop(second);
        assert!(other.receive().unwrap().is_none());
    }

    #[test]
    fn a_message_with_files_is_left_where_it_is() {
        let (one, other) = Socket::pair().unwrap();
        let kind = || other.try_receive_plain().map_err(|why| why.kind());
        assert_eq!(kind().unwrap_err(), io::ErrorKind::WouldBlock);
        one.send(b"plain", &[]).unwrap();
        one.send(b"with", &[one.as_fd(); MESSAGE_FDS_MAX]).unwrap();
        assert_eq!(**kind().unwrap().unwrap(), *b"plain");
        for _ in 0..2 {
            assert_eq!(kind().unwrap_err(), io::ErrorKind::InvalidData);
        }
        other.discard_all();
        assert_eq!(kind().unwrap_err(), io::ErrorKind::WouldBlock);
        one.send(b"", &[other.as_fd()]).unwrap();
        assert_eq!(kind().unwrap_err(), io::ErrorKind::InvalidData);
        other.discard_all();
        drop(one);
        assert!(kind().unwrap().is_none());
    }
}
