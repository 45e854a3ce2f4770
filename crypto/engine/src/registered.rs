//! A registered driver, as the engine sees it.

use crate::metrics::Work;
use crate::opener::Opener;
use crate::pending::Pending;
use crate::{Algorithm, Place, Selection};
use keyway_lock::Unpoisoned;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock};

/// The name under which the engine itself runs chains, step by step on other drivers.
pub(crate) const CHAIN: &str = "chain";

/// One registration of a driver. To register a driver again makes a new one.
pub(crate) struct RegisteredDriver {
    pub name: String,
    /// `None` for the engine's own way to run chains.
    pub opener: Option<Arc<dyn Opener>>,
    pub place: Place,
    pub selection: Selection,
    /// Whether it has queues of its own; otherwise it computes on the caller's stack.
    pub queued: bool,
    /// Whether the work takes the caller's own time, with a queue or without.
    pub on_caller: bool,
    pub parallel: u64,
    alive: AtomicBool,
    /// Algorithms that were unregistered from it.
    withdrawn: RwLock<Vec<Algorithm>>,
    /// Predicted nanoseconds of what it has accepted and not finished, from all queues.
    pub backlog: AtomicU64,
    /// Requests that it has and has not finished, where it works beside the caller.
    pub pending: Pending,
    singles: [OnceLock<Arc<Work>>; Algorithm::COUNT],
    chains: Mutex<HashMap<Vec<Algorithm>, Arc<Work>>>,
}

impl RegisteredDriver {
    pub fn new(driver: Arc<dyn Opener>) -> Self {
        let (name, place) = (driver.name().to_owned(), driver.place());
        RegisteredDriver {
            queued: driver.has_queues(),
            on_caller: place == Place::Caller,
            parallel: driver.parallel().max(1) as u64,
            ..Self::bare(name, Some(driver.clone()), place, driver.selection())
        }
    }

    /// The stand-in for the engine's own way to run chains.
    pub fn chain() -> Self {
        Self::bare(CHAIN.to_owned(), None, Place::Caller, Selection::Any)
    }

    fn bare(
        name: String,
        opener: Option<Arc<dyn Opener>>,
        place: Place,
        selection: Selection,
    ) -> Self {
        RegisteredDriver {
            name,
            opener,
            place,
            selection,
            queued: false,
            on_caller: true,
            parallel: 1,
            alive: AtomicBool::new(true),
            withdrawn: RwLock::default(),
            backlog: AtomicU64::new(0),
            pending: Pending::default(),
            singles: [const { OnceLock::new() }; Algorithm::COUNT],
            chains: Mutex::default(),
        }
    }

    /// Whether it is registered and was not seen to die.
    #[inline]
    pub fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Acquire)
    }

    /// It was unregistered, or has died.
    pub fn end(&self) {
        self.alive.store(false, Ordering::Release);
    }

    pub fn withdraw(&self, algorithm: Algorithm) {
        let mut withdrawn = self.withdrawn.write().unpoisoned();
        if !withdrawn.contains(&algorithm) {
            withdrawn.push(algorithm);
        }
    }

    pub fn restore(&self, algorithm: Algorithm) {
        let mut withdrawn = self.withdrawn.write().unpoisoned();
        withdrawn.retain(|gone| *gone != algorithm);
    }

    pub fn supports(&self, steps: &[Algorithm]) -> bool {
        let Some(driver) = &self.opener else { return false };
        // The lock last: most drivers that are asked do not support these steps anyway.
        self.is_alive() && driver.supports(steps) && !self.has_withdrawn(steps)
    }

    fn has_withdrawn(&self, steps: &[Algorithm]) -> bool {
        let withdrawn = self.withdrawn.read().unpoisoned();
        steps.iter().any(|step| withdrawn.contains(step))
    }

    /// Its meters and costs for these steps, made when they are first used.
    pub fn work(&self, steps: &[Algorithm]) -> Arc<Work> {
        match steps {
            [step] => {
                self.singles[*step as usize].get_or_init(|| Work::new(&self.name, steps)).clone()
            }
            _ => {
                let mut chains = self.chains.lock().unpoisoned();
                let new = || Work::new(&self.name, steps);
                chains.entry(steps.to_vec()).or_insert_with(new).clone()
            }
        }
    }

    /// The meters and costs of all steps that were ever used.
    pub fn works(&self) -> Vec<Arc<Work>> {
        let chains = self.chains.lock().unpoisoned();
        let singles = self.singles.iter().filter_map(|cell| cell.get().cloned());
        singles.chain(chains.values().cloned()).collect()
    }

    /// Adds predicted nanoseconds of accepted work to the backlog.
    pub fn load(&self, nanoseconds: u64) {
        self.backlog.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// Takes the same nanoseconds off the backlog when the work is done.
    pub fn unload(&self, nanoseconds: u64) {
        self.backlog.fetch_sub(nanoseconds, Ordering::Relaxed);
    }

    /// Nanoseconds that a new request waits for those before it.
    pub fn wait(&self) -> f64 {
        self.backlog.load(Ordering::Relaxed) as f64 / self.parallel as f64
    }
}
