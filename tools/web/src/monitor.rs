//! A server that is monitored: looked at once a second, and asked for details when a page shows them.

use crate::history::History;
use crate::limits::LOOK_EVERY;
use keyway_load::HostUse;
use keyway_lock::Unpoisoned;
use keyway_meter::Snapshot;
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The details beside counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// The slowest operations of the last minutes.
    Slow,
    /// Connections that are open.
    Connections,
    /// Indexes that searches lack.
    Filters,
    /// The clients and keys of cryptod.
    Crypto,
    /// When it was exported and checked.
    Backups,
}

/// Where a server's figures come from: its shared page, or its `cn=monitor`.
pub trait Source: Send {
    /// All that is counted, at this moment.
    ///
    /// # Errors
    /// Why nothing can be seen now: it may come back.
    fn look(&mut self) -> Result<Snapshot, String>;

    /// The text to show where a server of another kind has no figures.
    fn missing(&self) -> Option<String> {
        None
    }

    /// The use of the machine since the last look, if it is this one.
    fn host(&mut self) -> Option<HostUse> {
        None
    }

    /// A detail as JSON: an object, whose members are put beside the counters.
    ///
    /// # Errors
    /// Why it cannot be had.
    fn detail(&mut self, what: Detail) -> Result<Value, String>;
}

/// A server that is watched.
#[derive(Clone)]
pub struct MonitorTarget(Arc<Shared>);

struct Shared {
    name: String,
    source: Mutex<Box<dyn Source>>,
    seen: Mutex<Seen>,
}

/// The latest state of a server.
#[derive(Default)]
pub(crate) struct Seen {
    pub history: History,
    /// The last two looks, and how many seconds are between them.
    pub before: Option<Snapshot>,
    pub now: Option<Snapshot>,
    pub seconds: f64,
    at: Option<Instant>,
    /// Why it cannot be seen.
    pub why: Option<String>,
    /// The text to show where it has no figures.
    pub missing: Option<String>,
}

impl MonitorTarget {
    /// Begins to watch, until the last handle is gone.
    ///
    /// # Errors
    /// If there is no thread to be had.
    pub fn new(name: String, source: Box<dyn Source>) -> Result<MonitorTarget, String> {
        let shared = Shared { name, source: Mutex::new(source), seen: Mutex::default() };
        let target = MonitorTarget(Arc::new(shared));
        target.look();
        let weak = Arc::downgrade(&target.0);
        let watch = move || {
            let mut next = Instant::now();
            loop {
                next = (next + LOOK_EVERY).max(Instant::now());
                thread::sleep(next.saturating_duration_since(Instant::now()));
                let Some(shared) = weak.upgrade() else { return };
                MonitorTarget(shared).look();
            }
        };
        let named = thread::Builder::new().name("watch".to_owned());
        named.spawn(watch).map_err(|why| format!("cannot start a thread: {why}"))?;
        Ok(target)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Takes a look.
    fn look(&self) {
        let (looked, missing, host) = {
            let mut source = self.source();
            (source.look(), source.missing(), source.host())
        };
        let at = Instant::now();
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let unix_ms = u64::try_from(unix.as_millis()).unwrap_or(u64::MAX);
        let mut seen = self.seen();
        seen.missing = missing;
        match looked {
            Ok(look) => seen.take(look, at, unix_ms, host),
            Err(why) => {
                let history = std::mem::take(&mut seen.history);
                *seen = Seen { history, why: Some(why), ..Seen::default() };
            }
        }
    }

    /// Asks for something. May take its time.
    ///
    /// # Errors
    /// Why it cannot be had.
    pub(crate) fn detail(&self, what: Detail) -> Result<Value, String> {
        self.source().detail(what)
    }

    fn source(&self) -> MutexGuard<'_, Box<dyn Source>> {
        self.0.source.lock().unpoisoned()
    }

    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.seen.lock().unpoisoned()
    }
}

impl Seen {
    fn take(&mut self, look: Snapshot, at: Instant, unix_ms: u64, host: Option<HostUse>) {
        self.why = None;
        let before = self.now.take();
        // Another process counts from 0 again.
        let same = |before: &Snapshot| {
            (before.pid, before.started_unix_ms) == (look.pid, look.started_unix_ms)
        };
        if let (Some(before), Some(then)) = (before.filter(same), self.at) {
            self.seconds = at.duration_since(then).as_secs_f64().max(f64::EPSILON);
            self.history.add(&before, &look, self.seconds, unix_ms, host);
            self.before = Some(before);
        } else {
            self.before = None;
        }
        self.now = Some(look);
        self.at = Some(at);
    }
}
