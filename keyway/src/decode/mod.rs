//! `keyway decode`: what LDAP clients and servers say to each other.

mod arguments;
mod printing;
mod proxy;
mod reading;
mod replay;
mod tui;

use arguments::{DecodeCommand, Report, Words};
use keyway_decode::browse::SharedItems;
use keyway_decode::io::reading::one;
use keyway_decode::view::Printer;
use keyway_decode::{Decoder, Options};
use keyway_host::failure::Failure;
use keyway_host::output;
use keyway_host::signals::{self, Second};
use printing::{into_folder, keys, options, printer, recorder, report};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

pub use arguments::Decode;

/// Does what is asked; whether all of it could be decoded.
///
/// # Errors
/// If a capture cannot be read, or what was decoded not be written.
pub fn run(decode: &Decode) -> Result<bool, Failure> {
    match &decode.command {
        Some(DecodeCommand::Proxy(arguments)) => return proxy::run(arguments),
        Some(DecodeCommand::Report(arguments)) => return sum_up(arguments),
        Some(DecodeCommand::Replay(arguments)) => return replay::run(arguments),
        None => {}
    }
    let form = &decode.form;
    if form.tui {
        return watch(decode);
    }
    let inputs = inputs(decode);
    let options = options(form, decode.show_secrets);
    let decoder = Decoder::new(&decode.ports, options).with_keys(keys(decode.keylog.as_deref())?);
    if form.words == Some(Words::Scenario) {
        let recording = into_folder(decode.into.as_deref())?;
        let printer = recorder(&recording, decode.filter.clone());
        return reading::run(&decode.files, decoder, printer, move |_, _| {
            output::text(recording.write(&inputs)?)
        });
    }
    let printer = printer(form, decode.filter.clone(), &inputs)?;
    reading::run(&decode.files, decoder, printer, |_, _| Ok(()))
}

/// The files that are read, and not to be written over.
fn inputs(decode: &Decode) -> Vec<PathBuf> {
    decode.files.iter().chain(&decode.keylog).cloned().collect()
}

/// Shows captures on the terminal while they are read, and afterwards.
fn watch(decode: &Decode) -> Result<bool, Failure> {
    tui::check()?;
    let decoder = Decoder::new(&decode.ports, options(&decode.form, decode.show_secrets));
    let mut decoder = decoder.with_keys(keys(decode.keylog.as_deref())?);
    let (items, stopped) = (SharedItems::default(), Arc::new(AtomicBool::new(false)));
    let told = stopped.clone();
    signals::at_end(Second::Asks, move || told.store(true, Ordering::Relaxed))?;
    let mut printer = Printer::new(items.clone(), decode.filter.clone(), io::sink());
    let (files, seen) = (decode.files.clone(), stopped.clone());
    let source = files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(" ");
    thread::spawn(move || {
        for file in &files {
            if let Err(Some(why)) =
                one(file, &mut decoder, &mut printer, &seen, &|text| output::note(text))
            {
                output::note(why);
            }
        }
        // These take everything.
        let _ = decoder.finish(&mut printer).and_then(|_| printer.end());
    });
    let live = decode.files.iter().any(|file| file.as_os_str() == "-");
    tui::run(source, live, &inputs(decode), &items, &stopped)?;
    Ok(true)
}

fn sum_up(arguments: &Report) -> Result<bool, Failure> {
    let report = report(arguments.rows, arguments.json, arguments.every)?;
    let printer = Printer::new(report, arguments.filter.clone(), io::stdout());
    let decoder = Decoder::new(&arguments.ports, Options::default());
    let decoder = decoder.with_keys(keys(arguments.keylog.as_deref())?);
    reading::run(&arguments.files, decoder, printer, |_, _| Ok(()))
}
