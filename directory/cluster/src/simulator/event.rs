//! What happens at a time.

use std::collections::BTreeMap;

use super::etcd::{Call, Heard};
use super::op::{Op, Reply};
use super::wire::{Conn, Message, Rpc, RpcReply};

/// Something that happens.
pub enum Event {
    /// A server looks at its clock.
    Tick { server: usize, boot: u64 },
    /// A frame arrives at one end of a connection.
    Deliver { conn: u64, side: usize, message: Message },
    /// A connection was made, or not.
    Connected { server: usize, boot: u64, conn: u64, target: usize },
    /// One end of a connection learns that it has ended.
    Closed { server: usize, boot: u64, conn: u64 },
    /// A request of another server.
    Rpc { from: usize, boot: u64, to: usize, id: u64, rpc: Rpc },
    /// Its answer.
    RpcReply { to: usize, boot: u64, id: u64, from: usize, reply: RpcReply },
    /// The disk has what was written.
    Synced { server: usize, boot: u64 },
    /// A client goes on.
    Client { client: usize },
    /// A client does not wait any longer.
    ClientLate { client: usize, op: u64 },
    /// A client's operation comes to a server.
    Serve { server: usize, boot: u64, op: Op },
    /// A client has its reply.
    Reply { client: usize, op: u64, reply: Reply },
    /// A call comes to etcd.
    Etcd { from: usize, boot: u64, id: u64, call: Call },
    /// Its answer comes.
    EtcdReply { to: usize, boot: u64, id: u64, heard: Heard },
    /// A fault happens, or a person does something.
    Fault,
    /// A server that was killed is started.
    Start { server: usize },
    /// A cut between two ends.
    Mend { one: usize, other: usize },
    /// etcd is back.
    EtcdBack,
}

impl Event {
    /// The server whose process handles it.
    pub fn server(&self, conns: &BTreeMap<u64, Conn>) -> Option<usize> {
        match self {
            Event::Tick { server, .. }
            | Event::Connected { server, .. }
            | Event::Closed { server, .. }
            | Event::Synced { server, .. }
            | Event::Serve { server, .. } => Some(*server),
            Event::Rpc { to, .. } | Event::RpcReply { to, .. } | Event::EtcdReply { to, .. } => {
                Some(*to)
            }
            Event::Deliver { conn, side, .. } => conns.get(conn).map(|conn| conn.ends[*side].0),
            _ => None,
        }
    }
}
