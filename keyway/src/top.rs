//! `keyway top`: what a running server is doing, read out of its page of counters.

use crate::cli::Top;
use crate::data::{State, look, name};
use crate::failure::Failure;
use crate::moment::Moment;
use crate::output;
use keyway_meter::{Reader, Snapshot};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;
use std::time::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Lines between two headers.
const HEADER_LINES: u64 = 20;
/// How long a server's end may go unnoticed.
const LOOK_MAX: Duration = Duration::from_millis(500);

/// Columns and their counters. The first ones are operations, which the total is of.
const OPERATIONS: [(&str, &str); 9] = [
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
const OPENED: &str = "ldap.connection.opened";
const CLOSED: &str = "ldap.connection.closed";
const ENTRIES: &str = "ldap.entries_sent";
const BYTES_OUT: &str = "ldap.bytes_out";
/// Shown to programs only.
const MORE: [(&str, &str); 5] = [
    ("abandon", "ldap.abandon"),
    ("refused", "ldap.refused"),
    ("bytes_in", "ldap.bytes_in"),
    ("commits", "store.commits"),
    ("changes", "store.changes"),
];

/// Shows lines until the count is reached, the server stops, or somebody presses Ctrl-C.
///
/// # Errors
/// If no server runs on the data folder, or its page cannot be read.
pub fn run(arguments: &Top) -> Result<(), Failure> {
    let reader = open(arguments)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|why| Failure::new(format!("cannot start: {why}")))?;
    match runtime.block_on(show(arguments, &reader)) {
        Err(End::Failed(failure)) => Err(failure),
        Err(End::Output(why)) if why.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::output(&why))
        }
        Err(End::ServerStopped) => {
            output::note("the server has stopped");
            Ok(())
        }
        Ok(()) | Err(End::Output(_) | End::Interrupted) => Ok(()),
    }
}

/// Why no more lines are shown.
enum End {
    ServerStopped,
    Interrupted,
    /// Whoever reads the lines has gone, or the disk is full.
    Output(io::Error),
    Failed(Failure),
}

fn open(arguments: &Top) -> Result<Reader, Failure> {
    let folder = &arguments.data.folder;
    let not_running = || {
        let shown = folder.display();
        Failure::new(format!(
            "no server runs on {shown}; start one with keyway up, or name its folder with --data DIR"
        ))
    };
    let page = folder.join(name::METER);
    if look(folder)? == State::Absent || !page.exists() {
        return Err(not_running());
    }
    let reader = Reader::open(&page).map_err(Failure::new)?;
    if reader.alive() { Ok(reader) } else { Err(not_running()) }
}

async fn show(arguments: &Top, reader: &Reader) -> Result<(), End> {
    let interval = Duration::from_secs_f64(arguments.interval);
    let (mut lines, mut drivers) = (0, Vec::new());
    let mut interrupts = signal(SignalKind::interrupt()).map_err(End::Output)?;
    let mut before = look_at(reader)?;
    let mut next = before.at;
    loop {
        next += interval;
        wait(reader, &mut interrupts, next).await?;
        let now = look_at(reader)?;
        let difference = Difference::between(&before, &now);
        if arguments.json {
            output::write(difference.json()).map_err(End::Output)?;
        } else {
            let seen: Vec<&str> = now.drivers.keys().map(String::as_str).collect();
            if lines % HEADER_LINES == 0 || drivers != seen {
                output::write(header(&seen)).map_err(End::Output)?;
                drivers = seen.into_iter().map(str::to_owned).collect();
            }
            output::write(difference.line()).map_err(End::Output)?;
        }
        lines += 1;
        if arguments.count == Some(lines) {
            return Ok(());
        }
        // After a pause of the machine, do not make up for the lines that nobody saw.
        next = next.max(now.at.checked_sub(interval).unwrap_or(now.at));
        before = now;
    }
}

/// Waits for the next line's time, or for the end.
async fn wait(reader: &Reader, interrupts: &mut Signal, until: Instant) -> Result<(), End> {
    loop {
        let look = until.min(Instant::now() + LOOK_MAX);
        tokio::select! {
            _ = interrupts.recv() => return Err(End::Interrupted),
            () = tokio::time::sleep_until(look.into()) => {}
        }
        if !reader.alive() {
            return Err(End::ServerStopped);
        }
        if Instant::now() >= until {
            return Ok(());
        }
    }
}

/// The counters at one moment.
struct Counts {
    at: Instant,
    values: BTreeMap<String, u64>,
    /// Operations of the engine by driver.
    drivers: BTreeMap<String, u64>,
}

fn look_at(reader: &Reader) -> Result<Counts, End> {
    let snapshot = reader.snapshot().map_err(|why| End::Failed(Failure::new(why)))?;
    Ok(Counts::new(snapshot, Instant::now()))
}

impl Counts {
    fn new(snapshot: Snapshot, at: Instant) -> Counts {
        let mut drivers = BTreeMap::new();
        for (name, value) in &snapshot.counters {
            let parts: Vec<&str> = name.split('.').collect();
            if let ["engine", driver, _, "operations"] = parts[..] {
                let sum: &mut u64 = drivers.entry(driver.to_owned()).or_default();
                *sum = sum.wrapping_add(*value);
            }
        }
        Counts { at, values: snapshot.counters.into_iter().collect(), drivers }
    }

    fn value(&self, name: &str) -> u64 {
        self.values.get(name).copied().unwrap_or_default()
    }

    fn total(&self) -> u64 {
        OPERATIONS.iter().map(|(_, name)| self.value(name)).sum()
    }

