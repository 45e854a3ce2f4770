//! What is seen of a server at one moment, wherever it was looked at, and what happened between two.

use keyway_meter::{Distribution, Interval, Snapshot};
use std::collections::BTreeMap;
use std::time::Instant;

/// What is said of one thing, by name.
pub type Facts = BTreeMap<String, String>;

/// A server at one moment.
#[derive(Clone)]
pub struct Sight {
    /// When.
    pub at: Instant,
    /// Since when it runs, in seconds; `None` if it does not say.
    pub uptime_s: Option<u64>,
    /// What it is, in a word or two.
    pub kind: String,
    /// The directory's counters.
    pub directory: Option<Snapshot>,
    /// Those of the daemon that holds its keys.
    pub cryptod: Option<Snapshot>,
    pub lists: Lists,
}

/// What is no number.
#[derive(Clone, Default)]
pub struct Lists {
    pub connections: Vec<Facts>,
    pub slow: Vec<Facts>,
    pub running: Vec<Facts>,
    pub filters: Vec<Facts>,
    pub clients: Vec<Facts>,
    /// What was imported, exported and checked; `None` if nothing is told of it.
    pub backups: Option<Vec<Facts>>,
    /// Why there are none, if they could not be had.
    pub missing: Option<String>,
}

/// What happened from one moment to the next.
pub struct Change<'a> {
    pub seconds: f64,
    pub now: &'a Sight,
    /// The counters' differences.
    pub directory: Snapshot,
    pub cryptod: Snapshot,
}

impl<'a> Change<'a> {
    /// From one look to a later one; of a server that was started again in between there is no such thing.
    pub fn between(before: &Sight, now: &'a Sight) -> Option<Change<'a>> {
        let directory = difference(before.directory.as_ref(), now.directory.as_ref())?;
        let cryptod = difference(before.cryptod.as_ref(), now.cryptod.as_ref())?;
        let seconds = now.at.duration_since(before.at).as_secs_f64().max(1e-3);
        Some(Change { seconds, now, directory, cryptod })
    }

    /// The same, for those who know figures.
    pub fn interval(&self) -> Interval<'_> {
        let (now, cryptod) = (self.now.directory.as_ref(), Some(&self.cryptod));
        Interval { seconds: self.seconds, now, directory: &self.directory, cryptod }
    }

    /// How often a second.
    pub fn rate(&self, name: &str) -> f64 {
        self.directory.value(name).unwrap_or_default() as f64 / self.seconds
    }

    /// What a gauge of the directory shows.
    pub fn gauge(&self, name: &str) -> f64 {
        let now = self.now.directory.as_ref();
        now.and_then(|page| page.gauge(name)).unwrap_or_default() as f64
    }

    /// What a counter of the directory has come to.
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

    fn sight(at: Instant, started_unix_ms: u64, counters: &[(&str, u64)]) -> Sight {
        let counters = counters.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        let page = Snapshot { pid: 1, started_unix_ms, counters, histograms: Vec::new() };
        Sight {
            at,
            uptime_s: None,
            kind: String::new(),
            directory: Some(page),
            cryptod: None,
            lists: Lists::default(),
        }
    }

    #[test]
    fn rates_are_of_the_interval_also_where_names_have_moved() {
        let start = Instant::now();
        let before = sight(start, 1, &[("ldap.bind", 4), ("ldap.search", 10)]);
        let later = start + Duration::from_secs(2);
        let now =
            sight(later, 1, &[("ldap.add", 6), ("ldap.search", 30), ("ldap.queue", u64::MAX)]);
        let change = Change::between(&before, &now).unwrap();
        assert_eq!((change.rate("ldap.search"), change.rate("ldap.add")), (10.0, 3.0));
        assert_eq!((change.rate("ldap.bind"), change.gauge("ldap.queue")), (0.0, 0.0));
        assert_eq!(change.interval().all_times().count, 0);
    }

    #[test]
    fn a_server_that_was_started_again_begins_anew() {
        let (start, opened) = (Instant::now(), "ldap.connection.opened");
        let before = sight(start, 1, &[(opened, 400)]);
        let later = start + Duration::from_secs(1);
        assert!(Change::between(&before, &sight(later, 2, &[(opened, 401)])).is_none());
        // One that does not say when it was started.
        assert!(Change::between(&before, &sight(later, 1, &[(opened, 3)])).is_none());
        assert!(Change::between(&before, &sight(later, 1, &[(opened, 400)])).is_some());
    }
}
