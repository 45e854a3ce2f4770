//! A report that is told while it is made: every so often, and when SIGUSR1 asks for it.

use keyway_decode::view::View;
use keyway_decode::{Note, Operation, Report};
use keyway_host::failure::{Failure, plain};
use keyway_host::output;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// A report that one thread makes and another tells.
#[derive(Clone)]
pub struct Live(Arc<Mutex<Report>>);

impl Live {
    /// One that is told at its end, and until then when it is asked for. A thread of its own writes: a
    /// terminal that is stopped holds nobody up.
    ///
    /// # Errors
    /// If the system gives no thread, or no signals.
    pub fn start(report: Report, every: Option<Duration>) -> Result<Live, Failure> {
        let cannot = |why: std::io::Error| Failure::new(format!("cannot start: {}", plain(&why)));
        let live = Live(Arc::new(Mutex::new(report)));
        let told = live.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(cannot)?;
        let mut asked = {
            let _inside = runtime.enter();
            signal(SignalKind::user_defined1()).map_err(cannot)?
        };
        let tell = move || {
            runtime.block_on(async {
                loop {
                    let due = async {
                        match every {
                            Some(every) => tokio::time::sleep(every).await,
                            None => std::future::pending().await,
                        }
                    };
                    tokio::select! {
                        _ = asked.recv() => {}
                        () = due => {}
                    }
                    let text = told.lock().said();
                    // Whoever does not read any more is found out at the end.
                    if output::write(text.trim_end()).is_err() {
                        return;
                    }
                }
            });
        };
        thread::Builder::new().name("report".to_owned()).spawn(tell).map_err(cannot)?;
        Ok(live)
    }

    fn lock(&self) -> MutexGuard<'_, Report> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl View for Live {
    fn operation(&mut self, operation: &Operation<'_>, out: &mut Vec<u8>) {
        self.lock().operation(operation, out);
    }

    fn note(&mut self, note: &Note<'_>, out: &mut Vec<u8>) {
        self.lock().note(note, out);
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.lock().end(out);
    }
}