    fn connections(&self) -> u64 {
        self.value(OPENED).saturating_sub(self.value(CLOSED))
    }
}

/// What happened from one moment to the next.
struct Difference<'a> {
    before: &'a Counts,
    now: &'a Counts,
    seconds: f64,
}

impl<'a> Difference<'a> {
    fn between(before: &'a Counts, now: &'a Counts) -> Self {
        let seconds = now.at.duration_since(before.at).as_secs_f64();
        Difference { before, now, seconds: seconds.max(f64::EPSILON) }
    }

    fn rate(&self, before: u64, now: u64) -> f64 {
        now.saturating_sub(before) as f64 / self.seconds
    }

    fn of(&self, name: &str) -> f64 {
        self.rate(self.before.value(name), self.now.value(name))
    }

    fn total(&self) -> f64 {
        self.rate(self.before.total(), self.now.total())
    }

    fn driver(&self, name: &str) -> f64 {
        let count = |counts: &Counts| counts.drivers.get(name).copied().unwrap_or_default();
        self.rate(count(self.before), count(self.now))
    }

    fn line(&self) -> String {
        let mut line = cell(&number(self.total()), "total");
        for (column, name) in OPERATIONS {
            line += &cell(&number(self.of(name)), column);
        }
        line += &cell(&self.now.connections().to_string(), "conns");
        line += &cell(&number(self.of(ENTRIES)), "entries");
        line += &cell(&number(self.of(BYTES_OUT) / 1024.0), "KB-out");
        for driver in self.now.drivers.keys() {
            line += &cell(&number(self.driver(driver)), driver);
        }
        line
    }

    fn json(&self) -> Value {
        let columns = || OPERATIONS.iter().chain(&MORE);
        let mut rates = Map::new();
        let mut counts = Map::new();
        rates.insert("total".to_owned(), tenths(self.total()));
        counts.insert("total".to_owned(), self.now.total().into());
        for (column, name) in columns().chain(&[("entries", ENTRIES), ("bytes_out", BYTES_OUT)]) {
            rates.insert((*column).to_owned(), tenths(self.of(name)));
            counts.insert((*column).to_owned(), self.now.value(name).into());
        }
        let engine: Map<_, _> =
            self.now.drivers.keys().map(|name| (name.clone(), tenths(self.driver(name)))).collect();
        rates.insert("engine".to_owned(), engine.into());
        counts.insert("engine".to_owned(), json!(self.now.drivers));
        json!({
            "time": Moment::now().to_string(),
            "interval_s": (self.seconds * 1e6).round() / 1e6,
            "connections": self.now.connections(),
            "per_second": rates,
            "since_start": counts,
        })
    }
}

fn tenths(rate: f64) -> Value {
    json!((rate * 10.0).round() / 10.0)
}

fn number(rate: f64) -> String {
    format!("{rate:.0}")
}

fn header(drivers: &[&str]) -> String {
    let columns = OPERATIONS.iter().map(|(column, _)| *column);
    let mut line = String::new();
    for column in ["total"].into_iter().chain(columns).chain(["conns", "entries", "KB-out"]) {
        line += &cell(column, column);
    }
    for driver in drivers {
        line += &cell(driver, driver);
    }
    line
}

/// As wide as the column's name and as six digits, with a gap.
fn cell(text: &str, column: &str) -> String {
    let mut cell = String::new();
    // Writing to a String cannot fail.
    let _ = write!(cell, "{text:>width$}", width = column.len().max(6) + 1);
    cell
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(at: Instant, values: &[(&str, u64)]) -> Counts {
        let counters = values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        Counts::new(
            Snapshot { pid: 1, started_unix_ms: 0, counters, histograms: Vec::new() },
            at,
        )
    }

    #[test]
    fn rates_are_of_the_interval_and_connections_of_the_moment() {
        let start = Instant::now();
        let before = counts(start, &[("ldap.search", 10), (OPENED, 5)]);
        let values = [
            ("ldap.search", 30),
            ("ldap.bind", 4),
            (OPENED, 9),
            (CLOSED, 2),
            (BYTES_OUT, 4096),
            ("engine.software.sha-256.operations", 6),
            ("engine.software.aes-128-gcm.operations", 4),
            ("engine.software.aes-128-gcm.bytes", 1_000_000),
            ("engine.null.sha-256.operations", 0),
        ];
        let now = counts(start + Duration::from_secs(2), &values);
        let json = Difference::between(&before, &now).json();
        assert_eq!(json["connections"], 7);
        assert_eq!(json["interval_s"], 2.0);
        let rates = &json["per_second"];
        assert_eq!(rates["total"], 12.0);
        assert_eq!(rates["search"], 10.0);
        assert_eq!(rates["bind"], 2.0);
        assert_eq!(rates["bytes_out"], 2048.0);
        assert_eq!(rates["engine"]["software"], 5.0);
        assert_eq!(rates["engine"]["null"], 0.0);
        assert_eq!(json["since_start"]["total"], 34);
        assert_eq!(json["since_start"]["engine"]["software"], 10);
    }

    #[test]
    fn lines_stand_below_their_header() {
        let start = Instant::now();
        let before = counts(start, &[]);
        let values = [("ldap.search", 1_234), ("engine.software.sha-256.operations", 99)];
        let now = counts(start + Duration::from_secs(1), &values);
        let line = Difference::between(&before, &now).line();
        let header = header(&["software"]);
        assert_eq!(line.len(), header.len());
        assert!(line.ends_with(" 99"));
        assert_eq!(header.split_whitespace().count(), line.split_whitespace().count());
    }
}
