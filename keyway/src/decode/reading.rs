//! From files to a sink, until their end or somebody's Ctrl-C.

use super::failure;
use crate::limits::DECODE_END_WAIT;
use keyway_decode::view::{Printer, View};
use keyway_decode::{Capture, Counts, Decoder, Error, Sink};
use keyway_host::failure::Failure;
use keyway_host::output::{grouped, note};
use keyway_host::signals::{STATUS_AT_ONCE, Signals};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
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
    thread::spawn(move || tell.send(decode(&files, decoder, printer, end, &seen)));
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

fn decode<V: View>(
    files: &[PathBuf],
    mut decoder: Decoder,
    mut printer: Printer<V, impl Write>,
    end: impl FnOnce(V, bool) -> Result<(), Failure>,
    stopped: &AtomicBool,
) -> Result<bool, Failure> {
    let mut done = Ok(true);
    for file in files {
        match one(file, &mut decoder, &mut printer, stopped) {
            Ok(whole) => done = done.map(|all| all && whole),
            Err(None) => return Ok(true),
            Err(why) => {
                done = why.map_or(Ok(true), Err);
                break;
            }
        }
        if stopped.load(Ordering::Relaxed) {
            break;
        }
    }
    // What is known is told, whatever ended it.
    let ended = decoder.finish(&mut printer).and_then(|counts| printer.end().map(|()| counts));
    match ended {
        // One that could not be read at all has said so.
        Ok(counts) if counts.packets > 0 || done.is_ok() => {
            summary(counts, printer.seen, printer.told);
        }
        Ok(_) => {}
        Err(why) => return failure(why).map_or(Ok(true), Err),
    }
    end(printer.into_view(), stopped.load(Ordering::Relaxed))?;
    done
}

/// Decodes one file: whether all of it is there. `None` if nobody reads what is told.
pub fn one(
    file: &Path,
    decoder: &mut Decoder,
    sink: &mut impl Sink,
    stopped: &AtomicBool,
) -> Result<bool, Option<Failure>> {
    let of_file = |why: Error| match why {
        Error::Write(_) => failure(why),
        why => Some(Failure::new(format!("{}: {why}", file.display()))),
    };
    let input: Box<dyn Read + Send> = if file.as_os_str() == "-" {
        Box::new(io::stdin())
    } else {
        let opened = File::open(file).map_err(|why| Failure::system("open", file, &why));
        Box::new(opened.map_err(Some)?)
    };
    let mut capture = Capture::open(input).map_err(of_file)?;
    let go_on = || !stopped.load(Ordering::Relaxed);
    decoder.run(&mut capture, sink, &go_on).map_err(of_file)?;
    if capture.is_cut_short() {
        note(format_args!("{} ends within a packet", file.display()));
    }
    Ok(!capture.is_cut_short())
}

/// What there was, in a line.
fn summary(counts: Counts, seen: u64, told: u64) {
    let mut text = format!(
        "operations: {}; connections: {}; packets: {}",
        grouped(seen),
        grouped(counts.connections),
        grouped(counts.packets)
    );
    let more = [
        (seen - told, "operations not meant by the filter"),
        (counts.missing_bytes, "bytes are missing"),
        (counts.repeated_bytes, "bytes came again"),
        (counts.unreadable, "packets cannot be read"),
        (counts.given_up, "connections were given up, there were too many"),
    ];
    for (number, what) in more.into_iter().filter(|(number, _)| *number > 0) {
        text.push_str(&format!("; {} {what}", grouped(number)));
    }
    note(text);
}
