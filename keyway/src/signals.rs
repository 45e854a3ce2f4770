//! SIGINT and SIGTERM: the first asks for an end in good order, the second for one at once.

use crate::failure::Failure;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The exit status after a second signal: 128 and SIGINT's number, as shells have it.
const STATUS_AT_ONCE: i32 = 130;

/// Both signals, from when it was made on.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Begins to catch them. They no longer end the process by themselves.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn catch() -> Result<Signals, Failure> {
        let catch =
            |kind| signal(kind).map_err(|why| Failure::new(format!("cannot catch signals: {why}")));
        Ok(Signals {
            interrupt: catch(SignalKind::interrupt())?,
            terminate: catch(SignalKind::terminate())?,
        })
    }

    /// Waits for the next one.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// Ends the process when the next one comes.
    pub async fn end_at_next(mut self) -> ! {
        self.next().await;
        std::process::exit(STATUS_AT_ONCE)
    }
}
