//! The writer's lease, kept alive by a task.

use crate::alive::{Alive, revoke};
use crate::error::Error;
use crate::etcd::Etcd;
use keyway_cluster::append::Fence;
use keyway_cluster::message::MemberId;
use std::time::{Duration, Instant};

/// Between two looks for the writer. etcd itself looks for expired leases twice a second.
const VACANCY_PAUSE: Duration = Duration::from_millis(250);

/// The end of a campaign.
pub enum Campaign {
    /// This member is the writer.
    Won(Lease),
    /// Another one is, or this one by another lease.
    Held(Fence),
}

/// The right to write, kept alive until this is dropped. etcd checks it with each change: its holder need not know the
/// time.
pub struct Lease {
    fence: Fence,
    alive: Alive,
}

impl Etcd {
    /// Campaigns once for being the writer.
    ///
    /// # Errors
    /// Those of a call.
    pub fn lease(&self, member: MemberId) -> Result<Campaign, Error> {
        self.runtime.block_on(async {
            // No lease is granted for nothing while another member writes.
            if let Some(holder) = self.state().await?.holder {
                return Ok(Campaign::Held(holder));
            }
            let alive = Alive::grant(self).await?;
            if let Some(fence) = self.put_writer(member, alive.id).await? {
                return Ok(Campaign::Won(Lease { fence, alive }));
            }
            let gone = || Error::Unavailable("the writer has changed: campaign again".into());
            self.state().await?.holder.map(Campaign::Held).ok_or_else(gone)
        })
    }

    /// Waits until there is no writer, for as long as `limit` says. Whether there is none.
    ///
    /// # Errors
    /// Those of a call.
    pub fn wait_for_vacancy(&self, limit: Duration) -> Result<bool, Error> {
        self.runtime.block_on(async {
            let end = Instant::now() + limit;
            loop {
                if self.state().await?.holder.is_none() {
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
}

impl Lease {
    /// By what etcd knows it.
    pub fn fence(&self) -> &Fence {
        &self.fence
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
        etcd.runtime.block_on(revoke(etcd, self.alive.id))
    }
}
