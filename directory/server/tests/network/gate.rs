//! A driver whose password derivations wait at a gate, so that a test decides when they end.

use keyway_engine::{
    Algorithm, Driver, DriverSession, DriverStream, Engine, Error, Kind, Request, Step,
};
use std::sync::{Arc, Condvar, Mutex};
use tokio::sync::Semaphore;

pub struct Gate {
    open: Mutex<bool>,
    changed: Condvar,
    arrived: Semaphore,
}

impl Gate {
    pub fn new(open: bool) -> Arc<Gate> {
        let (open, changed) = (Mutex::new(open), Condvar::new());
        Arc::new(Gate { open, changed, arrived: Semaphore::new(0) })
    }

    pub fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.changed.notify_all();
    }

    /// Waits until a derivation has come to the gate; each counts once.
    pub async fn arrived(&self) {
        self.arrived.acquire().await.unwrap().forget();
    }

    fn pass(&self) {
        self.arrived.add_permits(1);
        let open = self.open.lock().unwrap();
        drop(self.changed.wait_while(open, |open| !*open).unwrap());
    }
}

/// The software driver behind the gate, with one slow thread and room for `depth` more.
pub fn engine(gate: &Arc<Gate>, depth: usize) -> Engine {
    let driver = Gated { gate: gate.clone(), software: keyway_drivers::software() };
    Engine::builder().driver(Arc::new(driver)).slow_pool(1, depth).build()
}

struct Gated {
    gate: Arc<Gate>,
    software: Arc<dyn Driver>,
}

struct GatedSession {
    gate: Arc<Gate>,
    software: Box<dyn DriverSession>,
}

impl Driver for Gated {
    fn name(&self) -> &str {
        "gated"
    }

    fn supports(&self, steps: &[Algorithm]) -> bool {
        self.software.supports(steps)
    }

    fn open(&self, steps: &[Step<'_>]) -> Result<Box<dyn DriverSession>, Error> {
        let software = self.software.open(steps)?;
        Ok(match steps[0].algorithm.kind() {
            Kind::Password => Box::new(GatedSession { gate: self.gate.clone(), software }),
            _ => software,
        })
    }

    fn stream(&self, algorithm: Algorithm) -> Result<Box<dyn DriverStream>, Error> {
        self.software.stream(algorithm)
    }
}

impl DriverSession for GatedSession {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        self.gate.pass();
        self.software.run(request)
    }
}
