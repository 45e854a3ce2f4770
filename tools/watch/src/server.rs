//! A server that is looked at again and again, by a thread of its own.

use crate::snapshot::{ServerDelta, ServerSnapshot};
use crate::source::SnapshotSource;
use keyway_host::failure::Failure;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// A server and its last two snapshots.
pub struct WatchedServer {
    /// Its name in lines.
    pub name: String,
    /// The snapshot before the last.
    pub before: Option<ServerSnapshot>,
    /// The last one.
    pub now: Option<ServerSnapshot>,
    /// Why nothing is seen of it now.
    pub gone: Option<String>,
    /// Lines of earlier intervals, with all columns.
    pub lines: VecDeque<String>,
}

impl WatchedServer {
    /// One that was not looked at yet.
    #[must_use]
    pub fn new(name: String) -> WatchedServer {
        WatchedServer { name, before: None, now: None, gone: None, lines: VecDeque::new() }
    }

    /// The difference of the last two.
    #[must_use]
    pub fn change(&self) -> Option<ServerDelta<'_>> {
        ServerDelta::between(self.before.as_ref()?, self.now.as_ref()?)
    }

    /// Takes a snapshot, or why there is none.
    pub fn seen(&mut self, snapshot: Result<ServerSnapshot, String>) {
        match snapshot {
            Ok(snapshot) => {
                if self.gone.take().is_some() {
                    // The time in which it was gone is no interval.
                    (self.before, self.now) = (None, None);
                }
                self.before = self.now.replace(snapshot);
            }
            Err(why) => self.gone = Some(why),
        }
    }
}

/// Snapshots, each with the number of its server.
pub type Snapshots = Receiver<(usize, Result<ServerSnapshot, String>)>;

/// Has a thread look at each.
pub fn watch(
    sources: Vec<(String, SnapshotSource)>,
    interval: Duration,
    connections: &Arc<AtomicBool>,
) -> Snapshots {
    let (tell, seen) = channel();
    for (number, (_, source)) in sources.into_iter().enumerate() {
        let (tell, connections) = (tell.clone(), connections.clone());
        std::thread::spawn(move || source.watch(number, interval, &connections, &tell));
    }
    seen
}

/// Why none of them can be looked at.
#[must_use]
pub fn why_not(hosts: &[WatchedServer]) -> Failure {
    let reasons = hosts.iter().filter_map(|host| {
        let why = host.gone.as_ref()?;
        Some(if hosts.len() > 1 { format!("{}: {why}", host.name) } else { why.clone() })
    });
    Failure::new(reasons.collect::<Vec<_>>().join("; "))
}
