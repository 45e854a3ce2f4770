//! Members that are there now: each says so under a lease of its own.

use crate::alive::{Alive, revoke};
use crate::error::Error;
use crate::etcd::Etcd;
use crate::limits::MEMBERS_MAX;
use crate::member::Member;
use crate::wire::{leased, puts, range, range_to, reads};

/// A member's own row, kept alive until this is dropped.
pub struct Presence {
    alive: Alive,
}

impl Etcd {
    /// Says that a member is there. `None` if another process has said so of this member, and is there still, or was a
    /// moment ago: its lease lasts.
    ///
    /// # Errors
    /// Those of a call, and [`Error::TooLarge`] for a name and URL of more than 4 KiB.
    pub fn join(&self, member: &Member) -> Result<Option<Presence>, Error> {
        let value = member.to_bytes()?;
        self.runtime.block_on(async {
            let alive = Alive::grant(self).await?;
            let key = self.keys.member(member.id);
            let success = vec![puts(&key, &value, alive.id)];
            let failure = vec![reads(range(&key))];
            // It is not there, or another program has put it there: no process keeps one alive that is under no lease.
            let mut answer = self.transact(vec![leased(&key, 0)], success, failure).await?;
            // A try that seemed to fail may have put it.
            if answer.succeeded || answer.one(0).is_some_and(|it| it.lease == alive.id) {
                return Ok(Some(Presence { alive }));
            }
            revoke(self, alive.id).await?;
            Ok(None)
        })
    }

    /// The members that are there, at most 256, in the order of their numbers.
    ///
    /// # Errors
    /// Those of a call.
    pub fn members(&self) -> Result<Vec<Member>, Error> {
        let (key, end) = self.keys.members();
        let step = reads(range_to(&key, &end, MEMBERS_MAX));
        let mut answer = self.runtime.block_on(self.transact(vec![], vec![step], vec![]))?;
        let member = |found: &crate::wire::KeyValue| {
            let id = self.keys.member_id(&found.key);
            let id =
                id.ok_or_else(|| Error::Answer("the key of a member makes no sense".into()))?;
            Member::from_bytes(id, &found.value)
        };
        answer.found(0).iter().map(member).collect()
    }
}

impl Presence {
    /// Says anew what a member is and how far it has come.
    ///
    /// # Errors
    /// As [`Etcd::join`]; [`Error::Expired`] if the lease has: then it is joined anew.
    pub fn update(&self, etcd: &Etcd, member: &Member) -> Result<(), Error> {
        let value = member.to_bytes()?;
        let key = etcd.keys.member(member.id);
        let put = vec![puts(&key, &value, self.alive.id)];
        let put = etcd.transact(vec![leased(&key, self.alive.id)], put, vec![]);
        match etcd.runtime.block_on(put)?.succeeded {
            true => Ok(()),
            false => Err(Error::Expired),
        }
    }

    /// Says that the member has gone.
    ///
    /// # Errors
    /// Those of a call; then it goes by itself, a moment later.
    pub fn leave(self, etcd: &Etcd) -> Result<(), Error> {
        etcd.runtime.block_on(revoke(etcd, self.alive.id))
    }
}
