//! A UDP socket, or a raw one of ESP (IP protocol 50): datagrams in and out, in batches.

use crate::error::Error;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// What a socket is to be.
#[derive(Clone, Debug)]
pub struct SocketOptions {
    /// Where it is bound. `[::]` takes IPv4 too, with UDP. A raw socket has no port: it is not looked at.
    pub address: SocketAddr,
    /// The one interface that it sends and receives through.
    pub interface: Option<String>,
    /// The mark of what it sends (`SO_MARK`), which policy routing sees.
    pub mark: Option<u32>,
    /// Bytes of datagrams that wait to be received, and of such that wait to be sent.
    pub buffer_bytes: usize,
}

impl SocketOptions {
    /// The usual ones: any interface, no mark, 4 MiB.
    #[must_use]
    pub fn new(address: SocketAddr) -> SocketOptions {
        SocketOptions { address, interface: None, mark: None, buffer_bytes: 4 << 20 }
    }
}

/// Where a datagram came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Its source. IPv4 is IPv4, on a socket of IPv6 too. The port of a raw socket's is 0.
    pub source: SocketAddr,
    /// Its destination, an address of this host.
    pub destination: Option<IpAddr>,
    /// The ECN field of its IP header, 0 to 3.
    pub ecn: u8,
}

/// What a flush sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Datagrams that the kernel took.
    pub packets: u64,
    /// Datagrams that it did not take, those too long among them.
    pub dropped: u64,
    /// A destination whose path takes less than a datagram had: [`Socket::path_mtu`] says how much.
    pub too_long: Option<SocketAddr>,
    /// Why the last datagram was dropped that was not too long. `WouldBlock`: the socket's buffer stayed full.
    pub error: Option<io::ErrorKind>,
}

/// A socket's end, one thread's.
#[derive(Debug)]
pub struct Socket {
    file: OwnedFd,
}

impl Socket {
    /// A UDP socket.
    ///
    /// # Errors
    /// The address is in use or not this host's, there is no such interface, or a mark was asked for without
    /// `CAP_NET_ADMIN`.
    pub fn udp(options: &SocketOptions) -> Result<Socket, Error> {
        Err(Error::new(
            format!("opening the UDP socket {}", options.address),
            io::Error::from(io::ErrorKind::Unsupported),
        ))
    }

    /// A raw socket of ESP, of the address's family.
    ///
    /// # Errors
    /// As [`Socket::udp`]; it takes `CAP_NET_RAW`.
    pub fn raw(options: &SocketOptions) -> Result<Socket, Error> {
        Err(Error::new(
            format!("opening the ESP socket {}", options.address.ip()),
            io::Error::from(io::ErrorKind::Unsupported),
        ))
    }

    /// A second end of this socket, for a second thread.
    ///
    /// # Errors
    /// The process has no descriptor left.
    pub fn try_clone(&self) -> io::Result<Socket> {
        Ok(Socket { file: self.file.try_clone()? })
    }

    /// Where it is bound: with port 0 asked for, the port is the kernel's choice.
    ///
    /// # Errors
    /// The system's.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// One call, which does not wait: calls `each` with each datagram that is there, up to a limit. The count of them;
    /// 0 where none is there. An IPv4 header, which raw sockets get too, is cut off.
    ///
    /// # Errors
    /// The socket has one.
    pub fn receive(&mut self, _each: impl FnMut(&[u8], Received)) -> io::Result<usize> {
        Ok(0)
    }

    /// Takes a datagram to be sent, which is the `parts` one after the other.
    pub fn push(&mut self, _to: SocketAddr, _ecn: u8, _parts: &[&[u8]]) {}

    /// Sends what is left, and says what became of all datagrams since the last flush.
    pub fn flush(&mut self) -> Sent {
        Sent::default()
    }

    /// The longest IP packet on the way to there, in bytes, as the kernel knows it now.
    ///
    /// # Errors
    /// No route leads there.
    pub fn path_mtu(&self, _to: IpAddr) -> io::Result<u32> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
