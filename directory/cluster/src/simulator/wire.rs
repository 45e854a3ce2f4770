//! What goes between servers.

use std::rc::Rc;
use std::time::Duration;

use super::op::Ack;
use super::store::Row;
use crate::message::{Frame, Refusal, Reign, Status};
use crate::own_writes::OwnWrites;

/// A connection over which a member follows: end 0 follows, end 1 writes.
pub struct Conn {
    /// Server and boot of each end.
    pub ends: [(usize, u64); 2],
    /// When the last frame to each end arrives.
    pub last: [Duration; 2],
    /// Frames go lost; the ends do not know.
    pub is_dead: bool,
}

/// What goes over a connection.
pub enum Message {
    Frame(Frame),
    Row(Rc<Row>),
}

/// A request of one server to another.
#[derive(Clone, Debug)]
pub enum Rpc {
    /// How it is; with the time of the one that asks.
    Status {
        asked: Duration,
    },
    Write {
        key: u32,
        write: u64,
    },
    Read {
        own: OwnWrites,
        client: usize,
        op: u64,
    },
    /// To promise a promotion that this reign may begin.
    Prepare {
        number: u64,
        reign: Reign,
    },
    /// The promotion has ended; `heard` is its reign if that has begun.
    Release {
        number: u64,
        heard: Option<Reign>,
    },
}

/// Its answer.
#[derive(Clone, Debug)]
pub enum RpcReply {
    /// With the position that is on the disk, and when it was asked.
    Status(Box<Status>, u64, Duration),
    Written(Option<Ack>),
    Read(bool),
    Prepared(Prepared),
    Lost,
}

/// The answer to a member that asks whether it may begin a reign.
pub type Prepared = Result<Box<Status>, (Refusal, Option<Reign>)>;
