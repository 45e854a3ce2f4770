//! The last minutes of one server: what was counted from each look to the next.

use crate::limits::{NAMES_MAX, POINTS_MAX};
use keyway_load::HostUse;
use keyway_meter::{Distribution, EVENTS, Event, Snapshot};
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};

/// The prefixes of names whose past is kept; other names are shown as they are now.
const KEPT: [&str; 6] = ["ldap.", "tls.", "store.", "password.", "log.", "cryptod."];

/// The counts between two looks.
#[derive(Debug, Serialize)]
pub(crate) struct Point {
    pub number: u64,
    pub unix_ms: u64,
    /// Since the look before.
    pub seconds: f64,
    /// The counts that are not 0.
    pub counts: BTreeMap<String, u64>,
    /// Gauges.
    pub now: BTreeMap<String, u64>,
    pub times: BTreeMap<String, Times>,
    /// The use of the machine, if it is this one.
    pub host: Option<HostUse>,
}

/// How something was distributed, mostly times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Times {
    pub count: u64,
    pub mean: u64,
    pub p50: u64,
    pub p95: u64,
    pub p99: u64,
    pub max: u64,
}

impl Times {
    pub fn of(values: &Distribution) -> Option<Times> {
        (values.count > 0).then(|| Times {
            count: values.count,
            mean: values.mean() as u64,
            p50: values.percentile(50.0),
            p95: values.percentile(95.0),
            p99: values.percentile(99.0),
            max: values.max,
        })
    }
}

/// The event that a name is of.
pub(crate) fn event_of(name: &str) -> Option<&'static Event> {
    EVENTS.iter().find(|event| event.covers(name))
}

/// The last points.
#[derive(Default)]
pub(crate) struct History {
    points: VecDeque<Point>,
    next: u64,
}

impl History {
    /// Takes in what came between two looks that are so many seconds apart.
    pub fn add(
        &mut self,
        before: &Snapshot,
        now: &Snapshot,
        seconds: f64,
        unix_ms: u64,
        host: Option<HostUse>,
    ) {
        let between = now.since(before);
        let is_kept = |name: &str| KEPT.iter().any(|kept| name.starts_with(kept));
        let (mut counts, mut gauges) = (BTreeMap::new(), BTreeMap::new());
        for ((name, came), (_, is)) in between.counters.iter().zip(&now.counters) {
            if !is_kept(name) || counts.len() + gauges.len() >= NAMES_MAX {
                continue;
            }
            if event_of(name).is_some_and(Event::is_gauge) {
                gauges.insert(name.clone(), *is);
            } else if *came > 0 {
                counts.insert(name.clone(), *came);
            }
        }
        let (opened, closed) =
            (now.value("ldap.connection.opened"), now.value("ldap.connection.closed"));
        if let Some(opened) = opened {
            let open = opened.saturating_sub(closed.unwrap_or_default());
            gauges.insert("ldap.connections".to_owned(), open);
        }
        let kept = between.histograms.iter().filter(|(name, _)| is_kept(name)).take(NAMES_MAX);
        let times = kept.filter_map(|(name, values)| Some((name.clone(), Times::of(values)?)));
        let mut times: BTreeMap<_, _> = times.collect();
        // The time of all operations together, which cannot be computed from percentiles.
        let each = between.histograms.iter().filter(|(name, _)| name.starts_with("ldap.time."));
        let all = each.fold(Distribution::default(), |all, (_, values)| all.and(values));
        times.extend(Times::of(&all).map(|times| ("ldap.time".to_owned(), times)));
        let number = self.next;
        self.next += 1;
        if self.points.len() >= POINTS_MAX {
            self.points.pop_front();
        }
        self.points.push_back(Point { number, unix_ms, seconds, counts, now: gauges, times, host });
    }

    /// The points from a number on.
    pub fn from(&self, number: u64) -> impl Iterator<Item = &Point> {
        self.points.iter().filter(move |point| point.number >= number)
    }

    /// The number of the next one.
    pub fn next(&self) -> u64 {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(searches: u64, ends: u64) -> Snapshot {
        let counter = |name: &str, value| (name.to_owned(), value);
        let counters = vec![
            counter("ldap.search", searches),
            counter("ldap.bind", 7),
            counter("tls.certificate.ends", ends),
            counter("engine.software.sha-256.operations", searches),
        ];
        Snapshot { pid: 1, started_unix_ms: 0, counters, histograms: Vec::new() }
    }

    #[test]
    fn a_point_has_what_came_and_gauges_as_they_are() {
        let mut history = History::default();
        history.add(&look(10, 5), &look(25, 4), 1.5, 99, None);
        let point = history.from(0).next().unwrap();
        assert_eq!(point.counts, BTreeMap::from([("ldap.search".to_owned(), 15)]));
        assert_eq!(point.now["tls.certificate.ends"], 4);
        // It was not said how many were opened.
        assert_eq!(point.now.get("ldap.connections"), None);
        assert_eq!((point.number, point.unix_ms, point.seconds), (0, 99, 1.5));
        assert_eq!((history.from(1).count(), history.next()), (0, 1));
    }

    #[test]
    fn the_first_ones_go() {
        let mut history = History::default();
        for count in 0..POINTS_MAX as u64 + 5 {
            history.add(&look(count, 0), &look(count + 1, 0), 1.0, count, None);
        }
        assert_eq!(history.from(0).count(), POINTS_MAX);
        assert_eq!(history.from(0).next().map(|point| point.number), Some(5));
        assert_eq!(history.from(POINTS_MAX as u64).count(), 5);
    }
}
