//! A wish that work ends, a signal's or another thread's, heard by work that looks now and then.

use crate::failure::Failure;
use crate::signals::{STATUS_AT_ONCE, Second, at_end};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether an end was asked for.
#[derive(Clone, Debug)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Catches signals from now on. The first one is seen by the code that checks.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn watch(second: Second) -> Result<Stop, Failure> {
        let asked = Arc::new(AtomicBool::new(false));
        let told = asked.clone();
        at_end(second, move || told.store(true, Ordering::Relaxed))?;
        Ok(Stop(asked))
    }

    /// One that no signal asks for.
    pub fn by_hand() -> Stop {
        Stop(Arc::new(AtomicBool::new(false)))
    }

    /// Asks the work to end.
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the work is to end.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The text to print then.
    pub fn failure(line: &str) -> Failure {
        Failure::with_status(line, STATUS_AT_ONCE as u8)
    }
}
