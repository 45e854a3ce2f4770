//! A report that is told while it is made: every so often, and when SIGUSR1 asks for it.

use crate::view::View;
use crate::{Note, Operation, Report};
use keyway_host::failure::{Failure, plain};
use keyway_lock::Unpoisoned;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// A report that one thread makes and another tells.
#[derive(Clone, Debug)]
pub struct LiveReport(Arc<Mutex<Report>>);

impl LiveReport {
    /// One that is told at its end, and until then when it is asked for. A thread of its own calls `write`: a
    /// terminal that is stopped does not hold up the decoder. An error of that ends the telling.
    ///
    /// # Errors
    /// If the system gives no thread, or no signals.
    pub fn start(
        report: Report,
        every: Option<Duration>,
        write: impl Fn(&str) -> io::Result<()> + Send + 'static,
    ) -> Result<LiveReport, Failure> {
        let cannot = |why: io::Error| Failure::new(format!("cannot start: {}", plain(&why)));
        let live = LiveReport(Arc::new(Mutex::new(report)));
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
                    // That the output has no reader any more is found out at the end.
                    if write(text.trim_end()).is_err() {
                        return;
                    }
                }
            });
        };
        thread::Builder::new().name("report".to_owned()).spawn(tell).map_err(cannot)?;
        Ok(live)
    }

    fn lock(&self) -> MutexGuard<'_, Report> {
        self.0.lock().unpoisoned()
    }
}

impl View for LiveReport {
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
