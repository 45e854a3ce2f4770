//! `keyway decode`: what LDAP clients and servers say to each other.

mod arguments;
mod live;
mod proxy;
mod reading;
mod replay;
mod scenario;
mod tui;

use arguments::{DecodeCommand, Form, Words};
use keyway_decode::say::{Changes, Commands, Packets, Python};
use keyway_decode::view::{Full, Json, Line, Printer, View};
use keyway_decode::{Decoder, Error, Keys, Options, Query, Report, Secrets};
use keyway_host::failure::{Failure, plain};
use keyway_host::output;
use keyway_host::signals::{self, Second};
use live::Live;
use scenario::Recording;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use zeroize::Zeroizing;

pub use arguments::Decode;

/// Does what is asked; whether all of it could be decoded.
///
/// # Errors
/// If a capture cannot be read, or what was decoded not be written.
pub fn run(decode: &Decode) -> Result<bool, Failure> {
    match &decode.command {
        Some(DecodeCommand::Proxy(arguments)) => return proxy::run(arguments),
        Some(DecodeCommand::Report(arguments)) => return report(arguments),
        Some(DecodeCommand::Replay(arguments)) => return replay::run(arguments),
        None => {}
    }
    let form = &decode.form;
    if form.tui {
        return watch(decode);
    }
    let options = options(form, decode.show_secrets);
    let decoder = Decoder::new(&decode.ports, options).with_keys(keys(decode.keylog.as_deref())?);
    if form.words == Some(Words::Scenario) {
        let recording = Recording::new(decode.into.as_deref())?;
        let (printer, captures) = (recording.printer(decode.filter.clone()), decode.files.clone());
        return reading::run(&decode.files, decoder, printer, move |_, _| {
            recording.write(&captures)
        });
    }
    let printer = printer(form, decode.filter.clone(), &decode.files)?;
    reading::run(&decode.files, decoder, printer, |_, _| Ok(()))
}

/// Shows captures on the terminal while they are read, and afterwards.
fn watch(decode: &Decode) -> Result<bool, Failure> {
    tui::check()?;
    let decoder = Decoder::new(&decode.ports, options(&decode.form, decode.show_secrets));
    let mut decoder = decoder.with_keys(keys(decode.keylog.as_deref())?);
    let (book, stopped) = (tui::Shared::default(), Arc::new(AtomicBool::new(false)));
    let told = stopped.clone();
    signals::at_end(Second::Asks, move || told.store(true, Ordering::Relaxed))?;
    let mut printer = Printer::new(book.clone(), decode.filter.clone(), io::sink());
    let (files, seen) = (decode.files.clone(), stopped.clone());
    let source = files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(" ");
    thread::spawn(move || {
        for file in &files {
            if let Err(Some(why)) = reading::one(file, &mut decoder, &mut printer, &seen) {
                output::note(why);
            }
        }
        // A book takes everything.
        let _ = decoder.finish(&mut printer).and_then(|_| printer.end());
    });
    let live = decode.files.iter().any(|file| file.as_os_str() == "-");
    tui::run(source, live, &decode.files, &book, &stopped)?;
    Ok(true)
}

fn report(arguments: &arguments::Report) -> Result<bool, Failure> {
    let report = Live::start(Report::new(arguments.rows, arguments.json), arguments.every)?;
    let printer = Printer::new(report, arguments.filter.clone(), io::stdout());
    let decoder = Decoder::new(&arguments.ports, Options::default());
    let decoder = decoder.with_keys(keys(arguments.keylog.as_deref())?);
    reading::run(&arguments.files, decoder, printer, |_, _| Ok(()))
}

/// The secrets of a key log, if there is one.
fn keys(file: Option<&Path>) -> Result<Arc<Keys>, Failure> {
    let keys = Keys::new(&keyway_drivers::engine());
    if let Some(file) = file {
        let log = fs::read(file).map_err(|why| Failure::system("read", file, &why))?;
        if keys.add(&Zeroizing::new(log)) == 0 {
            return Err(Failure::new(format!(
                "there is no secret of TLS 1.2 or 1.3 in {}; it should be what SSLKEYLOGFILE names",
                file.display()
            )));
        }
    }
    Ok(Arc::new(keys))
}

fn options(form: &Form, show_secrets: bool) -> Options {
    let secrets = if show_secrets { Secrets::Shown } else { Secrets::Hidden };
    Options { secrets, keep_answers: form.full || form.json || form.tui || form.write.is_some() }
}

/// Operations in a form that was asked for, on their way to where they go.
type Printed = Printer<Box<dyn View + Send>, Box<dyn Write + Send>>;

/// What writes in this form to where it goes.
fn printer(form: &Form, filter: Option<Query>, captures: &[PathBuf]) -> Result<Printed, Failure> {
    let view: Box<dyn View + Send> = match form {
        Form { full: true, .. } => Box::new(Full),
        Form { json: true, .. } => Box::new(Json),
        Form { write: Some(_), .. } => Box::new(Packets::default()),
        Form { words: Some(Words::Ldapsearch), .. } => Box::new(Commands),
        Form { words: Some(Words::Ldif), .. } => Box::new(Changes::default()),
        Form { words: Some(Words::PythonLdap), .. } => Box::new(Python::default()),
        _ => Box::new(Line),
    };
    let output: Box<dyn Write + Send> = match &form.write {
        Some(file) if file.as_os_str() != "-" => Box::new(create(file, captures)?),
        _ => Box::new(io::stdout()),
    };
    Ok(Printer::new(view, filter, output))
}

/// A new file that only its owner reads: what people say to a directory is theirs. One that is among
/// these captures is left as it is: to open it would empty what is about to be read.
fn create(file: &Path, captures: &[PathBuf]) -> Result<fs::File, Failure> {
    let same = |one: &fs::Metadata, other: &fs::Metadata| {
        (one.dev(), one.ino()) == (other.dev(), other.ino())
    };
    if let Ok(there) = fs::metadata(file) {
        let read = |capture: &PathBuf| fs::metadata(capture).is_ok_and(|read| same(&read, &there));
        if let Some(capture) = captures.iter().find(|capture| there.is_file() && read(capture)) {
            return Err(Failure::usage(format!(
                "{} is the capture {} that is read: write to another file",
                file.display(),
                capture.display()
            )));
        }
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(file).map_err(|why| Failure::system("write", file, &why))
}

/// An error of the decoder's; nothing where nobody wants to read any more.
fn failure(why: Error) -> Option<Failure> {
    match why {
        Error::Write(why) if why.kind() == ErrorKind::BrokenPipe => None,
        Error::Write(why) => Some(Failure::new(format!("cannot write: {}", plain(&why)))),
        Error::Read(why) => Some(Failure::new(format!("cannot read it: {}", plain(&why)))),
        why => Some(Failure::new(why)),
    }
}
