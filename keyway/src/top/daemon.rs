//! `keyway top --cryptod`: the daemon instead of the directory.

use super::tally::{Difference, cell, number, tenths};
use keyway_folder::control::Control;
use keyway_folder::data;
use keyway_folder::data::name;
use keyway_host::failure::Failure;
use keyway_meter::Reader;
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

/// The daemon's page of counters.
///
/// # Errors
/// If there is no daemon on that data folder.
pub fn open(data: &Path) -> Result<Reader, Failure> {
    data::may_look(data)?;
    let page = name::meter_at(data);
    let reader = page.exists().then(|| Reader::open(&page)).transpose().map_err(Failure::new)?;
    reader.filter(Reader::alive).ok_or_else(|| {
        Failure::new(format!(
            "no cryptod runs on {}; start one with keyway cryptod, or name its folder with --data DIR",
            data.display()
        ))
    })
}

pub fn header() -> String {
    let columns = COLUMNS.iter().map(|(column, _)| *column);
    let columns = ["clients"].into_iter().chain(columns).chain(["a-batch", "KB"]);
    columns.map(|column| cell(column, column)).collect()
}

pub fn line(difference: &Difference) -> String {
    let mut line = cell(&clients(difference).to_string(), "clients");
    for (column, name) in COLUMNS {
        line += &cell(&number(difference.of(name)), column);
    }
    line += &cell(&format!("{:.1}", a_batch(difference)), "a-batch");
    line + &cell(&number(difference.of(BYTES) / 1024.0), "KB")
}

fn clients(difference: &Difference) -> u64 {
    let value = |name| difference.since_start.value(name);
    value(CONNECTED).saturating_sub(value(GONE))
}

/// Requests of a batch, on average.
fn a_batch(difference: &Difference) -> f64 {
    let count = |name| difference.between.value(name) as f64;
    count("cryptod.requests") / count("cryptod.batches").max(1.0)
}

/// The same for programs.
pub fn json(difference: &Difference, clients: &mut Clients) -> Value {
    let mut json = difference.json();
    let rates = COLUMNS.iter().chain(&[("bytes", BYTES)]);
    let rates: Map<_, _> =
        rates.map(|(column, name)| ((*column).to_owned(), tenths(difference.of(name)))).collect();
    let shown = clients.ask().into_iter().map(|(client, rate)| {
        json!({ "number": client.number, "name": client.name, "pid": client.process,
            "uid": client.user, "queues": client.queues, "sessions": client.sessions,
            "regions": client.regions, "region_bytes": client.region_bytes,
            "requests": client.requests, "bytes": client.bytes, "refused": client.refused,
            "doorbells": client.doorbells, "wakeups": client.wakeups,
            "requests_per_second": tenths(rate as f64 / difference.seconds) })
    });
    json["cryptod"] = json!({
        "clients": self::clients(difference),
        "per_second": rates,
        "requests_a_batch": tenths(a_batch(difference)),
        "each": shown.collect::<Value>(),
    });
    json
}

/// The daemon's clients, as it tells of them to its administrators.
pub struct Clients {
    /// `None` if it does not tell this user.
    control: Option<Control>,
    /// Requests of each when it was asked last.
    before: HashMap<u64, u64>,
}

impl Clients {
    /// Those of the daemon that listens there.
    pub fn at(socket: &Path) -> Self {
        Clients { control: Control::connect(socket, "keyway top").ok(), before: HashMap::new() }
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
                client.user,
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
