//! How a member is, as `cn=Cluster,cn=monitor` and as gauges show it.

use super::node::Node;
use keyway_cluster::message::{FollowerStatus, RoleName, Status};
use keyway_ldapd::monitor_branch;
use keyway_lock::Unpoisoned;
use keyway_meter::{Gauge, gauge};
use keyway_server::VirtualEntry;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How it was a second ago.
pub struct Monitor {
    node: Option<Arc<Node>>,
    gauges: [Gauge; 6],
    seen: Mutex<Option<Status>>,
}

impl Monitor {
    /// A monitor of this member. Without one there is nothing to show.
    pub fn of(node: Option<Arc<Node>>) -> Arc<Monitor> {
        let names = ["epoch", "writer", "connected", "lag", "lag_time", "followers"];
        let gauges = names.map(|name| gauge(&format!("cluster.{name}")));
        Arc::new(Monitor { node, gauges, seen: Mutex::default() })
    }

    /// Looks at it; it reads the store. What cannot be read now stays as it was.
    pub fn look(&self) {
        let Some(node) = &self.node else { return };
        let Ok(status) = node.own_status() else { return };
        let values = values(&status, node.now());
        self.gauges.iter().zip(values).for_each(|(gauge, value)| gauge.set(value));
        *self.seen.lock().unpoisoned() = Some(status);
    }

    /// Its entries.
    pub fn entries(&self) -> Vec<VirtualEntry> {
        let seen = self.seen.lock().unpoisoned();
        let Some(status) = seen.as_ref().filter(|status| status.writer.is_some()) else {
            return Vec::new();
        };
        let own = std::iter::once(("Self".to_owned(), facts(status)));
        let followers = status.followers.iter().map(follower);
        let told: Vec<_> = own.chain(followers).collect();
        monitor_branch(
            "Cluster",
            "The servers of one directory, as this one knows them",
            None,
            &told,
        )
    }
}

/// The gauges, for a member that has been there for so long.
fn values(status: &Status, there: Duration) -> [u64; 6] {
    let is_follower = status.role == RoleName::Follower;
    let lag = match status.lag_seconds {
        Some(seconds) => Duration::try_from_secs_f64(seconds).unwrap_or_default(),
        None => there,
    };
    [
        status.epoch,
        u64::from(status.role == RoleName::Writer),
        u64::from(status.is_connected),
        status.lag_changes.unwrap_or_default(),
        if is_follower { u64::try_from(lag.as_millis()).unwrap_or(u64::MAX / 2) } else { 0 },
        status.followers.len() as u64,
    ]
}

fn facts(status: &Status) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("member", status.member.to_string()),
        ("name", status.name.clone()),
        ("role", status.role.to_string()),
        ("epoch", status.epoch.to_string()),
        ("position", status.position.to_string()),
        ("digest", status.digest.to_string()),
        ("connected", status.is_connected.to_string()),
    ];
    let more = [
        ("url", status.url.clone()),
        ("writer", status.writer.map(|writer| writer.to_string())),
        ("lag_changes", status.lag_changes.map(|changes| changes.to_string())),
        ("lag_seconds", status.lag_seconds.map(|seconds| format!("{seconds:.3}"))),
        ("contents_position", status.contents.map(|it| it.position.to_string())),
        ("contents_digest", status.contents.map(|it| it.digest.to_string())),
        ("last_error", status.last_error.clone()),
    ];
    facts.extend(more.into_iter().filter_map(|(name, value)| Some((name, value?))));
    facts
}

fn follower(one: &FollowerStatus) -> (String, Vec<(&'static str, String)>) {
    let facts = vec![
        ("member", one.member.to_string()),
        ("name", one.name.clone()),
        ("position", one.position.to_string()),
        ("heard_seconds", format!("{:.3}", one.heard_seconds)),
    ];
    (format!("Follower {}", one.member), facts)
}
