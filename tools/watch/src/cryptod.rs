//! The daemon that holds a directory's keys: lines of its counters, and its clients.

use crate::delta::PageDelta;
use crate::text::{cell, number, tenths};
use keyway_folder::control::Control;
use keyway_ring::control::{Answer, Ask, ClientStatus};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::path::Path;

/// Columns and their counters.
const COLUMNS: [(&str, &str); 7] = [
    ("requests", "cryptod.requests"),
    ("refused", "cryptod.refused"),
    ("busy", "cryptod.busy"),
    ("batches", "cryptod.batches"),
    ("rung", "cryptod.doorbells"),
    ("woken", "cryptod.wakeups"),
    ("slept", "cryptod.sleeps"),
];
const CONNECTED: &str = "cryptod.clients.connected";
const GONE: &str = "cryptod.clients.gone";
const BYTES: &str = "cryptod.bytes";

/// The titles of [`line()`].
#[must_use]
pub fn header() -> String {
    let columns = COLUMNS.iter().map(|(column, _)| *column);
    let columns = ["clients"].into_iter().chain(columns).chain(["a-batch", "KB"]);
    columns.map(|column| cell(column, column)).collect()
}

/// The daemon's last interval.
#[must_use]
pub fn line(delta: &PageDelta) -> String {
    let mut line = cell(&clients(delta).to_string(), "clients");
    for (column, name) in COLUMNS {
        line += &cell(&number(delta.of(name)), column);
    }
    line += &cell(&format!("{:.1}", a_batch(delta)), "a-batch");
    line + &cell(&number(delta.of(BYTES) / 1024.0), "KB")
}

fn clients(delta: &PageDelta) -> u64 {
    let value = |name| delta.since_start.value(name);
    value(CONNECTED).saturating_sub(value(GONE))
}

/// Requests of a batch, on average.
fn a_batch(delta: &PageDelta) -> f64 {
    let count = |name| delta.between.value(name) as f64;
    count("cryptod.requests") / count("cryptod.batches").max(1.0)
}

/// The daemon's last interval for programs, with its clients.
pub fn json(delta: &PageDelta, clients: &mut CryptodClients) -> Value {
    let mut json = delta.json();
    let rates = COLUMNS.iter().chain(&[("bytes", BYTES)]);
    let rates: Map<_, _> =
        rates.map(|(column, name)| ((*column).to_owned(), tenths(delta.of(name)))).collect();
    let shown = clients.ask().into_iter().map(|(client, rate)| {
        json!({ "number": client.number, "name": client.name, "pid": client.process,
            "uid": user(&client), "queues": client.queues, "sessions": client.sessions,
            "regions": client.regions, "region_bytes": client.region_bytes,
            "requests": client.requests, "bytes": client.bytes, "refused": client.refused,
            "doorbells": client.doorbells, "wakeups": client.wakeups,
            "requests_per_second": tenths(rate as f64 / delta.seconds) })
    });
    json["cryptod"] = json!({
        "clients": self::clients(delta),
        "per_second": rates,
        "requests_a_batch": tenths(a_batch(delta)),
        "each": shown.collect::<Value>(),
    });
    json
}

/// The user that a client runs as; none for a virtual machine, whose name no process of the host may have.
fn user(client: &ClientStatus) -> Option<u32> {
    (!client.name.starts_with("vm:")).then_some(client.user)
}

/// The daemon's clients, as it tells of them to its administrators.
pub struct CryptodClients {
    /// `None` if it does not tell this user.
    control: Option<Control>,
    /// Requests of each when it was asked last.
    before: HashMap<u64, u64>,
}

impl CryptodClients {
    /// The clients of the daemon that listens at a socket.
    #[must_use]
    pub fn at(socket: &Path) -> Self {
        CryptodClients {
            control: Control::connect(socket, "keyway top").ok(),
            before: HashMap::new(),
        }
    }

    /// Each client, and how many requests it had answered since this was asked last.
    fn ask(&mut self) -> Vec<(ClientStatus, u64)> {
        let answer = self.control.as_ref().map(|control| control.ask(&Ask::Status));
        let Some(Ok(Answer::Status(status))) = answer else { return Vec::new() };
        let before = std::mem::take(&mut self.before);
        let since = |client: ClientStatus| {
            let known = before.get(&client.number).copied().unwrap_or(client.requests);
            let since = client.requests.saturating_sub(known);
            self.before.insert(client.number, client.requests);
            (client, since)
        };
        status.clients.into_iter().map(since).collect()
    }

    /// A line for each client that has a queue pair.
    pub fn lines(&mut self, seconds: f64) -> Vec<String> {
        let mut lines = Vec::new();
        for (client, since) in self.ask() {
            if client.queues == 0 {
                continue;
            }
            if lines.is_empty() {
                lines.push(format!(
                    "{:<27} {:>8} {:>7} {:>6} {:>8} {:>7} {:>8} {:>8} {:>8}",
                    "client", "pid", "uid", "rings", "sessions", "MB", "req/s", "rung", "refused"
                ));
            }
            let mega = client.region_bytes >> 20;
            let rate = number(since as f64 / seconds);
            lines.push(format!(
                "{:<27} {:>8} {:>7} {:>6} {:>8} {:>7} {:>8} {:>8} {:>8}",
                client.name,
                client.process,
                user(&client).map_or_else(|| "-".to_owned(), |user| user.to_string()),
                client.queues,
                client.sessions,
                mega,
                rate,
                client.doorbells,
                client.refused
            ));
        }
        lines
    }
}
