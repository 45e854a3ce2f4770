//! rustls' tables: how long they live, and what belongs into them.

use keyway_engine::{Algorithm, Engine};

/// Gives a table the lifetime that rustls asks for.
pub fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

/// Whether the scheduler has a driver for this to choose.
pub fn offers(engine: &Engine, algorithm: Algorithm) -> bool {
    engine.offers(&[algorithm])
}
