//! Messages over TLS: four octets of length, and what postcard makes of one.

use super::Message;
use crate::limits::{AGENT_MESSAGE_BYTES_MAX, AGENT_SILENCE_MAX};
use rustls::Connection;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// How long a look whether something has come may take.
const LOOK: Duration = Duration::from_millis(1);
const LENGTH_BYTES: usize = 4;

pub(super) struct Link {
    tls: Connection,
    socket: TcpStream,
    input: Vec<u8>,
    /// When something came last.
    heard: Instant,
}

impl Link {
    /// Shakes hands.
    pub(super) fn new(mut tls: Connection, mut socket: TcpStream) -> io::Result<Link> {
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(AGENT_SILENCE_MAX))?;
        socket.set_write_timeout(Some(AGENT_SILENCE_MAX))?;
        while tls.is_handshaking() {
            tls.complete_io(&mut socket)?;
        }
        tls.set_buffer_limit(None);
        socket.set_read_timeout(Some(LOOK))?;
        Ok(Link { tls, socket, input: Vec::new(), heard: Instant::now() })
    }

    /// How long nothing has come.
    pub(super) fn silence(&self) -> Duration {
        self.heard.elapsed()
    }

    pub(super) fn send(&mut self, message: &Message) -> io::Result<()> {
        let bytes = postcard::to_allocvec(message).map_err(io::Error::other)?;
        let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        self.tls.writer().write_all(&length.to_be_bytes())?;
        self.tls.writer().write_all(&bytes)?;
        while self.tls.wants_write() {
            self.tls.write_tls(&mut self.socket)?;
        }
        Ok(())
    }

    /// The next message, if it is there.
    pub(super) fn poll(&mut self) -> io::Result<Option<Message>> {
        // Data that came with the end of the handshake is in already.
        self.take()?;
        if let Some(message) = self.next()? {
            return Ok(Some(message));
        }
        match self.tls.read_tls(&mut self.socket) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            Err(why) if is_nothing_there(&why) => return Ok(None),
            Err(why) => return Err(why),
        }
        self.heard = Instant::now();
        self.take()?;
        self.next()
    }

    /// Decrypts what has come.
    fn take(&mut self) -> io::Result<()> {
        let state = self.tls.process_new_packets();
        let plain = state.map_err(io::Error::other)?.plaintext_bytes_to_read();
        let held = self.input.len();
        self.input.resize(held + plain, 0);
        self.tls.reader().read_exact(self.input.get_mut(held..).unwrap_or_default())
    }

    /// The next message, which has to come before long.
    pub(super) fn receive(&mut self, at_most: Duration) -> io::Result<Message> {
        let until = Instant::now() + at_most;
        while Instant::now() < until {
            if let Some(message) = self.poll()? {
                return Ok(message);
            }
        }
        Err(ErrorKind::TimedOut.into())
    }

    fn next(&mut self) -> io::Result<Option<Message>> {
        let Some(length) = self.input.first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length) as usize;
        if length > AGENT_MESSAGE_BYTES_MAX {
            return Err(io::Error::other(format!("a message of {length} bytes")));
        }
        let Some(bytes) = self.input.get(LENGTH_BYTES..LENGTH_BYTES + length) else {
            return Ok(None);
        };
        let message = postcard::from_bytes(bytes).map_err(io::Error::other)?;
        self.input.drain(..LENGTH_BYTES + length);
        Ok(Some(message))
    }
}

fn is_nothing_there(why: &io::Error) -> bool {
    matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
