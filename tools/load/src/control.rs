//! What a caller changes while a run is under way: its end, and its rate.

use crate::limits::RATE_MAX;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Whether somebody has asked for the end. Clones are of the same one.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Asks for the end: no more starts, a moment for what is under way, and the results so far.
    pub fn end(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody has.
    #[must_use]
    pub fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The rate that somebody wants while a run is under way, instead of its phases'. Clones are of the same
/// one.
#[derive(Clone, Debug, Default)]
pub struct RateOverride(Arc<AtomicU64>);

impl RateOverride {
    /// From now on, so many starts a second: a positive number, and [`RATE_MAX`] at most. What goes as
    /// fast as it is answered has no rate to change.
    pub fn set(&self, rate: f64) {
        if rate > 0.0 && rate <= RATE_MAX {
            self.0.store(rate.to_bits(), Ordering::Relaxed);
        }
    }

    /// What was set last, if anything was.
    #[must_use]
    pub fn get(&self) -> Option<f64> {
        Some(f64::from_bits(self.0.load(Ordering::Relaxed))).filter(|rate| *rate > 0.0)
    }
}
