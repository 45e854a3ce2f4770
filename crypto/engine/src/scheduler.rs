//! Which driver gets a session.
//!
//! For now: the one that was named, else the first registered that can. Learned cost takes this
//! function's place, not its signature.

use crate::limits::DRIVERS_MAX;
use crate::{Algorithm, Driver, Error, Parameters, Selection};
use keyway_meter::Counter;
use std::sync::{Arc, OnceLock};

/// What is counted for one driver and one algorithm.
#[derive(Clone, Copy)]
pub(crate) struct Meters {
    pub operations: Counter,
    pub bytes: Counter,
    pub errors: Counter,
    pub busy: Counter,
}

impl Meters {
    fn new(driver: &str, algorithm: Algorithm) -> Self {
        let counter = |what| keyway_meter::counter(&format!("engine.{driver}.{algorithm}.{what}"));
        Meters {
            operations: counter("operations"),
            bytes: counter("bytes"),
            errors: counter("errors"),
            busy: counter("busy"),
        }
    }

    /// Counts one finished request.
    #[inline]
    pub fn count<T>(&self, bytes: usize, result: &Result<T, Error>) {
        self.operations.increment();
        self.bytes.add(bytes as u64);
        if result.is_err() {
            self.errors.increment();
        }
    }
}

/// A registered driver and its counters, made when an algorithm is first used.
pub(crate) struct Lane {
    pub driver: Arc<dyn Driver>,
    meters: [OnceLock<Meters>; Algorithm::COUNT],
}

impl Lane {
    pub fn meters(&self, algorithm: Algorithm) -> Meters {
        *self.meters[algorithm as usize].get_or_init(|| Meters::new(self.driver.name(), algorithm))
    }
}

pub(crate) struct Scheduler {
    lanes: Vec<Lane>,
}

impl Scheduler {
    pub fn new(drivers: Vec<Arc<dyn Driver>>) -> Self {
        let lane = |driver| Lane { driver, meters: [const { OnceLock::new() }; Algorithm::COUNT] };
        Scheduler { lanes: drivers.into_iter().take(DRIVERS_MAX).map(lane).collect() }
    }

    /// Offers `open` the fitting drivers in order until one does not decline as unsupported.
    pub fn place<T>(
        &self,
        parameters: &Parameters<'_>,
        open: impl Fn(&Lane) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let algorithm = parameters.algorithm;
        let fits = |lane: &&Lane| match parameters.driver {
            Some(name) => lane.driver.name() == name,
            None => lane.driver.selection() == Selection::Any,
        };
        let mut known = parameters.driver.is_none();
        for lane in self.lanes.iter().filter(fits) {
            known = true;
            if !lane.driver.supports(algorithm) {
                continue;
            }
            match open(lane) {
                Err(Error::Unsupported(_)) => continue,
                other => return other,
            }
        }
        Err(if known { Error::Unsupported(algorithm) } else { Error::NoSuchDriver })
    }

    pub fn drivers(&self) -> impl Iterator<Item = &Arc<dyn Driver>> {
        self.lanes.iter().map(|lane| &lane.driver)
    }
}
