//! A client and a server in one thread, with buffers for a wire.

use rustls::pki_types::ServerName;
use rustls::{
    ClientConfig, ClientConnection, Connection, ProtocolVersion, ServerConfig, ServerConnection,
};
use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;

/// More exchanges than any conversation here needs; reaching it is a hang.
const ROUNDS_MAX: usize = 50;

/// How a conversation ended for one side.
#[derive(Debug)]
pub enum End {
    /// It heard all that the other had to say; the server also that this was all.
    Done,
    /// TLS failed.
    Failed(rustls::Error),
    /// The other closed the wire too early.
    Cut,
    /// Nothing more came.
    Stuck,
}

impl End {
    pub fn is_done(&self) -> bool {
        matches!(self, End::Done)
    }

    /// Whether it is an end that an application can notice and act on.
    pub fn is_clean_failure(&self) -> bool {
        matches!(self, End::Failed(_) | End::Cut)
    }
}

pub struct Side {
    pub connection: Option<Connection>,
    pub end: Option<End>,
    /// All that it put on the wire.
    pub sent: Vec<u8>,
    says: Vec<u8>,
    said: bool,
    hears: Vec<u8>,
    heard: Vec<u8>,
    peer_closed: bool,
}

/// A client that asks, a server that answers, then the client closes.
///
/// Only one side closes: in a debug build rustls asserts that nothing fails on a side that has
/// said goodbye.
pub struct Conversation {
    pub client: Side,
    pub server: Side,
}

impl Conversation {
    pub fn new(client: &Arc<ClientConfig>, server: &Arc<ServerConfig>, bytes: usize) -> Self {
        let name = ServerName::try_from("localhost").unwrap();
        let question: Vec<u8> = (0..bytes).map(|i| i as u8).collect();
        let answer: Vec<u8> = question.iter().rev().copied().collect();
        let client = ClientConnection::new(client.clone(), name).map(Connection::from);
        let server = ServerConnection::new(server.clone()).map(Connection::from);
        Conversation {
            client: Side::new(client, question.clone(), answer.clone()),
            server: Side::new(server, answer, question),
        }
    }

    /// Talks until both sides have come to an end.
    pub fn run(mut self) -> Self {
        self.run_through(|_, _| {});
        self
    }

    /// Like [`run`](Self::run), with an attacker on the wire who may change what the client
    /// (`true`) or the server sends.
    pub fn run_through(&mut self, mut meddle: impl FnMut(bool, &mut Vec<u8>)) {
        for _ in 0..ROUNDS_MAX {
            // The client asks as soon as it may, the server once it has heard the question.
            self.client.speak_if(|side| !side.is_handshaking());
            let mut moved = transfer(&mut self.client, &mut self.server, |b| meddle(true, b));
            self.server.speak_if(|side| side.heard.len() >= side.hears.len());
            moved |= transfer(&mut self.server, &mut self.client, |b| meddle(false, b));
            self.client.close_if_done();
            if !moved {
                break;
            }
        }
        for side in [&mut self.client, &mut self.server] {
            side.end.get_or_insert(End::Stuck);
        }
    }

    pub fn ends(&self) -> (&End, &End) {
        (self.client.end.as_ref().unwrap(), self.server.end.as_ref().unwrap())
    }

    #[track_caller]
    pub fn assert_done(self) -> Self {
        let (client, server) = self.ends();
        assert!(client.is_done() && server.is_done(), "client {client:?}, server {server:?}");
        self
    }

    #[track_caller]
    pub fn assert_failed(self) -> Self {
        let (client, server) = self.ends();
        assert!(
            client.is_clean_failure() && server.is_clean_failure(),
            "client {client:?}, server {server:?}"
        );
        self
    }
}

impl Side {
    fn new(connection: Result<Connection, rustls::Error>, says: Vec<u8>, hears: Vec<u8>) -> Self {
        let (connection, end) = match connection {
            Ok(connection) => (Some(connection), None),
            Err(error) => (None, Some(End::Failed(error))),
        };
        Side {
            connection,
            end,
            sent: Vec::new(),
            says,
            said: false,
            hears,
            heard: Vec::new(),
            peer_closed: false,
        }
    }

    /// The connection of a side that could make one.
    pub fn connection(&self) -> &Connection {
        self.connection.as_ref().unwrap()
    }

    fn is_handshaking(&self) -> bool {
        self.connection.as_ref().is_none_or(|connection| connection.is_handshaking())
    }

    fn speak_if(&mut self, may: impl FnOnce(&Self) -> bool) {
        if self.end.is_some() || self.said || self.is_handshaking() || !may(self) {
            return;
        }
        self.said = true;
        let Some(connection) = &mut self.connection else { return };
        connection.set_buffer_limit(None);
        connection.writer().write_all(&self.says).unwrap();
    }

    /// The client says goodbye once it has heard the answer, after which the server is done too.
    fn close_if_done(&mut self) {
        if matches!(self.end, Some(End::Done))
            && let Some(connection) = &mut self.connection
        {
            connection.send_close_notify();
        }
    }

    fn take_bytes(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if let Some(connection) = &mut self.connection {
            while connection.wants_write() {
                connection.write_tls(&mut bytes).unwrap();
            }
        }
        self.sent.extend_from_slice(&bytes);
        bytes
    }

    fn receive(&mut self, mut bytes: &[u8]) {
        while self.end.is_none() && !bytes.is_empty() {
            let Some(connection) = &mut self.connection else { return };
            connection.read_tls(&mut bytes).unwrap();
            match connection.process_new_packets() {
                Ok(state) => self.peer_closed |= state.peer_has_closed(),
                Err(error) => self.end = Some(End::Failed(error)),
            }
            match connection.reader().read_to_end(&mut self.heard) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => panic!("reading what was received: {error}"),
            }
        }
        let is_client = matches!(self.connection, Some(Connection::Client(_)));
        let heard_all = is_client && self.heard.len() >= self.hears.len();
        if self.end.is_none() && (heard_all || self.peer_closed) {
            assert_eq!(self.heard, self.hears, "what arrived is not what was said");
            self.end = Some(End::Done);
        }
    }

    fn closed(&self) -> bool {
        self.end.as_ref().is_some_and(End::is_clean_failure)
    }
}

/// Carries everything that `from` has to send, and that it hung up if it did.
fn transfer(from: &mut Side, to: &mut Side, meddle: impl FnOnce(&mut Vec<u8>)) -> bool {
    let mut bytes = from.take_bytes();
    let moved = !bytes.is_empty();
    meddle(&mut bytes);
    to.receive(&bytes);
    if from.closed() && to.end.is_none() {
        to.end = Some(End::Cut);
        return true;
    }
    moved
}

/// How many of the records in `sent` are encrypted.
pub fn protected_records(sent: &[u8], version: ProtocolVersion) -> usize {
    const CHANGE_CIPHER_SPEC: u8 = 20;
    const APPLICATION_DATA: u8 = 23;
    let (mut rest, mut count, mut changed) = (sent, 0, false);
    while let [kind, _, _, high, low, after @ ..] = rest {
        let length = usize::from(*high) << 8 | usize::from(*low);
        rest = &after[length..];
        let protected = match version {
            ProtocolVersion::TLSv1_3 => *kind == APPLICATION_DATA,
            _ => changed,
        };
        count += usize::from(protected);
        changed |= *kind == CHANGE_CIPHER_SPEC;
    }
    assert!(rest.is_empty(), "half a record was sent");
    count
}
