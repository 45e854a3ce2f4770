//! Gauges of a process, sampled once a second; and what the
//! directory's `cn=monitor` shows of the cryptod beside it.

use keyway_engine::Engine;
use keyway_folder::control::Control;
use keyway_folder::data::name;
use keyway_ldapd::monitor_branch;
use keyway_lock::Unpoisoned;
use keyway_log::Logs;
use keyway_meter::{Gauge, Reader, gauge};
use keyway_ring::control::{Answer, Ask, ClientStatus};
use keyway_server::log::{Severity, Value};
use keyway_server::{Directory, FeedStatus, VirtualEntry};
use keyway_store::Store;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How often it is looked.
pub const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Looks for which the daemon is asked after a client has asked for its figures.
const ASKED_LOOKS: u32 = 15;

/// Shows how the engine's drivers are.
pub fn show_engine(engine: &Engine) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    engine.show(now.as_secs());
}

/// Shows how large a store is.
pub struct StoreSize([Gauge; 6]);

impl StoreSize {
    /// Makes the gauges.
    pub fn new() -> StoreSize {
        let names = ["entries", "bytes", "used", "bytes_max", "readers", "reader_lag"];
        StoreSize(names.map(|name| gauge(&format!("store.{name}"))))
    }

    /// Looks at it. A value that cannot be measured now stays as it was.
    pub fn show(&self, store: &Store) {
        let Ok(size) = store.size() else { return };
        let keyway_store::Size { entries, bytes, used, bytes_max, readers, reader_lag } = size;
        let values = [entries, bytes, used, bytes_max, readers, reader_lag];
        self.0.iter().zip(values).for_each(|(gauge, value)| gauge.set(value));
    }
}

/// Shows how far the feed of changes has come.
pub struct FeedGauges {
    of_feed: [Gauge; 4],
    of_readers: Vec<(String, Gauge)>,
}

impl FeedGauges {
    /// Makes the gauges.
    pub fn new() -> FeedGauges {
        let names = ["position", "changes", "bytes", "age"];
        let of_feed = names.map(|name| gauge(&format!("feed.{name}")));
        FeedGauges { of_feed, of_readers: Vec::new() }
    }

    /// Looks at it. Values that cannot be had now stay as they were.
    pub fn show(&mut self, directory: &Directory) {
        let Ok(Some(FeedStatus { head, age, readers })) = directory.feed_status() else { return };
        let values = [head.position, head.changes, head.bytes, age.as_secs()];
        self.of_feed.iter().zip(values).for_each(|(gauge, value)| gauge.set(value));
        for reader in &readers {
            if !self.of_readers.iter().any(|(name, _)| *name == reader.name) {
                let lag = gauge(&format!("feed.reader.{}.lag", reader.name));
                self.of_readers.push((reader.name.clone(), lag));
            }
        }
        for (name, lag) in &self.of_readers {
            let read = readers.iter().find(|reader| reader.name == *name);
            // One that was forgotten lags behind nothing.
            lag.set(read.map_or(0, |reader| head.position.saturating_sub(reader.position)));
        }
    }
}

/// Whether a store refuses changes, as far as the error log says.
#[derive(Default)]
pub struct Refusals {
    said: Option<String>,
}

impl Refusals {
    /// Says that it has begun to, why, and that it no longer does.
    pub fn look(&mut self, store: &Store, logs: &Logs) {
        let refused = store.refused().map(|why| why.to_string());
        if refused == self.said {
            return;
        }
        match &refused {
            Some(why) => {
                let text = format!("changes are refused: {why}");
                logs.say(Severity::Error, "store", &[("text", Value::Text(&text))]);
            }
            None => {
                let text = "changes are made again";
                logs.say(Severity::Info, "store", &[("text", Value::Text(text))]);
            }
        }
        self.said = refused;
    }
}

/// The cryptod of a data folder, as others may see it.
pub struct Cryptod {
    page: PathBuf,
    socket: PathBuf,
    /// Looks for which it is still asked of its clients.
    wanted: AtomicU32,
    clients: Mutex<Vec<ClientStatus>>,
}

impl Cryptod {
    /// That of this data folder.
    pub fn of(data: &std::path::Path) -> Arc<Cryptod> {
        Arc::new(Cryptod {
            page: name::meter_at(data),
            socket: name::socket_at(data),
            wanted: AtomicU32::new(0),
            clients: Mutex::default(),
        })
    }

    /// Asks the daemon of its clients, if a client has lately asked for them. It waits for the answer.
    pub fn look(&self) {
        let left = self.wanted.load(Ordering::Relaxed);
        if left == 0 {
            return;
        }
        self.wanted.store(left - 1, Ordering::Relaxed);
        let control = Control::connect(&self.socket, "keyway directory: cn=monitor");
        let clients = match control.and_then(|control| control.ask(&Ask::Status)) {
            Ok(Answer::Status(status)) => status.clients,
            _ => Vec::new(),
        };
        *self.clients.lock().unpoisoned() = clients;
    }

    /// Its entries: counters as they are, clients as they were a second ago.
    pub fn entries(&self) -> Vec<VirtualEntry> {
        self.wanted.store(ASKED_LOOKS, Ordering::Relaxed);
        let page = Reader::open(&self.page).ok().filter(Reader::alive);
        let Some(page) = page.and_then(|page| page.snapshot().ok()) else { return Vec::new() };
        let clients = self.clients.lock().unpoisoned();
        // One without queues only asks, as we do.
        let clients = clients.iter().filter(|client| client.queues > 0);
        let clients: Vec<_> = clients.map(told).collect();
        monitor_branch("Cryptod", "The daemon that holds the keys", Some(&page), &clients)
    }
}

/// A client, as it is told of.
pub fn told(client: &ClientStatus) -> (String, Vec<(&'static str, String)>) {
    let facts = vec![
        ("number", client.number.to_string()),
        ("name", client.name.clone()),
        ("pid", client.process.to_string()),
        ("uid", client.user.to_string()),
        ("queues", client.queues.to_string()),
        ("sessions", client.sessions.to_string()),
        ("keys", client.keys.to_string()),
        ("regions", client.regions.to_string()),
        ("region_bytes", client.region_bytes.to_string()),
        ("requests", client.requests.to_string()),
        ("bytes", client.bytes.to_string()),
        ("refused", client.refused.to_string()),
        ("weight", client.weight.to_string()),
        ("throttled", client.throttled.to_string()),
        ("doorbells", client.doorbells.to_string()),
        ("wakeups", client.wakeups.to_string()),
    ];
    (format!("Client {}", client.number), facts)
}
