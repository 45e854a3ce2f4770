//! The writer's commits, each in etcd before it is on the writer's disk.

use super::node::Node;
use keyway_cluster::append::{Appender, Fence, Outcome, Row, Tail as _};
use keyway_cluster::message::Digest;
use keyway_cluster_etcd::{self as etcd, Tail};
use keyway_lock::Unpoisoned;
use keyway_store::{Append, Error, RawRow};
use std::sync::{Mutex, Weak};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// For how long a commit of which it is not known whether etcd has it holds up those behind it.
const PATIENCE: Duration = Duration::from_secs(10);

/// Takes commits to etcd, for the holder of a fence.
pub(super) struct ToEtcd {
    pub node: Weak<Node>,
    pub tail: Mutex<Tail>,
    pub fence: Fence,
}

/// A row of the feed as the logic has it.
pub(super) fn row_of(raw: &RawRow) -> Row {
    Row {
        position: raw.position(),
        before: Digest(raw.before().0),
        digest: Digest(raw.digest().0),
        stored: raw.bytes().to_vec(),
    }
}

impl Append for ToEtcd {
    fn append(&self, position: u64, stored: &[u8]) -> Result<(), Error> {
        let row = RawRow::parse(position, stored);
        let raw = row.map_err(|why| Error::Damaged { what: why.to_string(), entry: None })?;
        let begun = Instant::now();
        let mut appender = Appender::new(self.fence);
        appender.push(row_of(&raw));
        let mut tail = self.tail.lock().unpoisoned();
        loop {
            let Some((fence, row)) = appender.sent().map(|(fence, row)| (*fence, row.clone()))
            else {
                return Err(self.ends("the lease in etcd is another member's", false));
            };
            let appended = tail.append(&fence, &row);
            let failure = tail.failure();
            let why = failure.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
            match appender.told(appended, begun.elapsed()) {
                Outcome::Done => return Ok(()),
                Outcome::NotDone if matches!(failure, Some(etcd::Error::TooLarge(_))) => {
                    let why =
                        format!("this change is too large for one of a cluster with etcd{why}");
                    return Err(Error::TooLargeToAppend { why });
                }
                Outcome::NotDone => {
                    let why = format!(
                        "etcd takes no changes now{why}; nothing was changed, and reads go on: try again"
                    );
                    return Err(Error::NotAppended { why });
                }
                Outcome::Again(at) if begun.elapsed() < PATIENCE => {
                    sleep(at.saturating_sub(begun.elapsed()));
                }
                Outcome::Again(_) => {
                    let why = format!(
                        "etcd does not answer{why}; whether the change is made is not known yet"
                    );
                    return Err(self.ends(&why, true));
                }
                Outcome::Fenced => {
                    let why =
                        failure.map_or("another member writes now".into(), |why| why.to_string());
                    return Err(self.ends(&format!("{why}; nothing was changed"), false));
                }
            }
        }
    }
}

impl ToEtcd {
    /// This server takes no more changes until it has what etcd has.
    fn ends(&self, why: &str, is_in_doubt: bool) -> Error {
        if let Some(node) = self.node.upgrade() {
            node.close(why, is_in_doubt);
        }
        Error::NotAppended { why: why.to_owned() }
    }
}
