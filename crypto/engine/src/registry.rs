//! The drivers there are at this moment.

use crate::metrics::Work;
use crate::opener::Opener;
use crate::parameters::is_name;
use crate::pending::Pending;
use crate::registered::RegisteredDriver;
use crate::{Algorithm, Demand, DriverSession, Error, Place, Selection, Step, limits};
use keyway_lock::Unpoisoned;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

/// Drivers to choose from. There are rarely more than four, and then nothing is allocated: a TLS
/// connection opens dozens of sessions.
pub(crate) type Drivers = SmallVec<[Arc<RegisteredDriver>; 4]>;

pub(crate) struct Registry {
    /// Changes whenever a driver comes or goes, so that sessions make a new table.
    epoch: AtomicU64,
    /// One in so many requests is timed; 0 for none. A power of two.
    sample: AtomicU32,
    legacy: AtomicBool,
    drivers: RwLock<Vec<Arc<RegisteredDriver>>>,
    /// Runs the chains that no driver does whole.
    pub chain: Arc<RegisteredDriver>,
    /// Requests on drivers that work beside the caller, of all drivers together.
    pub pending: Pending,
    pub hooks: Hooks,
}

/// Opens a chain that no driver does whole.
type OpenChain =
    fn(&Arc<Registry>, &[Step<'_>], Demand<'_>) -> Result<Box<dyn DriverSession>, Error>;
/// Measures what a driver's work costs, unless that was done.
type Calibrate = fn(&Arc<Registry>, &Arc<RegisteredDriver>, &Work, &[Algorithm]);

/// Functions that the scheduler calls although both open sessions. The engine passes these in, so
/// that the scheduler does not import what is built on it.
pub(crate) struct Hooks {
    pub open_chain: OpenChain,
    pub calibrate: Calibrate,
}

impl Registry {
    pub fn new(legacy: bool, sample: u32, hooks: Hooks) -> Self {
        Registry {
            epoch: AtomicU64::new(1),
            sample: AtomicU32::new(sample),
            legacy: AtomicBool::new(legacy),
            drivers: RwLock::default(),
            chain: Arc::new(RegisteredDriver::chain()),
            pending: Pending::default(),
            hooks,
        }
    }

    #[inline]
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    #[inline]
    pub fn sample(&self) -> u32 {
        self.sample.load(Ordering::Relaxed)
    }

    pub fn set_sample(&self, every: u32) {
        self.sample.store(every, Ordering::Relaxed);
    }

    pub fn allows(&self, algorithm: Algorithm) -> Result<(), Error> {
        if algorithm.is_legacy() && !self.legacy.load(Ordering::Relaxed) {
            return Err(Error::Disabled(algorithm));
        }
        Ok(())
    }

    pub fn register(&self, driver: Arc<dyn Opener>) -> Result<(), Error> {
        if !is_name(driver.name()) {
            return Err(Error::invalid_request(
                "a driver's name has lower-case letters, digits and dashes, 32 at most",
            ));
        }
        let driver = Arc::new(RegisteredDriver::new(driver));
        let mut drivers = self.drivers.write().unpoisoned();
        if drivers.iter().any(|other| other.name == driver.name)
            || driver.name == crate::registered::CHAIN
        {
            return Err(Error::invalid_request("a driver of that name is registered"));
        }
        if drivers.len() >= limits::DRIVERS_MAX {
            return Err(Error::invalid_request("there are as many drivers as an engine holds"));
        }
        drivers.push(driver);
        self.changed();
        Ok(())
    }

    /// Says whether there was one.
    pub fn unregister(&self, name: &str) -> bool {
        let mut drivers = self.drivers.write().unpoisoned();
        let Some(index) = drivers.iter().position(|driver| driver.name == name) else {
            return false;
        };
        let driver = drivers.remove(index);
        self.changed();
        driver.end();
        // Unlocked first: a driver that is dropped here may call the engine.
        drop(drivers);
        true
    }

    /// So many requests go to a driver that works beside the caller.
    #[inline]
    pub fn begin(&self, driver: &RegisteredDriver, requests: u64) {
        driver.pending.add(requests);
        self.pending.add(requests);
    }

    /// So many of these are done.
    #[inline]
    pub fn finish(&self, driver: &RegisteredDriver, requests: u64) {
        driver.pending.take(requests);
        self.pending.take(requests);
    }

    /// The driver has died: no session is placed on it any more.
    pub fn mark_dead(&self, driver: &Arc<RegisteredDriver>) {
        let mut drivers = self.drivers.write().unpoisoned();
        if let Some(index) = drivers.iter().position(|other| Arc::ptr_eq(other, driver)) {
            drivers.remove(index);
            self.changed();
        }
        driver.end();
    }

    /// Says whether there is such a driver.
    pub fn set_algorithm(&self, name: &str, algorithm: Algorithm, registered: bool) -> bool {
        let drivers = self.drivers.write().unpoisoned();
        let Some(driver) = drivers.iter().find(|driver| driver.name == name) else { return false };
        if registered {
            driver.restore(algorithm);
        } else {
            driver.withdraw(algorithm);
        }
        self.changed();
        true
    }

    pub fn named(&self, name: &str) -> Option<Arc<RegisteredDriver>> {
        self.drivers().into_iter().find(|driver| driver.name == name)
    }

    /// In the order of registration.
    pub fn drivers(&self) -> Vec<Arc<RegisteredDriver>> {
        self.drivers.read().unpoisoned().clone()
    }

    /// The drivers that may do these steps, and whether there is a driver that meets the demand.
    /// Where a key has a name, any driver may be the one that holds it.
    pub fn fitting(
        &self,
        steps: &[Algorithm],
        demand: Demand<'_>,
        has_named_key: bool,
    ) -> (Drivers, bool) {
        let drivers = self.drivers.read().unpoisoned();
        let is_open = |selection| selection == Selection::Any || has_named_key;
        let fits = |driver: &&Arc<RegisteredDriver>| match demand {
            Demand::Named(name) => driver.name == name,
            Demand::Any => is_open(driver.selection),
            Demand::Software => is_open(driver.selection) && driver.place != Place::Device,
            Demand::Hardware => is_open(driver.selection) && driver.place == Place::Device,
        };
        let mut known = !matches!(demand, Demand::Named(_));
        let fitting = drivers.iter().filter(fits).inspect(|_| known = true);
        let fitting = fitting.filter(|driver| driver.supports(steps)).cloned().collect();
        (fitting, known)
    }

    /// Called with the drivers locked, and before a driver ends. So a thread that sees a dead
    /// driver sees a new epoch too.
    fn changed(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
    }
}
