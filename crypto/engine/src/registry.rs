//! The drivers there are at this moment.

use crate::lane::Lane;
use crate::parameters::is_name;
use crate::{Algorithm, Demand, Driver, Error, Place, Selection, limits};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Lanes to choose from, as a rule so few that they need no allocation: a TLS connection opens dozens of
/// sessions.
pub(crate) type Lanes = SmallVec<[Arc<Lane>; 4]>;

pub(crate) struct Registry {
    /// Changes whenever a lane comes or goes, so that sessions look again.
    epoch: AtomicU64,
    /// One in so many requests is timed; 0 for none. A power of two.
    sample: AtomicU32,
    legacy: AtomicBool,
    lanes: RwLock<Vec<Arc<Lane>>>,
    /// Where chains go that no driver does whole.
    pub chain: Arc<Lane>,
}

impl Registry {
    pub fn new(legacy: bool, sample: u32) -> Self {
        Registry {
            epoch: AtomicU64::new(1),
            sample: AtomicU32::new(sample),
            legacy: AtomicBool::new(legacy),
            lanes: RwLock::default(),
            chain: Arc::new(Lane::chain()),
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

    pub fn register(&self, driver: Arc<dyn Driver>) -> Result<(), Error> {
        if !is_name(driver.name()) {
            return Err(Error::invalid_request(
                "a driver's name has lower-case letters, digits and dashes, 32 at most",
            ));
        }
        let lane = Arc::new(Lane::new(driver));
        let mut lanes = self.lanes.write().unwrap_or_else(PoisonError::into_inner);
        if lanes.iter().any(|other| other.name == lane.name) || lane.name == crate::lane::CHAIN {
            return Err(Error::invalid_request("a driver of that name is registered"));
        }
        if lanes.len() >= limits::DRIVERS_MAX {
            return Err(Error::invalid_request("there are as many drivers as an engine holds"));
        }
        lanes.push(lane);
        self.changed();
        Ok(())
    }

    /// Says whether there was one.
    pub fn unregister(&self, name: &str) -> bool {
        let mut lanes = self.lanes.write().unwrap_or_else(PoisonError::into_inner);
        let Some(index) = lanes.iter().position(|lane| lane.name == name) else { return false };
        let lane = lanes.remove(index);
        self.changed();
        lane.end();
        // A driver that is dropped here may look at the engine.
        drop(lanes);
        true
    }

    /// The lane's driver has died.
    pub fn bury(&self, lane: &Arc<Lane>) {
        let mut lanes = self.lanes.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = lanes.iter().position(|other| Arc::ptr_eq(other, lane)) {
            lanes.remove(index);
            self.changed();
        }
        lane.end();
    }

    /// Says whether there is such a driver.
    pub fn set_algorithm(&self, name: &str, algorithm: Algorithm, registered: bool) -> bool {
        let lanes = self.lanes.write().unwrap_or_else(PoisonError::into_inner);
        let Some(lane) = lanes.iter().find(|lane| lane.name == name) else { return false };
        if registered {
            lane.restore(algorithm);
        } else {
            lane.withdraw(algorithm);
        }
        self.changed();
        true
    }

    pub fn named(&self, name: &str) -> Option<Arc<Lane>> {
        self.lanes().into_iter().find(|lane| lane.name == name)
    }

    /// In the order of registration.
    pub fn lanes(&self) -> Vec<Arc<Lane>> {
        self.lanes.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Those that may do these steps, and whether the demand can be met by anybody at all.
    pub fn fitting(&self, steps: &[Algorithm], demand: Demand<'_>) -> (Lanes, bool) {
        let lanes = self.lanes.read().unwrap_or_else(PoisonError::into_inner);
        let fits = |lane: &&Arc<Lane>| match demand {
            Demand::Named(name) => lane.name == name,
            Demand::Any => lane.selection == Selection::Any,
            Demand::Software => lane.selection == Selection::Any && lane.place != Place::Device,
            Demand::Hardware => lane.selection == Selection::Any && lane.place == Place::Device,
        };
        let mut known = !matches!(demand, Demand::Named(_));
        let fitting = lanes.iter().filter(fits).inspect(|_| known = true);
        let fitting = fitting.filter(|lane| lane.supports(steps)).cloned().collect();
        (fitting, known)
    }

    /// With the lanes locked, and before a lane ends: whoever sees a dead lane sees a new epoch too.
    fn changed(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
    }
}
