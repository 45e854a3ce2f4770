//! The writer's lease, step by step: looked at, taken, renewed, given back. The caller knows the time.

use crate::alive::{grant, renew, revoke};
use crate::error::Error;
use crate::etcd::Etcd;
use crate::fence::{holder, value};
use crate::row::Point;
use crate::wire::{created, puts, range, reads};
use keyway_cluster::append::Fence;
use keyway_cluster::message::MemberId;
use std::time::Duration;

/// How things stand in etcd, all at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct State {
    /// Which etcd it is: the identifier of its cluster.
    pub store: u64,
    /// Its revision.
    pub revision: u64,
    /// The writer.
    pub holder: Option<Fence>,
    /// The end of the feed; `None` if there is no feed, or its end is lost.
    pub head: Option<Point>,
}

impl Etcd {
    /// Looks who is the writer and where the feed ends.
    ///
    /// # Errors
    /// Those of a call.
    pub fn look(&self) -> Result<State, Error> {
        self.runtime.block_on(self.state())
    }

    pub(crate) async fn state(&self) -> Result<State, Error> {
        let looks = [self.keys.writer(), self.keys.head()].map(|key| reads(range(&key)));
        let mut answer = self.transact(vec![], looks.to_vec(), vec![]).await?;
        let holder = answer.one(0).map(|found| holder(&found)).transpose()?;
        let head = answer.one(1).and_then(|found| Point::from_bytes(&found.value));
        let (store, revision) = (answer.header.cluster_id, answer.header.revision);
        Ok(State { store, revision, holder, head })
    }

    /// Makes a member the writer, by a lease of so many seconds, if there is none; `None` if there is another one. It
    /// expires unless it is renewed.
    ///
    /// # Errors
    /// Those of a call. A lease that was taken without an answer expires by itself.
    pub fn take(&self, member: MemberId, ttl: Duration) -> Result<Option<Fence>, Error> {
        self.runtime.block_on(async {
            let (lease, _) = grant(self, ttl).await?;
            self.put_writer(member, lease).await
        })
    }

    /// Puts the writer's key under a lease, which is given back if there is another writer.
    pub(crate) async fn put_writer(
        &self,
        member: MemberId,
        lease: u64,
    ) -> Result<Option<Fence>, Error> {
        let (key, value) = (self.keys.writer(), value(member, lease));
        let (compare, success) = (vec![created(&key, 0)], vec![puts(&key, &value, lease)]);
        let mut answer = self.transact(compare, success, vec![reads(range(&key))]).await?;
        let revision = answer.header.revision;
        if answer.succeeded {
            return Ok(Some(Fence { revision, member, nonce: lease }));
        }
        let found = answer.one(0).map(|found| holder(&found)).transpose()?;
        // It may be this one's, put by a try that seemed to fail.
        let own = found.filter(|fence| fence.member == member && fence.nonce == lease);
        if own.is_none() {
            revoke(self, lease).await?;
        }
        Ok(own)
    }

    /// Lets the writer's lease last from now on. `false` if it has expired.
    ///
    /// # Errors
    /// Those of a call.
    pub fn renew(&self, fence: &Fence) -> Result<bool, Error> {
        let renewed = renew(&self.client, fence.nonce, self.call_limit);
        Ok(self.runtime.block_on(renewed)?.is_some())
    }

    /// Gives the writer's lease back at once, so that another member need not wait.
    ///
    /// # Errors
    /// Those of a call; then it expires by itself.
    pub fn release(&self, fence: &Fence) -> Result<(), Error> {
        self.runtime.block_on(revoke(self, fence.nonce))
    }
}
