//! Captures decoded until their end or Ctrl-C.

use crate::limits::DECODE_END_WAIT;
use keyway_decode::Decoder;
use keyway_decode::io::reading::decode;
use keyway_decode::view::{Printer, View};
use keyway_host::failure::Failure;
use keyway_host::output::note;
use keyway_host::signals::{STATUS_AT_ONCE, Signals};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use tokio::sync::oneshot;

/// Decodes the files, one after another. A first signal ends that where the next packet would be read,
/// and what is known by then is told; where none comes, or at a second one, the process ends. `end` has
/// the view in the end, and hears whether a signal ended it.
pub fn run<V: View + Send + 'static>(
    files: &[PathBuf],
    decoder: Decoder,
    printer: Printer<V, impl Write + Send + 'static>,
    end: impl FnOnce(V, bool) -> Result<(), Failure> + Send + 'static,
) -> Result<bool, Failure> {
    let stopped = Arc::new(AtomicBool::new(false));
    let files = files.to_vec();
    let (tell, mut told) = oneshot::channel();
    let seen = stopped.clone();
    thread::spawn(move || {
        tell.send(decode(&files, decoder, printer, end, &seen, &|text| note(text)))
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|why| Failure::new(format!("cannot start: {why}")))?;
    runtime.block_on(async {
        let mut signals = Signals::catch()?;
        tokio::select! {
            done = &mut told => return done.unwrap_or_else(|_| Err(broken())),
            () = signals.end() => stopped.store(true, Ordering::Relaxed),
        }
        tokio::select! {
            done = &mut told => done.unwrap_or_else(|_| Err(broken())),
            () = signals.end() => std::process::exit(STATUS_AT_ONCE),
            // It waits for a packet, and everything that was told has been written.
            () = tokio::time::sleep(DECODE_END_WAIT) => std::process::exit(STATUS_AT_ONCE),
        }
    })
}

fn broken() -> Failure {
    Failure::new("the decoder came upon something it should have refused; please report this")
}
