//! Clients, and what they ask for.

use crate::message::{Digest, Reign};

/// A client.
#[derive(Default)]
pub struct Client {
    pub session: Option<Session>,
    pub op: Option<u64>,
    /// The writes of this connection.
    pub wrote: Vec<Ack>,
}

/// A connection to a server.
#[derive(Clone, Copy)]
pub struct Session {
    pub server: usize,
    pub boot: u64,
    pub number: u64,
}

/// An operation.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    pub client: usize,
    pub session: u64,
    pub number: u64,
    pub kind: OpKind,
}

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub enum OpKind {
    Write { key: u32, write: u64 },
    Read,
}

/// A write that a client was told is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ack {
    pub write: u64,
    pub reign: Option<Reign>,
    pub position: u64,
    pub digest: Digest,
    /// The server that committed it.
    pub server: usize,
}

/// What is answered.
#[derive(Clone, Copy, Debug)]
pub enum Reply {
    Written(Ack),
    Read,
    Unavailable,
    Closed,
}

impl Client {
    /// Whether it still waits for this operation.
    pub fn is_at(&self, op: u64) -> bool {
        self.op == Some(op)
    }
}

/// A write that waits for its commit.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    pub key: u32,
    pub write: u64,
    pub origin: Origin,
}

/// To what a result goes.
#[derive(Clone, Copy, Debug)]
pub enum Origin {
    /// A client at this server.
    Client(Op),
    /// Another server that has forwarded it.
    Server { to: usize, boot: u64, id: u64 },
}
