//! The writer's lease: one member at a time holds it, and the revision that created its key fences what it does.

use crate::alive::Alive;
use crate::error::Error;
use crate::etcd::Etcd;
use crate::member::{MemberId, number};
use crate::wire::{created, puts, range, reads, valued};
use serde_json::Value;
use std::time::{Duration, Instant};

/// Between two looks for the writer. etcd itself looks for expired leases twice a second.
const VACANCY_PAUSE: Duration = Duration::from_millis(250);

/// The member that is the writer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Writer {
    /// The member.
    pub member: MemberId,
    /// The revision of etcd that created its key.
    pub fence: i64,
}

/// The end of a campaign.
pub enum Campaign {
    /// This member is the writer.
    Won(Lease),
    /// Another one is, or this one by another lease.
    Held(Writer),
}

/// The right to write, kept alive until this is dropped. etcd checks it with each change: its holder need not know the
/// time.
pub struct Lease {
    writer: Writer,
    value: Vec<u8>,
    alive: Alive,
}

impl Etcd {
    /// Campaigns once for being the writer.
    ///
    /// # Errors
    /// Those of a call.
    pub fn lease(&self, member: MemberId) -> Result<Campaign, Error> {
        self.runtime.block_on(self.campaign(member))
    }

    /// The writer, if there is one.
    ///
    /// # Errors
    /// Those of a call.
    pub fn writer(&self) -> Result<Option<Writer>, Error> {
        self.runtime.block_on(self.read_writer())
    }

    /// Waits until there is no writer, for as long as `limit` says. Whether there is none.
    ///
    /// # Errors
    /// Those of a call.
    pub fn wait_for_vacancy(&self, limit: Duration) -> Result<bool, Error> {
        self.runtime.block_on(async {
            let end = Instant::now() + limit;
            loop {
                if self.read_writer().await?.is_none() {
                    return Ok(true);
                }
                let left = end.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Ok(false);
                }
                tokio::time::sleep(left.min(VACANCY_PAUSE)).await;
            }
        })
    }

    async fn read_writer(&self) -> Result<Option<Writer>, Error> {
        let Some(found) = self.one(&self.keys.writer()).await? else { return Ok(None) };
        let member = found.value.get(..16).and_then(number).map(MemberId);
        let member =
            member.ok_or_else(|| Error::Answer("the writer's key makes no sense".into()))?;
        Ok(Some(Writer { member, fence: found.create_revision }))
    }

    async fn campaign(&self, member: MemberId) -> Result<Campaign, Error> {
        // No lease is granted for nothing while another member writes.
        if let Some(writer) = self.read_writer().await? {
            return Ok(Campaign::Held(writer));
        }
        let alive = Alive::grant(self).await?;
        // The lease is in the value: an etcd that was restored may give a revision twice, a lease hardly.
        let value = format!("{member} {:016x}", alive.id).into_bytes();
        let key = self.keys.writer();
        let compare = vec![created(&key, 0)];
        let success = vec![puts(&key, &value, alive.id)];
        let answer = self.transact(compare, success, vec![reads(range(&key))]).await?;
        if answer.succeeded {
            let fence = answer.header.revision;
            return Ok(Campaign::Won(Lease { writer: Writer { member, fence }, value, alive }));
        }
        // It may be ours, put by a try that seemed to fail.
        match self.one(&key).await? {
            Some(found) if found.value == value => {
                let fence = found.create_revision;
                Ok(Campaign::Won(Lease { writer: Writer { member, fence }, value, alive }))
            }
            _ => {
                alive.revoke(self).await?;
                let writer = self.read_writer().await?;
                let gone = || Error::Unavailable("the writer has changed: campaign again".into());
                writer.map(Campaign::Held).ok_or_else(gone)
            }
        }
    }
}

impl Lease {
    /// This member, and its fence.
    pub fn writer(&self) -> Writer {
        self.writer
    }

    /// Whether the lease should still be there at a time: a hint, by this machine's clock. `false` says to stop; `true`
    /// says nothing of what etcd will do.
    pub fn is_held_until(&self, now: Instant) -> bool {
        self.alive.until().is_some_and(|until| now < until)
    }

    /// Gives it back at once, so that another member need not wait.
    ///
    /// # Errors
    /// Those of a call; then it expires by itself.
    pub fn release(self, etcd: &Etcd) -> Result<(), Error> {
        etcd.runtime.block_on(self.alive.revoke(etcd))
    }

    /// The conditions by which etcd knows that it is held.
    pub(crate) fn held(&self, etcd: &Etcd) -> [Value; 2] {
        let key = etcd.keys.writer();
        [created(&key, self.writer.fence), valued(&key, &self.value)]
    }

    /// Whether the key of the writer, as it was read, is this one's.
    pub(crate) fn is(&self, fence: i64, value: &[u8]) -> bool {
        fence == self.writer.fence && value == self.value
    }
}
