//! Leases: granted, kept alive by a task, given back.

use crate::client::Client;
use crate::error::Error;
use crate::etcd::Etcd;
use crate::wire::{Any, Leased, Message};
use keyway_lock::Unpoisoned;
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::task::AbortHandle;

/// A lease that is kept alive until this is dropped; then it expires by itself.
pub(crate) struct Alive {
    pub id: i64,
    /// `None` once etcd has said that it has expired.
    until: Arc<Mutex<Option<Instant>>>,
    keeper: AbortHandle,
}

impl Alive {
    /// Has a lease granted.
    pub async fn grant(etcd: &Etcd) -> Result<Alive, Error> {
        let asked = Instant::now();
        let request = json!({ "TTL": etcd.lease_s.to_string() });
        let granted: Leased =
            etcd.client.call("/v3/lease/grant", &request, etcd.call_limit).await?;
        let ttl = lasting(&granted).ok_or_else(|| Error::Answer("a lease without time".into()))?;
        let until = Arc::new(Mutex::new(Some(asked + ttl)));
        let keeper = keep(Arc::clone(&etcd.client), granted.id, ttl, Arc::clone(&until));
        let keeper = etcd.runtime.spawn(keeper).abort_handle();
        Ok(Alive { id: granted.id, until, keeper })
    }

    /// Until when it lasts, if nothing more is heard from etcd.
    pub fn until(&self) -> Option<Instant> {
        *self.until.lock().unpoisoned()
    }

    /// Gives it back, with all keys under it.
    pub async fn revoke(self, etcd: &Etcd) -> Result<(), Error> {
        self.keeper.abort();
        let request = json!({ "ID": self.id.to_string() });
        let revoked: Result<Any, _> =
            etcd.client.call("/v3/lease/revoke", &request, etcd.call_limit).await;
        match revoked.map_err(Error::from) {
            Ok(Any {}) | Err(Error::Expired) => Ok(()),
            Err(why) => Err(why),
        }
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

fn lasting(lease: &Leased) -> Option<Duration> {
    u64::try_from(lease.ttl_s).ok().filter(|s| *s > 0 && *s < 1 << 32).map(Duration::from_secs)
}

/// Three times within its time, and more often while etcd does not answer.
async fn keep(client: Arc<Client>, id: i64, ttl: Duration, until: Arc<Mutex<Option<Instant>>>) {
    let request = json!({ "ID": id.to_string() });
    loop {
        tokio::time::sleep(ttl / 3).await;
        let asked = Instant::now();
        let kept: Result<Message<Leased>, _> =
            client.call("/v3/lease/keepalive", &request, ttl / 2).await;
        // Without an answer it may still be there: etcd makes leases longer when its leader changes.
        let Ok(Message { result: Some(kept), .. }) = kept else { continue };
        let ttl = lasting(&kept);
        *until.lock().unpoisoned() = ttl.map(|ttl| asked + ttl);
        if ttl.is_none() {
            return;
        }
    }
}
