//! A way to end a measurement early.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the user has asked for the end. Clones are of the same one.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Asks for the end.
    pub fn end(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the user has.
    pub fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
