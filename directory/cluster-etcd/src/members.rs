//! Members that are there now: each says so under a lease of its own.

use crate::alive::{Alive, revoke};
use crate::error::Error;
use crate::etcd::Etcd;
use crate::limits::MEMBERS_MAX;
use crate::member::Member;
use crate::wire::{puts, range_to, reads};

/// A member's own row, kept alive until this is dropped.
pub struct Presence {
    alive: Alive,
}

impl Etcd {
    /// Says that a member is there.
    ///
    /// # Errors
    /// Those of a call, and [`Error::TooLarge`] for a name and URL of more than 4 KiB.
    pub fn join(&self, member: &Member) -> Result<Presence, Error> {
        let value = member.to_bytes()?;
        self.runtime.block_on(async {
            let alive = Alive::grant(self).await?;
            self.put_member(member, &value, &alive).await?;
            Ok(Presence { alive })
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

    async fn put_member(&self, member: &Member, value: &[u8], alive: &Alive) -> Result<(), Error> {
        let step = puts(&self.keys.member(member.id), value, alive.id);
        self.transact(vec![], vec![step], vec![]).await?;
        Ok(())
    }
}

impl Presence {
    /// Says anew what a member is and how far it has come, under a new lease where the old one has expired.
    ///
    /// # Errors
    /// As [`Etcd::join`].
    pub fn update(&mut self, etcd: &Etcd, member: &Member) -> Result<(), Error> {
        let value = member.to_bytes()?;
        etcd.runtime.block_on(async {
            match etcd.put_member(member, &value, &self.alive).await {
                Err(Error::Expired) => {}
                result => return result,
            }
            self.alive = Alive::grant(etcd).await?;
            etcd.put_member(member, &value, &self.alive).await
        })
    }

    /// Says that the member has gone.
    ///
    /// # Errors
    /// Those of a call; then it goes by itself, a moment later.
    pub fn leave(self, etcd: &Etcd) -> Result<(), Error> {
        etcd.runtime.block_on(revoke(etcd, self.alive.id))
    }
}
