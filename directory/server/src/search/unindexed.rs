//! Searches that no index helps, counted by what they lack.

use crate::limits::UNINDEXED_COUNTED_MAX;
use crate::plan::Lack;
use keyway_lock::Unpoisoned;
use keyway_meter::{Counter, counter};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The keys by which such searches are counted: their attribute and the kind of index that they lack.
#[derive(Default)]
pub(crate) struct Unindexed(Mutex<HashMap<String, Arc<Lacking>>>);

/// Searches that lack the same.
pub(crate) struct Lacking {
    /// `description substring`, for the log.
    pub label: String,
    searches: Counter,
    entries: Counter,
    time_ns: Counter,
}

impl Unindexed {
    /// Counts a search.
    pub fn count(&self, lack: &Lack) -> Arc<Lacking> {
        let (attribute, index) = match lack {
            Lack::Index { attribute, kind } => (attribute.as_str(), kind.name()),
            Lack::Cannot(_) => ("any", "none"),
        };
        let label = format!("{attribute} {index}");
        let mut all = self.0.lock().unpoisoned();
        let lacking = match all.get(&label) {
            Some(lacking) => lacking.clone(),
            None => {
                // A name's parts are between dots, and there is no end of names.
                let is_counted = all.len() < UNINDEXED_COUNTED_MAX && !attribute.contains('.');
                let lacking = Arc::new(match is_counted {
                    true => Lacking::new(label.clone(), attribute, index),
                    false => Lacking::new(label.clone(), "other", index),
                });
                if is_counted {
                    all.insert(label, lacking.clone());
                }
                lacking
            }
        };
        lacking.searches.increment();
        lacking
    }
}

impl Lacking {
    fn new(label: String, attribute: &str, index: &str) -> Lacking {
        let of = |what: &str| counter(&format!("search.unindexed.{attribute}.{index}.{what}"));
        Lacking { label, searches: of("searches"), entries: of("entries"), time_ns: of("time") }
    }

    /// Counts the cost of a step.
    pub fn cost(&self, entries: u64, time: Duration) {
        self.entries.add(entries);
        self.time_ns.add(nanoseconds(time));
    }
}

pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
