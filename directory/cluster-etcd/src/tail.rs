//! The four calls of the cluster's logic, done by etcd.

use crate::error::Error;
use crate::etcd::Etcd;
use crate::row::{Point, Row};
use keyway_cluster::append::{self, Appended, Fence, Followed};
use keyway_cluster::lease::{Ask, StoreId, Told};

/// etcd as the tail of one member, with the lease that it holds.
pub struct Tail {
    etcd: Etcd,
    /// The fence that was taken last.
    fence: Option<Fence>,
    /// Why the last call that failed did so.
    failure: Option<Error>,
}

impl Tail {
    /// A tail without a lease.
    pub fn new(etcd: Etcd) -> Tail {
        Tail { etcd, fence: None, failure: None }
    }

    /// The reason of the last call that did not end well, for a person; once.
    pub fn failure(&mut self) -> Option<Error> {
        self.failure.take()
    }

    fn appended(&self, fence: &Fence, row: &append::Row) -> Result<Appended, Error> {
        let ours = Row::new(row.position, row.stored.clone())?;
        if (ours.before().digest, ours.point().digest) != (row.before, row.digest) {
            let position = row.position;
            return Err(Error::Config(format!(
                "position {position} has other digests than its row"
            )));
        }
        use crate::append::Appended as Ours;
        Ok(match self.etcd.append(fence, &ours)? {
            Ours::Done => Appended::Done,
            // Another feed than this member's: the next look at etcd says so.
            Ours::Fenced | Ours::Conflict(_) | Ours::Apart(_) => Appended::Fenced,
            Ours::Unknown(_) => Appended::Unknown,
        })
    }

    fn told(&mut self, ask: &Ask) -> Result<Told, Error> {
        Ok(match ask {
            Ask::Look => {
                let state = self.etcd.look()?;
                Told::State {
                    store: StoreId(state.store),
                    revision: state.revision,
                    holder: state.holder.map(|holder| holder.member),
                    last: state.head.map(|Point { position, digest }| (position, digest)),
                }
            }
            Ask::Take { member, ttl } => match self.etcd.take(*member, *ttl)? {
                Some(fence) => {
                    self.fence = Some(fence);
                    Told::Taken(fence)
                }
                None => Told::Refused,
            },
            Ask::Renew(fence) => {
                let is_renewed = self.etcd.renew(fence)?;
                // etcd may have been restored, with this lease in it: it says which one it is.
                let state = self.etcd.look()?;
                let (store, revision) = (StoreId(state.store), state.revision);
                match is_renewed && state.holder == Some(*fence) {
                    true => Told::Renewed { store, revision },
                    false => Told::Refused,
                }
            }
            Ask::Release(fence) => {
                self.etcd.release(fence)?;
                Told::Refused
            }
        })
    }

    fn noted<A>(&mut self, done: Result<A, Error>) -> Option<A> {
        done.map_err(|why| self.failure = Some(why)).ok()
    }
}

impl append::Tail for Tail {
    fn append(&mut self, fence: &Fence, row: &append::Row) -> Appended {
        let done = self.appended(fence, row);
        self.noted(done).unwrap_or(Appended::Unavailable)
    }

    fn follow(&mut self, after: u64, most: usize) -> Followed {
        let found = self.etcd.rows(after, most);
        match self.noted(found) {
            Some(Ok(rows)) => Followed::Rows(rows.into_iter().map(append::Row::from).collect()),
            Some(Err(first)) => Followed::Compacted { first },
            None => Followed::Unavailable,
        }
    }

    fn trim(&mut self, until: u64) -> bool {
        let trimmed =
            self.fence.ok_or(Error::Fenced).and_then(|fence| self.etcd.trim(&fence, until));
        self.noted(trimmed).is_some()
    }

    fn lease(&mut self, ask: &Ask) -> Told {
        let told = self.told(ask);
        self.noted(told).unwrap_or(Told::Unavailable)
    }
}

impl From<Row> for append::Row {
    fn from(row: Row) -> append::Row {
        let Point { position, digest } = row.point();
        let before = row.before().digest;
        append::Row { position, before, digest, stored: row.into_bytes() }
    }
}
