//! A socket that never blocks, plain or with TLS.

use crate::limits::READ_BYTES;
use crate::server::Address;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, HandshakeKind};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Tcp(socket) => socket.as_fd(),
            Socket::Unix(socket) => socket.as_fd(),
        }
    }
}

impl Read for Socket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(socket) => socket.read(into),
            Socket::Unix(socket) => socket.read(into),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(socket) => socket.write(from),
            Socket::Unix(socket) => socket.write(from),
        }
    }

    fn write_vectored(&mut self, from: &[io::IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Socket::Tcp(socket) => socket.write_vectored(from),
            Socket::Unix(socket) => socket.write_vectored(from),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The result of a read.
pub(crate) enum Got {
    /// Perhaps more is there.
    More,
    /// All that was there.
    All,
    /// The other side has closed.
    End,
}

pub(crate) struct Stream {
    pub(crate) socket: Socket,
    tls: Option<Box<ClientConnection>>,
}

impl Stream {
    /// Begins to connect. It is done when the socket can be written.
    pub(crate) fn open(address: &Address) -> io::Result<Stream> {
        let socket = match address {
            Address::Unix(path) => {
                let socket = UnixStream::connect(path)?;
                socket.set_nonblocking(true)?;
                Socket::Unix(socket)
            }
            Address::Tcp(address) => {
                let family = match address {
                    SocketAddr::V4(_) => AddressFamily::INET,
                    SocketAddr::V6(_) => AddressFamily::INET6,
                };
                let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
                let socket = socket_with(family, SocketType::STREAM, flags, None)?;
                match connect(&socket, address) {
                    Ok(()) | Err(Errno::INPROGRESS) => {}
                    Err(why) => return Err(why.into()),
                }
                let socket = TcpStream::from(socket);
                socket.set_nodelay(true)?;
                Socket::Tcp(socket)
            }
        };
        Ok(Stream { socket, tls: None })
    }

    /// Whether it is connected by now; an error if it will never be.
    pub(crate) fn connected(&self) -> io::Result<bool> {
        let Socket::Tcp(socket) = &self.socket else { return Ok(true) };
        sockopt::socket_error(socket)??;
        match rustix::net::getpeername(socket) {
            Ok(_) => Ok(true),
            Err(Errno::NOTCONN) => Ok(false),
            Err(why) => Err(why.into()),
        }
    }

    /// Begins TLS.
    pub(crate) fn begin_tls(
        &mut self,
        config: &Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> Result<(), rustls::Error> {
        let mut tls = ClientConnection::new(config.clone(), name)?;
        tls.set_buffer_limit(None);
        self.tls = Some(Box::new(tls));
        Ok(())
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    pub(crate) fn was_resumed(&self) -> bool {
        let kind = self.tls.as_ref().and_then(|tls| tls.handshake_kind());
        kind == Some(HandshakeKind::Resumed)
    }

    /// Sends what is in `out` from `sent` on, as far as that goes; what went is left out of it.
    pub(crate) fn send(&mut self, out: &mut Vec<u8>, sent: &mut usize) -> io::Result<()> {
        if let Some(tls) = &mut self.tls {
            tls.writer().write_all(out.get(*sent..).unwrap_or_default())?;
            out.clear();
            *sent = 0;
            while tls.wants_write() {
                match tls.write_tls(&mut self.socket) {
                    Ok(_) => {}
                    Err(why) if why.kind() == ErrorKind::WouldBlock => return Ok(()),
                    Err(why) if why.kind() == ErrorKind::Interrupted => {}
                    Err(why) => return Err(why),
                }
            }
            return Ok(());
        }
        while *sent < out.len() {
            match self.socket.write(out.get(*sent..).unwrap_or_default()) {
                Ok(bytes) => *sent += bytes,
                Err(why) if why.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) => return Err(why),
            }
        }
        out.clear();
        *sent = 0;
        Ok(())
    }

    /// Says that nothing more will come, as far as that goes.
    pub(crate) fn say_goodbye(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            let _ = tls.write_tls(&mut self.socket);
        }
    }

    /// Appends what has come to `input`, whose first `held` bytes count. `raw` is room for records.
    pub(crate) fn receive(
        &mut self,
        input: &mut Vec<u8>,
        held: &mut usize,
        raw: &mut Vec<u8>,
    ) -> io::Result<Got> {
        let Some(tls) = &mut self.tls else {
            if input.len() < *held + READ_BYTES {
                input.resize(*held + READ_BYTES, 0);
            }
            let room = input.get_mut(*held..).unwrap_or_default();
            let asked = room.len();
            return Ok(match read(&mut self.socket, room)? {
                None => Got::All,
                Some(0) => Got::End,
                Some(bytes) => {
                    *held += bytes;
                    // A short read has emptied the socket (epoll(7)).
                    if bytes < asked { Got::All } else { Got::More }
                }
            });
        };
        raw.resize(READ_BYTES, 0);
        let bytes = match read(&mut self.socket, raw)? {
            None => return Ok(Got::All),
            Some(bytes) => bytes,
        };
        let mut records = raw.get(..bytes).unwrap_or_default();
        let was_short = bytes < raw.len();
        if bytes == 0 {
            return Ok(Got::End);
        }
        while !records.is_empty() {
            tls.read_tls(&mut records)?;
            let state = tls
                .process_new_packets()
                .map_err(|why| io::Error::new(ErrorKind::InvalidData, why))?;
            let plain = state.plaintext_bytes_to_read();
            let closed = state.peer_has_closed();
            if input.len() < *held + plain {
                input.resize(*held + plain, 0);
            }
            let room = input.get_mut(*held..*held + plain).unwrap_or_default();
            tls.reader().read_exact(room)?;
            *held += plain;
            if closed {
                return Ok(Got::End);
            }
        }
        Ok(if was_short { Got::All } else { Got::More })
    }
}

/// Reads; `None` if nothing is there.
fn read(socket: &mut Socket, into: &mut [u8]) -> io::Result<Option<usize>> {
    loop {
        match socket.read(into) {
            Ok(bytes) => return Ok(Some(bytes)),
            Err(why) if why.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(why) if why.kind() == ErrorKind::Interrupted => {}
            Err(why) => return Err(why),
        }
    }
}
