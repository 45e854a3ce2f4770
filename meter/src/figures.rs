//! Figures of a directory over a while, by name, out of two looks at its page: the columns of `keyway
//! top`, and those that `keyway load` puts beside its own seconds.

use crate::{Distribution, Snapshot};

/// The operations of a directory: what each is called, and its counter.
pub const OPERATIONS: [(&str, &str); 9] = [
    ("bind", "ldap.bind"),
    ("search", "ldap.search"),
    ("compare", "ldap.compare"),
    ("add", "ldap.add"),
    ("delete", "ldap.delete"),
    ("modify", "ldap.modify"),
    ("moddn", "ldap.modify_dn"),
    ("unbind", "ldap.unbind"),
    ("extended", "ldap.extended"),
];

/// The counts from one look to a later one.
#[derive(Clone, Copy, Debug)]
pub struct Interval<'p> {
    /// How long it was.
    pub seconds: f64,
    /// The directory's page at its end.
    pub now: Option<&'p Snapshot>,
    /// The counts of the directory ([`Snapshot::since`]).
    pub directory: &'p Snapshot,
    /// The counts of the daemon that holds its keys, if there is one.
    pub cryptod: Option<&'p Snapshot>,
}

/// A figure.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Its name. Times are in nanoseconds, and in microseconds for programs, as the name says.
    pub name: &'static str,
    value: fn(&Interval<'_>) -> f64,
}

const fn figure(name: &'static str, value: fn(&Interval<'_>) -> f64) -> Figure {
    Figure { name, value }
}

/// All of them: so many a second, percentiles of the interval, or what is so at its end.
pub const FIGURES: [Figure; 27] = [
    figure("total", |it| OPERATIONS.iter().map(|(_, name)| it.rate(name)).sum()),
    figure("bind", |it| it.rate("ldap.bind")),
    figure("search", |it| it.rate("ldap.search")),
    figure("compare", |it| it.rate("ldap.compare")),
    figure("add", |it| it.rate("ldap.add")),
    figure("delete", |it| it.rate("ldap.delete")),
    figure("modify", |it| it.rate("ldap.modify")),
    figure("modify_dn", |it| it.rate("ldap.modify_dn")),
    figure("extended", |it| it.rate("ldap.extended")),
    figure("errors", |it| it.rate("ldap.refused")),
    figure("p50_us", |it| it.all_times().percentile(50.0) as f64),
    figure("p99_us", |it| it.all_times().percentile(99.0) as f64),
    figure("max_us", |it| it.all_times().max as f64),
    figure("connections", |it| it.connections()),
    figure("tls_handshakes", |it| it.rate("tls.handshakes")),
    figure("queue", |it| it.gauge("ldap.queue")),
    figure("commits", |it| it.rate("store.commits")),
    figure("changes_a_commit", |it| it.count("store.changes") / it.count("store.commits").max(1.0)),
    figure("sync_p99_us", |it| it.percentile("store.sync", 99.0)),
    figure("changes_waiting", |it| it.gauge("store.waiting")),
    figure("engine_operations", |it| it.engine()),
    figure("hashes_running", |it| it.gauge("password.running")),
    figure("hash_threads", |it| it.gauge("password.threads")),
    figure("hashes_waiting", |it| it.gauge("password.waiting")),
    figure("busy", |it| it.rate("ldap.busy")),
    figure("entries_sent", |it| it.rate("ldap.entries_sent")),
    figure("kilobytes_out", |it| it.rate("ldap.bytes_out") / 1024.0),
];

impl Figure {
    /// The one of a name.
    pub fn named(name: &str) -> Option<Figure> {
        FIGURES.into_iter().find(|figure| figure.name == name)
    }

    /// Whether it is a time.
    pub fn is_time(&self) -> bool {
        self.name.ends_with("_us")
    }

    /// Its value in an interval; a time in nanoseconds.
    pub fn value(&self, interval: &Interval<'_>) -> f64 {
        (self.value)(interval)
    }

    /// The number for programs: times in microseconds, and no more digits than are known.
    pub fn number(&self, interval: &Interval<'_>) -> f64 {
        let value = self.value(interval);
        let value = if self.is_time() { value / 1e3 } else { value };
        (value * 10.0).round() / 10.0
    }
}

impl Interval<'_> {
    fn count(&self, name: &str) -> f64 {
        self.directory.value(name).unwrap_or_default() as f64
    }

    fn rate(&self, name: &str) -> f64 {
        self.count(name) / self.seconds
    }

    fn gauge(&self, name: &str) -> f64 {
        self.now.and_then(|page| page.gauge(name)).unwrap_or_default() as f64
    }

    fn percentile(&self, name: &str, percent: f64) -> f64 {
        let times = self.directory.histogram(name);
        times.map(|times| times.percentile(percent)).unwrap_or_default() as f64
    }

    /// The times of all operations.
    pub fn all_times(&self) -> Distribution {
        let all = self.directory.histograms.iter();
        let times = all.filter(|(name, _)| name.starts_with("ldap.time."));
        times.fold(Distribution::default(), |sum, (_, times)| sum.and(times))
    }

    fn connections(&self) -> f64 {
        let total = |name| self.now.and_then(|page| page.value(name)).unwrap_or_default();
        total("ldap.connection.opened").saturating_sub(total("ldap.connection.closed")) as f64
    }

    fn engine(&self) -> f64 {
        let cryptod = self.cryptod.iter().flat_map(|page| &page.counters);
        let counters = self.directory.counters.iter().chain(cryptod);
        let is_it = |name: &str| name.starts_with("engine.") && name.ends_with(".operations");
        let sum: u64 = counters.filter(|(name, _)| is_it(name)).map(|(_, value)| *value).sum();
        sum as f64 / self.seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(counters: &[(&str, u64)]) -> Snapshot {
        let counters = counters.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        Snapshot { pid: 1, started_unix_ms: 1, counters, histograms: Vec::new() }
    }

    #[test]
    fn rates_are_of_the_interval_and_gauges_of_its_end() {
        let opened = ("ldap.connection.opened", 9);
        let now = page(&[("ldap.search", 30), ("ldap.bind", 4), opened, ("ldap.queue", 3)]);
        let came = now.since(&page(&[("ldap.search", 10), ("ldap.bind", 4)]));
        let cryptod = page(&[("engine.software.sha-256.operations", 8)]);
        let interval =
            Interval { seconds: 2.0, now: Some(&now), directory: &came, cryptod: Some(&cryptod) };
        let number = |name| Figure::named(name).unwrap().number(&interval);
        assert_eq!((number("search"), number("bind"), number("total")), (10.0, 0.0, 10.0));
        assert_eq!((number("connections"), number("queue")), (9.0, 3.0));
        assert_eq!((number("engine_operations"), number("p99_us")), (4.0, 0.0));
        assert!(Figure::named("absent").is_none());
    }
}
