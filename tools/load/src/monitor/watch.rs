//! A monitor at work: where it puts values, and news of them.

use crate::scenario::monitors::Monitor;
use keyway_lock::Unpoisoned;
use rustls::ClientConfig;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The last values.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) values: BTreeMap<Arc<str>, (f64, Instant)>,
    /// Why something was not seen, once for each.
    pub(super) troubles: BTreeMap<Arc<str>, String>,
    /// News that was not handed over yet.
    pub(super) news: Vec<String>,
}

/// One of them.
pub(super) struct Watch<'s> {
    pub(super) names: Vec<Arc<str>>,
    pub(super) monitor: &'s Monitor,
    pub(super) tls: Arc<ClientConfig>,
    pub(super) start_tls: bool,
    pub(super) seen: Arc<Mutex<Seen>>,
    /// Whether it sees something, and why not, if that was told.
    pub(super) trouble: Option<String>,
}

pub(super) fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unpoisoned()
}

/// Waits so long; says whether the end has come meanwhile.
pub(super) fn is_over(ended: &Receiver<()>, at_most: Duration) -> bool {
    !matches!(ended.recv_timeout(at_most), Err(RecvTimeoutError::Timeout))
}

impl Watch<'_> {
    /// A title made of the names of its lines, if that is not too long.
    pub(super) fn title(&self) -> &str {
        self.names.first().map_or("", |name| name)
    }

    pub(super) fn say(&mut self, place: usize, value: f64) {
        self.sees();
        if let Some(name) = self.names.get(place) {
            lock(&self.seen).values.insert(name.clone(), (value, Instant::now()));
        }
    }

    /// Something is seen.
    pub(super) fn sees(&mut self) {
        if self.trouble.take().is_some() {
            let words = format!("monitor {}: it is seen now", self.title());
            lock(&self.seen).news.push(words);
        }
    }

    /// Nothing is seen any more, for this reason.
    pub(super) fn lost(&mut self, why: &str, is_tried_again: bool) {
        if self.trouble.as_deref() == Some(why) {
            return;
        }
        self.trouble = Some(why.to_owned());
        let again = if is_tried_again { " (it is tried again)" } else { "" };
        let words = format!("monitor {}: {why}{again}", self.title());
        let mut seen = lock(&self.seen);
        seen.news.push(words);
        for name in &self.names {
            seen.troubles.insert(name.clone(), why.to_owned());
        }
    }
}
