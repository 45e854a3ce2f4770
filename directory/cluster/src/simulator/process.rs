//! A server and its process: what they hold.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use super::holder::Holder;
use super::op::{Ack, Op, Origin, Pending};
use super::promotion::{Promised, Promotion};
use super::store::{Row, Store};
use crate::follower::Follower;
use crate::message::{MemberId, Reign};
use crate::own_writes::OwnWrites;
use crate::role::Standing;
use crate::writer::Progress;

/// How long a request to another server may take, and a read may wait.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// A server.
pub struct Server {
    pub member: MemberId,
    pub store: Store,
    /// The last position that a power cut leaves.
    pub durable: u64,
    /// What the folder remembers of reigns.
    pub heard: Option<Reign>,
    pub process: Option<Process>,
    pub boots: u64,
    pub paused: Option<Duration>,
    pub clock: Duration,
    pub slow_until: Duration,
    /// Until when its line is busy with what it has sent.
    pub sends_until: Duration,
    /// A copy that was ended for good.
    pub is_ended: bool,
    /// A copy of this server's folder from some time ago.
    pub copy: Option<Store>,
}

/// A read that waits.
pub struct Waiting {
    pub op: Op,
    pub own: OwnWrites,
    pub asked: Duration,
}

/// A process.
pub struct Process {
    pub standing: Standing,
    pub follower: Option<Follower>,
    pub follow_conn: Option<u64>,
    pub progress: Progress,
    pub serving: BTreeMap<u64, MemberId>,
    pub queue: Vec<Pending>,
    pub committing: Vec<Pending>,
    /// Committed, and not acknowledged yet.
    pub held: Vec<(Origin, Ack)>,
    pub received: VecDeque<Rc<Row>>,
    pub applying: usize,
    pub sessions: BTreeMap<u64, OwnWrites>,
    pub waiting: Vec<Waiting>,
    pub forwarded: BTreeMap<u64, (Op, Duration)>,
    pub next_ask: Duration,
    pub next_beat: Duration,
    pub next_trim: Duration,
    pub holder: Option<Holder>,
    pub promotion: Option<Promotion>,
    pub promised: Promised,
}

impl Process {
    /// Whether changes that were taken are not on the disk yet, or not acknowledged.
    pub fn is_committing(&self) -> bool {
        !(self.queue.is_empty() && self.committing.is_empty() && self.held.is_empty())
    }

    /// Whether nothing else may be brought to the disk now.
    pub fn is_disk_busy(&self) -> bool {
        let is_beginning = self.promotion.as_ref().is_some_and(Promotion::is_beginning);
        is_beginning || self.applying > 0 || !(self.committing.is_empty() && self.held.is_empty())
    }
}

impl Server {
    pub fn new(member: MemberId, store: Store) -> Server {
        let durable = store.position();
        Server {
            member,
            store,
            durable,
            heard: None,
            process: None,
            boots: 0,
            paused: None,
            clock: Duration::ZERO,
            slow_until: Duration::ZERO,
            sends_until: Duration::ZERO,
            is_ended: false,
            copy: None,
        }
    }

    pub fn connecting(&mut self, conn: u64) {
        if let Some(process) = &mut self.process {
            process.follow_conn = Some(conn);
        }
    }
}
