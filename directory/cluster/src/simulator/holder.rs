//! What a server that has a tail in etcd holds.

use std::rc::Rc;
use std::time::Duration;

use super::op::Pending;
use super::store::Row;
use crate::append::Appender;
use crate::lease::{Ask, Doubt, Lease};
use crate::message::MemberId;

/// How long a lease lasts.
const TTL: Duration = Duration::from_secs(5);

/// What a server has to do with etcd.
pub struct Holder {
    pub lease: Lease,
    pub lease_call: Option<(u64, Ask, Duration)>,
    pub follow_call: Option<(u64, Duration)>,
    pub next_follow: Duration,
    pub appender: Option<Appender>,
    pub append_call: Option<(u64, Duration)>,
    pub append_again: Option<Duration>,
    /// What is under way: rows that are here already, the row of a reign, or a write.
    pub under_way: Option<(Rc<Row>, Option<Pending>)>,
    pub is_open: bool,
    pub store: u64,
}

impl Holder {
    pub fn new(member: MemberId, now: Duration) -> Holder {
        Holder {
            lease: Lease::new(member, TTL, now),
            lease_call: None,
            follow_call: None,
            next_follow: now,
            appender: None,
            append_call: None,
            append_again: None,
            under_way: None,
            is_open: false,
            store: 0,
        }
    }

    /// Whether writes are taken.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Whether other members are to be asked.
    pub fn is_asking(&self) -> bool {
        self.is_open
            || matches!(self.lease.doubt_found(), Some(Doubt::Restored { .. } | Doubt::Starting))
    }
}
