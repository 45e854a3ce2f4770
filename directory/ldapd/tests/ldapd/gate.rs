//! A driver whose password derivations wait at a gate, so that a test decides when they end.

use keyway_engine::{
    Algorithm, Driver, DriverSession, DriverStream, Effort, Engine, Error, Kind, Request, Step,
};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use tokio::sync::Semaphore;

pub struct Gate {
    open: Mutex<bool>,
    changed: Condvar,
    arrived: Semaphore,
    derived: AtomicUsize,
}

impl Gate {
    pub fn new(open: bool) -> Arc<Gate> {
        let (open, changed) = (Mutex::new(open), Condvar::new());
        let (arrived, derived) = (Semaphore::new(0), AtomicUsize::new(0));
        Arc::new(Gate { open, changed, arrived, derived })
    }

    pub fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.changed.notify_all();
    }

    pub fn close(&self) {
        *self.open.lock().unwrap() = false;
    }

    /// How many derivations have come to the gate.
    pub fn derived(&self) -> usize {
        self.derived.load(Ordering::Relaxed)
    }

    /// Waits until a derivation has come to the gate; each counts once.
    pub async fn arrived(&self) {
        self.arrived.acquire().await.unwrap().forget();
    }

    fn pass(&self) {
        self.derived.fetch_add(1, Ordering::Relaxed);
        self.arrived.add_permits(1);
        let open = self.open.lock().unwrap();
        drop(self.changed.wait_while(open, |open| !*open).unwrap());
    }
}

/// The software driver behind the gate.
pub fn driver(gate: &Arc<Gate>) -> Arc<dyn Driver> {
    Arc::new(Gated { gate: gate.clone(), software: keyway_drivers::software() })
}

/// An engine with one slow thread and room for `depth` more.
pub fn engine(driver: Arc<dyn Driver>, depth: usize) -> Engine {
    Engine::builder().driver(driver).slow_pool(1, depth).build()
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
        if !matches!(request, Request::VerifyPassword { effort: Effort::Recall, .. }) {
            self.gate.pass();
        }
        self.software.run(request)
    }
}
