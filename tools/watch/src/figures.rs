//! The figures of a server in an interval, for programs: as JSON, or as a table with commas.

use crate::columns::COLUMNS;
use crate::snapshot::ServerDelta;
use keyway_host::timestamp::Timestamp;
use keyway_meter::Distribution;
use serde_json::{Map, Value, json};

/// The names of the values of [`csv_line`].
#[must_use]
pub fn csv_header() -> String {
    let names = COLUMNS.iter().map(|column| column.name);
    ["time", "server"].into_iter().chain(names).collect::<Vec<_>>().join(",")
}

/// All columns, for programs that read tables.
#[must_use]
pub fn csv_line(server: &str, change: &ServerDelta<'_>) -> String {
    let numbers = COLUMNS.iter().map(|column| column.number(change).to_string());
    let server = match server.contains([',', '"', '\n']) {
        true => format!("\"{}\"", server.replace('"', "\"\"")),
        false => server.to_owned(),
    };
    [Timestamp::now().to_string(), server].into_iter().chain(numbers).collect::<Vec<_>>().join(",")
}

/// All columns by their names.
#[must_use]
pub fn figures(change: &ServerDelta<'_>) -> Value {
    let pairs = COLUMNS.iter().map(|it| (it.name.to_owned(), json!(it.number(change))));
    pairs.collect::<Map<_, _>>().into()
}

/// A server's last interval.
#[must_use]
pub fn json_line(server: &str, change: &ServerDelta<'_>) -> Value {
    json!({
        "time": Timestamp::now().to_string(),
        "server": server,
        "kind": change.now.kind,
        "interval_s": (change.seconds * 1e6).round() / 1e6,
        "figures": figures(change),
        "operations": operations(change),
    })
}

/// How long each kind of operation took, in microseconds.
#[must_use]
pub fn operations(change: &ServerDelta<'_>) -> Value {
    let times = change.directory.histograms.iter();
    let times = times.filter_map(|(name, times)| Some((name.strip_prefix("ldap.time.")?, times)));
    let one = |(name, times): (&str, &Distribution)| {
        let us = |nanoseconds: u64| nanoseconds as f64 / 1e3;
        let value = json!({
            "count": times.count,
            "p50_us": us(times.percentile(50.0)),
            "p95_us": us(times.percentile(95.0)),
            "p99_us": us(times.percentile(99.0)),
            "max_us": us(times.max),
        });
        (name.to_owned(), value)
    };
    times.map(one).collect::<Map<_, _>>().into()
}
