//! Leases of etcd: granted, renewed, given back, and kept alive by a task.

use crate::client::Client;
use crate::error::Error;
use crate::etcd::Etcd;
use crate::limits::LEASE_S;
use crate::wire::{Any, Leased, Message};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::AbortHandle;

/// Has a lease granted: its number, and how long it lasts, which may be longer.
pub(crate) async fn grant(etcd: &Etcd, ttl: Duration) -> Result<(u64, Duration), Error> {
    let seconds = ttl.as_secs().clamp(*LEASE_S.start(), *LEASE_S.end());
    let request = json!({ "TTL": seconds.to_string() });
    let granted: Leased = etcd.client.call("/v3/lease/grant", &request, etcd.call_limit).await?;
    let ttl = lasting(&granted).filter(|_| granted.id != 0);
    Ok((granted.id, ttl.ok_or_else(|| Error::Answer("a lease without time".into()))?))
}

/// Renews a lease: how long it lasts from now on; `None` if it has expired.
pub(crate) async fn renew(
    client: &Client,
    id: u64,
    limit: Duration,
) -> Result<Option<Duration>, Error> {
    let request = json!({ "ID": id.to_string() });
    let kept: Message<Leased> = client.call("/v3/lease/keepalive", &request, limit).await?;
    let none = || Error::Answer("a lease was not renewed, and no reason is there".into());
    Ok(lasting(&kept.result.ok_or_else(none)?))
}

/// Gives a lease back, with all keys under it.
pub(crate) async fn revoke(etcd: &Etcd, id: u64) -> Result<(), Error> {
    let request = json!({ "ID": id.to_string() });
    let revoked: Result<Any, _> =
        etcd.client.call("/v3/lease/revoke", &request, etcd.call_limit).await;
    match revoked.map_err(Error::from) {
        Ok(Any {}) | Err(Error::Expired) => Ok(()),
        Err(why) => Err(why),
    }
}

fn lasting(lease: &Leased) -> Option<Duration> {
    u64::try_from(lease.ttl_s).ok().filter(|s| *s > 0 && *s < 1 << 32).map(Duration::from_secs)
}

/// A lease that is kept alive until this is dropped; then it expires by itself.
pub(crate) struct Alive {
    pub id: u64,
    keeper: AbortHandle,
}

impl Alive {
    /// Has a lease granted.
    pub async fn grant(etcd: &Etcd) -> Result<Alive, Error> {
        let (id, ttl) = grant(etcd, Duration::from_secs(etcd.lease_s)).await?;
        let keeper = keep(Arc::clone(&etcd.client), id, ttl);
        Ok(Alive { id, keeper: etcd.runtime.spawn(keeper).abort_handle() })
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

/// Three times within its time, and more often while etcd does not answer.
async fn keep(client: Arc<Client>, id: u64, ttl: Duration) {
    loop {
        tokio::time::sleep(ttl / 3).await;
        // Without an answer it may still be there: etcd makes leases longer when its leader changes.
        if let Ok(None) = renew(&client, id, ttl / 2).await {
            return;
        }
    }
}
