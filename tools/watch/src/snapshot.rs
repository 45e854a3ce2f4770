//! A server as it is seen at one moment, by whichever means, and the difference of two moments.

use keyway_meter::{Distribution, Interval, Snapshot};
use std::collections::BTreeMap;
use std::time::Instant;

/// The properties of one thing, by name.
pub type Facts = BTreeMap<String, String>;

/// A server at one moment.
#[derive(Clone)]
pub struct ServerSnapshot {
    /// When it was looked at.
    pub at: Instant,
    /// How long it has been running, in seconds; `None` if it does not say.
    pub uptime_s: Option<u64>,
    /// Its make and version.
    pub kind: String,
    /// The directory's counters.
    pub directory: Option<Snapshot>,
    /// The counters of the daemon that holds its keys.
    pub cryptod: Option<Snapshot>,
    /// Its lists.
    pub lists: ServerLists,
}

/// The lists that a server tells.
#[derive(Clone, Default)]
pub struct ServerLists {
    /// Connections that are open.
    pub connections: Vec<Facts>,
    /// The slowest operations of the last minutes.
    pub slow: Vec<Facts>,
    /// Operations that have been under way for long.
    pub running: Vec<Facts>,
    /// Filters by their shapes.
    pub filters: Vec<Facts>,
    /// The clients of cryptod.
    pub clients: Vec<Facts>,
    /// Imports, exports and checks; `None` if nothing is told of it.
    pub backups: Option<Vec<Facts>>,
    /// Why there are none, if they could not be had.
    pub missing: Option<String>,
}

/// The difference of two snapshots of a server.
pub struct ServerDelta<'a> {
    /// How much time is between them.
    pub seconds: f64,
    /// The later one.
    pub now: &'a ServerSnapshot,
    /// The counters' differences.
    pub directory: Snapshot,
    /// The differences of the daemon's counters.
    pub cryptod: Snapshot,
}

impl<'a> ServerDelta<'a> {
    /// From one snapshot to a later one; `None` if the server was started again in between.
    pub fn between(before: &ServerSnapshot, now: &'a ServerSnapshot) -> Option<ServerDelta<'a>> {
        let directory = difference(before.directory.as_ref(), now.directory.as_ref())?;
        let cryptod = difference(before.cryptod.as_ref(), now.cryptod.as_ref())?;
        let seconds = now.at.duration_since(before.at).as_secs_f64().max(1e-3);
        Some(ServerDelta { seconds, now, directory, cryptod })
    }

    /// The form that figures are made of.
    pub fn interval(&self) -> Interval<'_> {
        let (now, cryptod) = (self.now.directory.as_ref(), Some(&self.cryptod));
        Interval { seconds: self.seconds, now, directory: &self.directory, cryptod }
    }

    /// How often a second it was counted.
    pub fn rate(&self, name: &str) -> f64 {
        self.directory.value(name).unwrap_or_default() as f64 / self.seconds
    }

    /// The value of a gauge of the directory.
    pub fn gauge(&self, name: &str) -> f64 {
        let now = self.now.directory.as_ref();
        now.and_then(|page| page.gauge(name)).unwrap_or_default() as f64
    }

    /// The value of a counter of the directory.
    pub fn total(&self, name: &str) -> u64 {
        let now = self.now.directory.as_ref();
        now.and_then(|page| page.value(name)).unwrap_or_default()
    }

    /// The values of a histogram in the interval.
    pub fn times(&self, name: &str) -> Distribution {
        self.directory.histogram(name).cloned().unwrap_or_default()
    }
}

/// `None` if it is another process's page, or counted less than before.
fn difference(before: Option<&Snapshot>, now: Option<&Snapshot>) -> Option<Snapshot> {
    let nothing =
        || Snapshot { pid: 0, started_unix_ms: 0, counters: Vec::new(), histograms: Vec::new() };
    match (before, now) {
        (Some(before), Some(now)) => {
            let is_same = before.pid == now.pid && before.started_unix_ms == now.started_unix_ms;
            let went_back = |(name, value): &(String, u64)| {
                name == "ldap.connection.opened"
                    && before.value(name).is_some_and(|before| before > *value)
            };
            let is_same = is_same && !now.counters.iter().any(went_back);
            is_same.then(|| now.since(before))
        }
        (None, None) => Some(nothing()),
        // It has just come, or gone.
        (_, None) | (None, _) => Some(nothing()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn snapshot(at: Instant, started_unix_ms: u64, counters: &[(&str, u64)]) -> ServerSnapshot {
        let counters = counters.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        let page = Snapshot { pid: 1, started_unix_ms, counters, histograms: Vec::new() };
        ServerSnapshot {
            at,
            uptime_s: None,
            kind: String::new(),
            directory: Some(page),
            cryptod: None,
            lists: ServerLists::default(),
        }
    }

    #[test]
    fn rates_are_of_the_interval_also_where_names_have_moved() {
        let start = Instant::now();
        let before = snapshot(start, 1, &[("ldap.bind", 4), ("ldap.search", 10)]);
        let later = start + Duration::from_secs(2);
        let now =
            snapshot(later, 1, &[("ldap.add", 6), ("ldap.search", 30), ("ldap.queue", u64::MAX)]);
        let change = ServerDelta::between(&before, &now).unwrap();
        assert_eq!((change.rate("ldap.search"), change.rate("ldap.add")), (10.0, 3.0));
        assert_eq!((change.rate("ldap.bind"), change.gauge("ldap.queue")), (0.0, 0.0));
        assert_eq!(change.interval().all_times().count, 0);
    }

    #[test]
    fn a_server_that_was_started_again_begins_anew() {
        let (start, opened) = (Instant::now(), "ldap.connection.opened");
        let before = snapshot(start, 1, &[(opened, 400)]);
        let later = start + Duration::from_secs(1);
        assert!(ServerDelta::between(&before, &snapshot(later, 2, &[(opened, 401)])).is_none());
        // One that does not say when it was started.
        assert!(ServerDelta::between(&before, &snapshot(later, 1, &[(opened, 3)])).is_none());
        assert!(ServerDelta::between(&before, &snapshot(later, 1, &[(opened, 400)])).is_some());
    }
}
