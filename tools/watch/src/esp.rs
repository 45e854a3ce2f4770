//! The ESP gateway: lines of its counters.

use crate::delta::PageDelta;
use crate::text::{cell, number, row, tenths};
use serde_json::{Map, Value, json};

/// Columns and their counters.
const COLUMNS: [(&str, &str); 4] = [
    ("out", "esp.out.packets"),
    ("in", "esp.in.packets"),
    ("too-big", "esp.too_big"),
    ("keepalive", "esp.keepalives"),
];
/// The beginnings of the names of drops' counters, and the end of those that count packets.
const DROPS: &str = "esp.drop.";
const PACKETS: &str = ".packets";
/// Width of a direction and a cause.
const CAUSE_WIDTH: usize = 27;

/// The titles of [`line()`].
#[must_use]
pub fn header() -> String {
    let columns = COLUMNS.iter().map(|(column, _)| *column);
    columns.chain(["KB-out", "KB-in", "dropped"]).map(|column| cell(column, column)).collect()
}

/// The gateway's last interval, a second.
#[must_use]
pub fn line(delta: &PageDelta) -> String {
    let mut line: String =
        COLUMNS.iter().map(|(column, name)| cell(&number(delta.of(name)), column)).collect();
    line += &cell(&number(delta.of("esp.out.bytes") / 1024.0), "KB-out");
    line += &cell(&number(delta.of("esp.in.bytes") / 1024.0), "KB-in");
    let dropped: f64 = drops(delta).map(|(name, _)| delta.of(name)).sum();
    line + &cell(&number(dropped), "dropped")
}

/// The gateway's last interval for programs.
#[must_use]
pub fn json(delta: &PageDelta) -> Value {
    let all = delta.between.values.keys().filter(|name| name.starts_with("esp."));
    let per_second = all.map(|name| (name.clone(), tenths(delta.of(name))));
    json!({ "per_second": per_second.collect::<Map<_, _>>() })
}

/// A line for each cause of which there was a packet in the interval: how many, and how many since the start.
#[must_use]
pub fn sections(delta: &PageDelta) -> Vec<String> {
    let seen = drops(delta).filter(|(_, count)| *count > 0);
    let lines = seen.map(|(name, count)| {
        let cause = name.trim_start_matches(DROPS).trim_end_matches(PACKETS).replace('.', " ");
        let ever = delta.since_start.value(name);
        row(&format!("  {cause}"), CAUSE_WIDTH, &format!("{count:>10} {ever:>14}"))
    });
    let lines: Vec<_> = lines.collect();
    if lines.is_empty() {
        return lines;
    }
    let title = row("dropped", CAUSE_WIDTH, &format!("{:>10} {:>14}", "packets", "since start"));
    [title].into_iter().chain(lines).collect()
}

fn drops(delta: &PageDelta) -> impl Iterator<Item = (&str, u64)> {
    let all = delta.between.values.iter().map(|(name, count)| (name.as_str(), *count));
    all.filter(|(name, _)| name.starts_with(DROPS) && name.ends_with(PACKETS))
}
