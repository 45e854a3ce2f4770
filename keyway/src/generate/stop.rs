//! A signal, heard by work that looks now and then.

use crate::failure::{Failure, plain};
use crate::signals::{STATUS_AT_ONCE, Signals};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether somebody has asked for an end.
#[derive(Clone, Debug)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Catches signals from now on. The first one is heeded by whoever looks; the second ends the
    /// process.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn watch() -> Result<Stop, Failure> {
        let bad =
            |why: std::io::Error| Failure::new(format!("cannot catch signals: {}", plain(&why)));
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(bad)?;
        let mut signals = {
            let _inside = runtime.enter();
            Signals::catch()?
        };
        let asked = Arc::new(AtomicBool::new(false));
        let told = asked.clone();
        std::thread::spawn(move || {
            runtime.block_on(async move {
                signals.next().await;
                told.store(true, Ordering::Relaxed);
                signals.end_at_next().await
            })
        });
        Ok(Stop(asked))
    }

    /// Whether the work is to end.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// What to say then.
    pub fn failure(line: &str) -> Failure {
        Failure::with_status(line, STATUS_AT_ONCE as u8)
    }
}
