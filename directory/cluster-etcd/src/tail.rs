//! The calls of the cluster's logic, done by etcd.

use crate::error::Error;
use crate::etcd::Etcd;
use crate::row::{Point, Row};
use keyway_cluster::append::{self, Appended, Fence};
use keyway_cluster::lease::{Ask, StoreId, Told};

/// etcd as the tail of one member.
pub struct Tail {
    etcd: Etcd,
    /// Why the last call that failed did so.
    failure: Option<Error>,
}

impl Tail {
    /// A tail in this etcd.
    pub fn new(etcd: Etcd) -> Tail {
        Tail { etcd, failure: None }
    }

    /// The reason of the last call that did not end well, for a person; once.
    pub fn failure(&mut self) -> Option<Error> {
        self.failure.take()
    }

    fn appended(&mut self, fence: &Fence, row: &append::Row) -> Result<Appended, Error> {
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
            Ours::Fenced => Appended::Fenced,
            // Another feed than this member's: it writes no more until it has looked at what is there.
            Ours::Conflict(_) | Ours::Apart(_) => {
                self.failure = Some(Error::Apart);
                Appended::Fenced
            }
            Ours::Unknown(_) => Appended::Unknown,
        })
    }

    fn told(&self, ask: &Ask) -> Result<Told, Error> {
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
                Some(fence) => Told::Taken(fence),
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

    fn lease(&mut self, ask: &Ask) -> Told {
        let told = self.told(ask);
        self.noted(told).unwrap_or(Told::Unavailable)
    }
}
