//! The controls of a caller over a run under way: its end, and its rate.

use crate::limits::RATE_MAX;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The request to end a run. Clones share one request.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Asks for the end: no more starts, a moment for what is under way, and the results so far.
    pub fn end(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the end was asked for.
    #[must_use]
    pub fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A rate that replaces that of the phases while a run is under way. Clones share one value.
#[derive(Clone, Debug, Default)]
pub struct RateOverride(Arc<AtomicU64>);

impl RateOverride {
    /// Sets the starts a second from now on: a positive number, and [`RATE_MAX`] at most. A phase that
    /// goes as fast as it is answered has no rate to change.
    pub fn set(&self, rate: f64) {
        if rate > 0.0 && rate <= RATE_MAX {
            self.0.store(rate.to_bits(), Ordering::Relaxed);
        }
    }

    /// The rate that was set last, if there is one.
    #[must_use]
    pub fn get(&self) -> Option<f64> {
        Some(f64::from_bits(self.0.load(Ordering::Relaxed))).filter(|rate| *rate > 0.0)
    }
}
