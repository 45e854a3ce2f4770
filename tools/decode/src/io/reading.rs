//! From files to a sink, until their end or until it is stopped.

use super::Say;
use super::file::failure;
use crate::view::{Printer, View};
use crate::{Capture, Counts, Decoder, Error, Sink};
use keyway_host::failure::Failure;
use keyway_host::output::grouped;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Decodes the files, one after another; says what there was, and whether all of it could be decoded. `stopped`
/// ends that where the next packet would be read, and what is known by then is told. `end` has the view in the
/// end, and hears whether it was stopped.
///
/// # Errors
/// If a file cannot be read or is no capture, or what is told cannot be written; those of `end`.
pub fn decode<V: View>(
    files: &[PathBuf],
    mut decoder: Decoder,
    mut printer: Printer<V, impl Write>,
    end: impl FnOnce(V, bool) -> Result<(), Failure>,
    stopped: &AtomicBool,
    say: &Say,
) -> Result<bool, Failure> {
    let mut done = Ok(true);
    for file in files {
        match one(file, &mut decoder, &mut printer, stopped, say) {
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
    // The decoded part is told, whatever ended it.
    let ended = decoder.finish(&mut printer).and_then(|counts| printer.end().map(|()| counts));
    match ended {
        // One that could not be read at all has said so.
        Ok(counts) if counts.packets > 0 || done.is_ok() => {
            say(&summary(counts, printer.seen, printer.told));
        }
        Ok(_) => {}
        Err(why) => return failure(why).map_or(Ok(true), Err),
    }
    end(printer.into_view(), stopped.load(Ordering::Relaxed))?;
    done
}

/// Decodes one file, or standard input where it is `-`; whether all of it is there.
///
/// # Errors
/// If it cannot be read or is no capture, or what is told cannot be written; `None` if its reader has left.
pub fn one(
    file: &Path,
    decoder: &mut Decoder,
    sink: &mut impl Sink,
    stopped: &AtomicBool,
    say: &Say,
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
        say(&format_args!("{} ends within a packet", file.display()));
    }
    Ok(!capture.is_cut_short())
}

/// The counts of the source, in a line.
fn summary(counts: Counts, seen: u64, told: u64) -> String {
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
    text
}
