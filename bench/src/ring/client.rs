//! A client by hand: its rings and regions, without an engine.

use super::text;
use keyway_engine::Algorithm;
use keyway_ring::control::{self, Answer, Ask, ClientStatus, Key, Step, VERSION};
use keyway_ring::descriptor::{
    Completion, Descriptor, Opcode, RegionHandle, Segment, SessionHandle,
};
use keyway_ring::{ClientEnd, Doorbell, RingMemory, SharedMemory, Socket};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

pub struct Client {
    socket: Socket,
}

/// A queue pair.
pub struct Ring {
    pub end: ClientEnd,
    pub bell: Doorbell,
}

pub struct Region {
    pub memory: SharedMemory,
    handle: RegionHandle,
}

impl Client {
    pub fn connect(socket: &Path, name: &str) -> Result<Self, String> {
        let client = Client { socket: Socket::connect(socket).map_err(text)? };
        client.ask(&Ask::Hello { version: VERSION, name: name.to_owned() }, &[])?;
        Ok(client)
    }

    fn ask(&self, ask: &Ask, fds: &[BorrowedFd<'_>]) -> Result<(Answer, Vec<OwnedFd>), String> {
        let message = control::encode(ask).map_err(text)?;
        self.socket.send(&message, fds).map_err(text)?;
        let received = self.socket.receive().map_err(text)?.ok_or("the daemon hung up")?;
        match control::decode_answer(&received.bytes).map_err(text)? {
            Answer::Refused { why, .. } => Err(format!("the daemon refuses: {why}")),
            answer => Ok((answer, received.fds)),
        }
    }

    pub fn ring(&self, entries: u32) -> Result<Ring, String> {
        let (answer, fds) = self.ask(&Ask::Queue { entries }, &[])?;
        let mut fds = fds.into_iter();
        match (answer, fds.next(), fds.next()) {
            (Answer::Queue { entries, .. }, Some(memory), Some(bell)) => {
                let memory = RingMemory::adopt(memory, entries).map_err(text)?;
                let end = memory.client_end().ok_or("the pair is too short")?;
                Ok(Ring { end, bell: Doorbell::from_fd(bell) })
            }
            _ => Err(UNEXPECTED.into()),
        }
    }

    pub fn region(&self, bytes: usize) -> Result<Region, String> {
        let (answer, fds) = self.ask(&Ask::Region { bytes: bytes as u64 }, &[])?;
        match (answer, fds.into_iter().next()) {
            (Answer::Region { region }, Some(memory)) => {
                let memory = SharedMemory::adopt(memory, usize::MAX).map_err(text)?;
                Ok(Region { memory, handle: region })
            }
            _ => Err(UNEXPECTED.into()),
        }
    }

    pub fn open(&self, algorithm: Algorithm, key: Key) -> Result<SessionHandle, String> {
        let steps = vec![Step { algorithm: algorithm.name().to_owned(), key }];
        match self.ask(&Ask::Open { steps }, &[])? {
            (Answer::Session { session, .. }, _) => Ok(session),
            _ => Err(UNEXPECTED.into()),
        }
    }

    /// The daemon's status of the client of this name.
    pub fn status(&self, name: &str) -> Result<ClientStatus, String> {
        let (Answer::Status(status), _) = self.ask(&Ask::Status, &[])? else {
            return Err(UNEXPECTED.into());
        };
        let found = status.clients.into_iter().find(|client| client.name == name);
        found.ok_or_else(|| format!("the daemon knows no client {name}"))
    }
}

const UNEXPECTED: &str = "the daemon answers something else than what was asked";

impl Ring {
    #[inline]
    pub fn submit(&mut self, descriptor: &Descriptor) {
        self.end.submit(descriptor);
    }

    /// After some were submitted.
    #[inline]
    pub fn ring(&self) {
        if self.end.must_ring() {
            self.bell.ring();
        }
    }

    /// Whether the daemon wants it or not.
    pub fn ring_for_nothing(&self) {
        self.bell.ring();
    }

    #[inline]
    pub fn poll(&mut self) -> Option<Completion> {
        self.end.poll()
    }

    /// Sleeps until there may be a completion.
    pub fn sleep(&self) {
        let Some(armed) = self.end.armed() else { return };
        armed.set();
        if !self.end.is_ready() {
            armed.sleep(Duration::from_millis(100));
        }
        armed.clear();
    }
}

impl Region {
    /// A request on bytes that lie there.
    pub fn request(
        &self,
        opcode: Opcode,
        session: SessionHandle,
        cookie: u32,
        data: Segment,
    ) -> Descriptor {
        Descriptor {
            opcode: opcode as u8,
            session,
            region: self.handle,
            cookie,
            segments: [Segment::default(), data, Segment::default()],
            ..Descriptor::default()
        }
    }
}
