//! The counters of a page in order, those of the engine and its clients apart.

use keyway_meter::{Distribution, OPERATIONS, Snapshot};
use std::collections::BTreeMap;

/// The counter of connections that were opened.
pub const OPENED: &str = "ldap.connection.opened";
/// The counter of connections that were closed.
pub const CLOSED: &str = "ldap.connection.closed";

/// The counters of a page, those of the engine and of its clients apart.
#[derive(Default)]
pub struct PageCounters {
    /// All others, by name.
    pub values: BTreeMap<String, u64>,
    /// By driver, then by algorithm.
    pub engine: BTreeMap<String, BTreeMap<String, EngineWork>>,
    /// By client.
    pub clients: BTreeMap<String, EngineWork>,
}

/// The engine's work with one algorithm in one driver, or for one client.
#[derive(Clone, Default)]
pub struct EngineWork {
    /// Requests that were done.
    pub operations: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Requests that were refused because the driver was full.
    pub busy: u64,
    /// Errors by kind.
    pub kinds: BTreeMap<String, u64>,
    /// `queue`, `run` and `deliver`, as far as they are recorded.
    pub times: BTreeMap<String, Distribution>,
}

impl PageCounters {
    /// Puts a page's counters in order.
    #[must_use]
    pub fn of(page: &Snapshot) -> PageCounters {
        let mut counters = PageCounters::default();
        for (name, value) in &page.counters {
            let parts: Vec<&str> = name.split('.').collect();
            let Some((work, event)) = counters.work(&parts) else {
                counters.values.insert(name.clone(), *value);
                continue;
            };
            match event {
                ["operations"] => work.operations = *value,
                ["bytes"] => work.bytes = *value,
                ["errors"] => work.errors = *value,
                ["busy"] => work.busy = *value,
                ["error", kind] => {
                    work.kinds.insert((*kind).to_owned(), *value);
                }
                _ => {}
            }
        }
        for (name, values) in &page.histograms {
            let parts: Vec<&str> = name.split('.').collect();
            if let Some((work, [what])) = counters.work(&parts) {
                work.times.insert((*what).to_owned(), values.clone());
            }
        }
        for client in counters.clients.values_mut() {
            client.errors = client.kinds.values().fold(0, |sum, kind| sum.saturating_add(*kind));
        }
        counters
    }

    /// The work that an event is of, and which event of it.
    fn work<'a>(&mut self, name: &'a [&str]) -> Option<(&mut EngineWork, &'a [&'a str])> {
        match name {
            ["engine", driver, algorithm, event @ ..] => {
                let algorithms = self.engine.entry((*driver).to_owned()).or_default();
                Some((algorithms.entry((*algorithm).to_owned()).or_default(), event))
            }
            ["client", client, event @ ..] => {
                Some((self.clients.entry((*client).to_owned()).or_default(), event))
            }
            _ => None,
        }
    }

    /// The value of a counter, 0 if there is none.
    #[must_use]
    pub fn value(&self, name: &str) -> u64 {
        self.values.get(name).copied().unwrap_or_default()
    }

    /// All LDAP operations.
    #[must_use]
    pub fn total(&self) -> u64 {
        OPERATIONS.iter().fold(0, |sum, (_, name)| sum.saturating_add(self.value(name)))
    }

    /// Connections that are open.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.value(OPENED).saturating_sub(self.value(CLOSED))
    }
}

impl EngineWork {
    /// Whether nothing was counted.
    #[must_use]
    pub fn idle(&self) -> bool {
        let EngineWork { operations, bytes, errors, busy, .. } = self;
        [operations, bytes, errors, busy].into_iter().all(|count| *count == 0)
            && self.kinds.values().all(|count| *count == 0)
            && self.times.values().all(|times| times.count == 0)
    }

    /// The sum, of counts only.
    #[must_use]
    pub fn sum<'a>(works: impl Iterator<Item = &'a EngineWork>) -> EngineWork {
        works.fold(EngineWork::default(), |sum, work| EngineWork {
            operations: sum.operations.saturating_add(work.operations),
            bytes: sum.bytes.saturating_add(work.bytes),
            errors: sum.errors.saturating_add(work.errors),
            busy: sum.busy.saturating_add(work.busy),
            ..sum
        })
    }
}
