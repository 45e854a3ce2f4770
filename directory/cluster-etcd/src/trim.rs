//! The writer's care for etcd's space: old rows are removed.

use crate::error::Error;
use crate::etcd::Etcd;
use crate::fence::holds;
use crate::wire::{Alarms, Any, deletes};
use keyway_cluster::append::Fence;
use serde_json::json;
use std::time::Duration;

/// The alarm of a member whose quota is used up.
const NO_SPACE: &str = "NOSPACE";
/// How long a member may take to write its data anew: its quota is 8 GiB at most.
const RECLAIM_LIMIT: Duration = Duration::from_secs(120);

impl Etcd {
    /// Removes rows up to a position, that one too, but never the last one, and has etcd forget its revisions so far.
    /// Returns how many rows that were. A follower that has not come so far needs a base.
    ///
    /// # Errors
    /// [`Error::Fenced`], and those of a call; then it may be tried again.
    pub fn trim(&self, fence: &Fence, until: u64) -> Result<u64, Error> {
        let trimmed = async {
            let last = self.read_head().await?.map_or(0, |head| head.position);
            // All below it, but for the last row.
            let end = self.keys.row(until.saturating_add(1).min(last));
            let success = vec![deletes(&self.keys.row(0), &end)];
            let answer = self.transact(holds(&self.keys, fence), success, vec![]).await?;
            if !answer.succeeded {
                return Err(Error::Fenced);
            }
            let revision = answer.header.revision;
            let request = json!({ "revision": revision.to_string() });
            let compacted: Result<Any, _> =
                self.client.call("/v3/kv/compaction", &request, self.call_limit).await;
            match compacted.map_err(Error::from) {
                Ok(Any {}) => {}
                // As far already, by another try.
                Err(Error::Refused(why)) if why.contains("has been compacted") => {}
                Err(why) => return Err(why),
            }
            let deleted =
                answer.responses.into_iter().next().and_then(|it| it.response_delete_range);
            Ok(deleted.unwrap_or_default().deleted)
        };
        self.runtime.block_on(trimmed)
    }

    /// Has every member of etcd give its free space back, one after the other, and write again if its space was used up:
    /// after [`Error::Full`] and a [`Etcd::trim`]. A member does nothing else meanwhile, so this is for rare use.
    ///
    /// # Errors
    /// Those of a call.
    pub fn reclaim(&self) -> Result<(), Error> {
        self.runtime.block_on(async {
            self.client.each("/v3/maintenance/defragment", &json!({}), RECLAIM_LIMIT).await?;
            let get = json!({ "action": "GET" });
            let alarms: Alarms =
                self.client.call("/v3/maintenance/alarm", &get, self.call_limit).await?;
            for alarm in alarms.alarms.iter().filter(|alarm| alarm.alarm == NO_SPACE) {
                let member = &alarm.member;
                let request =
                    json!({ "action": "DEACTIVATE", "memberID": member, "alarm": NO_SPACE });
                let call = self.client.call("/v3/maintenance/alarm", &request, self.call_limit);
                let _done: Any = call.await?;
            }
            Ok(())
        })
    }
}
