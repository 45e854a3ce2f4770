//! The metrics of pages of counters, in no format yet: a metric for each event, parts in braces as labels.

use keyway_meter::{Distribution, EVENTS, Event, Snapshot};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Upper bounds of a histogram's buckets: powers of four, of times from 256 ns to 17 s, of others from 1 to
/// 65,536.
const TIME_BOUNDS: RangeInclusive<u32> = 4..=17;
const COUNT_BOUNDS: RangeInclusive<u32> = 0..=8;
/// Counters whose difference is how many there are now.
const NOW: [(&str, &str, &str, &str); 2] = [
    ("ldap_connections", "ldap.connection.opened", "ldap.connection.closed", "open now"),
    ("cryptod_clients", "cryptod.clients.connected", "cryptod.clients.gone", "connected now"),
];

/// Names and values that tell the points of a metric apart.
pub type Labels = Vec<(&'static str, String)>;

/// A page, by the process that it is of; `None` where none runs.
pub type Page = (&'static str, Option<Snapshot>);

/// Something that is counted or recorded.
pub struct Metric {
    pub name: String,
    /// The unit in words; empty if it is no quantity. A metric in seconds has a name that says so.
    pub unit: &'static str,
    pub help: String,
    pub data: Data,
}

/// Its points.
pub enum Data {
    /// The state now.
    Gauge(Vec<Point>),
    /// Counts since the start.
    Sum(Vec<Point>),
    /// Values recorded since the start.
    Histogram(Vec<Spread>),
}

/// A number.
pub struct Point {
    pub labels: Labels,
    /// When what counts it was started, in milliseconds since 1970.
    pub started_unix_ms: u64,
    pub value: Number,
}

/// Counters are exact.
#[derive(Clone, Copy)]
pub enum Number {
    Whole(i128),
    Real(f64),
}

/// The values of a histogram, in the metric's unit.
pub struct Spread {
    pub labels: Labels,
    pub started_unix_ms: u64,
    /// Upper bounds, and how many values do not exceed each.
    pub buckets: Vec<(f64, u64)>,
    pub count: u64,
    pub sum: f64,
    pub min: f64,
    pub max: f64,
}

/// All that is in the pages, as it is this many seconds after 1970. Metrics without a point are left out.
pub fn metrics(pages: &[Page], now_unix_s: u64) -> Vec<Metric> {
    let up = pages.iter().map(|(process, page)| {
        let labels = vec![("process", (*process).to_owned())];
        let started_unix_ms = page.as_ref().map_or(0, |page| page.started_unix_ms);
        Point { labels, started_unix_ms, value: Number::Whole(page.is_some().into()) }
    });
    let mut all = vec![gauge("up", "", "whether it runs", up.collect())];
    let running: Vec<(&str, &Snapshot)> =
        pages.iter().filter_map(|(process, page)| Some((*process, page.as_ref()?))).collect();
    let starts = running.iter().map(|(process, page)| {
        let seconds = page.started_unix_ms as f64 / 1000.0;
        point(vec![("process", (*process).to_owned())], page, Number::Real(seconds))
    });
    let help = "when it was started, since 1970";
    all.push(gauge("start_time_seconds", "seconds", help, starts.collect()));
    all.extend(NOW.map(|now| difference(now, &running)));
    all.extend(EVENTS.iter().filter_map(|event| match event.unit {
        "unix s" => seconds_left(event, &running, now_unix_s),
        _ if event.is_histogram() => Some(histogram(event, &running)),
        _ => Some(numbers(event, &running)),
    }));
    all.retain(|metric| match &metric.data {
        Data::Gauge(points) | Data::Sum(points) => !points.is_empty(),
        Data::Histogram(spreads) => !spreads.is_empty(),
    });
    all
}

fn gauge(name: &str, unit: &'static str, help: &str, points: Vec<Point>) -> Metric {
    Metric { name: prefixed(name), unit, help: help.to_owned(), data: Data::Gauge(points) }
}

fn point(labels: Labels, page: &Snapshot, value: Number) -> Point {
    Point { labels, started_unix_ms: page.started_unix_ms, value }
}

fn difference(
    (name, opened, closed, help): (&str, &str, &str, &str),
    pages: &[(&str, &Snapshot)],
) -> Metric {
    let points = pages.iter().filter_map(|(_, page)| {
        let open = page.value(opened)?.saturating_sub(page.value(closed)?);
        Some(point(Vec::new(), page, Number::Whole(open.into())))
    });
    gauge(name, "", help, points.collect())
}

/// How long it is until a point in time; negative after it.
fn seconds_left(event: &Event, pages: &[(&str, &Snapshot)], now_unix_s: u64) -> Option<Metric> {
    let points = pages.iter().filter_map(|(_, page)| Some((page.value(event.name)?, page)));
    let (first, page) = points.min_by_key(|(first, _)| *first)?;
    let left = Number::Whole(i128::from(first) - i128::from(now_unix_s));
    let help = format!("seconds until {}", event.help.trim_start_matches("when "));
    let name = named(event) + "_in_seconds";
    Some(gauge(&name, "seconds", &help, vec![point(Vec::new(), page, left)]))
}

/// All of an event, in all pages: a metric that is there twice is told once, with the sum.
fn numbers(event: &Event, pages: &[(&str, &Snapshot)]) -> Metric {
    let mut all: BTreeMap<Labels, (u64, u64)> = BTreeMap::new();
    for (process, page) in pages {
        for (name, value) in page.counters.iter().filter(|(name, _)| event.covers(name)) {
            let value = if event.is_gauge() { page.gauge(name).unwrap_or(0) } else { *value };
            let (sum, started) = all.entry(labels(event, name, process)).or_default();
            *sum = sum.saturating_add(value);
            // A sum begins again when one of its parts does.
            *started = page.started_unix_ms.max(*started);
        }
    }
    let points = all.into_iter().map(|(labels, (value, started_unix_ms))| Point {
        labels,
        started_unix_ms,
        value: Number::Whole(value.into()),
    });
    let unit = event.unit.trim_end_matches(" now");
    let (name, data) = match event.is_gauge() {
        true => (named(event), Data::Gauge(points.collect())),
        false => (named(event) + "_total", Data::Sum(points.collect())),
    };
    Metric { name: prefixed(&name), unit, help: format!("{unit} {}", event.help), data }
}

fn histogram(event: &Event, pages: &[(&str, &Snapshot)]) -> Metric {
    let (suffix, unit, one, bounds) = match event.unit {
        "ns" => ("_seconds", "seconds", 1e-9, TIME_BOUNDS),
        unit => ("", unit, 1.0, COUNT_BOUNDS),
    };
    let mut spreads = Vec::new();
    for (process, page) in pages {
        for (name, values) in page.histograms.iter().filter(|(name, _)| event.covers(name)) {
            let labels = labels(event, name, process);
            spreads.push(spread(labels, page, values, one, bounds.clone()));
        }
    }
    let (name, help) = (prefixed(&(named(event) + suffix)), event.help.to_owned());
    Metric { name, unit, help, data: Data::Histogram(spreads) }
}

/// `one` is what a value of 1 is in the metric's unit.
fn spread(
    labels: Labels,
    page: &Snapshot,
    values: &Distribution,
    one: f64,
    bounds: RangeInclusive<u32>,
) -> Spread {
    let scaled = |value: u64| value as f64 * one;
    let buckets = bounds.map(|exponent| {
        let bound = 4_u64.pow(exponent);
        (scaled(bound), values.at_most(bound))
    });
    Spread {
        labels,
        started_unix_ms: page.started_unix_ms,
        buckets: buckets.collect(),
        count: values.count,
        sum: scaled(values.sum),
        min: scaled(values.min),
        max: scaled(values.max),
    }
}

fn prefixed(name: &str) -> String {
    format!("keyway_{name}")
}

/// The parts of an event's name that are the same for all of it.
fn named(event: &Event) -> String {
    let parts = event.name.split('.').filter(|part| !part.starts_with('{'));
    parts.collect::<Vec<_>>().join("_")
}

/// The other parts of a counter's name. An engine is in each process, so there it is said in which.
fn labels(event: &Event, name: &str, process: &str) -> Labels {
    let label = |(part, value): (&'static str, &str)| {
        let label = part.strip_prefix('{')?.strip_suffix('}')?;
        Some((label, value.to_owned()))
    };
    let event_parts = event.name.split('.');
    let mut labels: Labels = event_parts.zip(name.split('.')).filter_map(label).collect();
    if !labels.is_empty() {
        labels.push(("process", process.to_owned()));
    }
    labels
}
