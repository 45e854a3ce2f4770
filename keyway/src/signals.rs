//! SIGINT and SIGTERM: the first asks for an end in good order, the second for one at once. SIGHUP
//! asks to read again what can change while a server runs, and so a terminal that is closed ends
//! nothing.

use crate::failure::Failure;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The exit status after a second signal: 128 and SIGINT's number, as shells have it.
const STATUS_AT_ONCE: i32 = 130;

/// The signals, from when it was made on.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// An end.
    End,
    /// To read again what can change.
    Reload,
}

/// Begins to catch SIGHUP: who starts a server, which may take minutes the first time, may leave.
///
/// # Errors
/// If the system refuses.
pub fn catch_hangup() -> Result<Signal, Failure> {
    catch(SignalKind::hangup())
}

fn catch(kind: SignalKind) -> Result<Signal, Failure> {
    signal(kind).map_err(|why| Failure::new(format!("cannot catch signals: {why}")))
}

impl Signals {
    /// Begins to catch them. They no longer end the process by themselves.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn catch() -> Result<Signals, Failure> {
        Signals::catch_beside(catch_hangup()?)
    }

    /// The same, where SIGHUP is caught already: one that came meanwhile is not forgotten.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn catch_beside(hangup: Signal) -> Result<Signals, Failure> {
        Ok(Signals {
            interrupt: catch(SignalKind::interrupt())?,
            terminate: catch(SignalKind::terminate())?,
            hangup,
        })
    }

    /// Waits for the next one.
    pub async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.interrupt.recv() => Asked::End,
            _ = self.terminate.recv() => Asked::End,
            _ = self.hangup.recv() => Asked::Reload,
        }
    }

    /// Waits for one that asks for an end.
    pub async fn end(&mut self) {
        while self.next().await != Asked::End {}
    }

    /// Ends the process when the next one comes.
    pub async fn end_at_next(mut self) -> ! {
        self.end().await;
        std::process::exit(STATUS_AT_ONCE)
    }
}
