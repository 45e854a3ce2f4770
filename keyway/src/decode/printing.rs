//! How operations are told, and where: what flags of the commands have in common.

use super::arguments::{Form, Words};
use keyway_decode::io::file::create;
use keyway_decode::io::live::LiveReport;
use keyway_decode::io::recording::Recording;
use keyway_decode::say::{Changes, Commands, Packets, Python};
use keyway_decode::view::{Full, Json, Line, Printer, View};
use keyway_decode::{Keys, Options, Query, Report, Secrets};
use keyway_host::failure::Failure;
use keyway_host::output;
use keyway_host::same_file::is_no_input;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use zeroize::Zeroizing;

/// The secrets of a key log, if there is one.
///
/// # Errors
/// If it cannot be read, or has none.
pub fn keys(file: Option<&Path>) -> Result<Arc<Keys>, Failure> {
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

/// The options of decoding for this form.
pub fn options(form: &Form, show_secrets: bool) -> Options {
    let secrets = if show_secrets { Secrets::Shown } else { Secrets::Hidden };
    Options { secrets, keep_answers: form.full || form.json || form.tui || form.write.is_some() }
}

/// Operations in a form that was asked for, on their way to where they go.
pub type Printed = Printer<Box<dyn View + Send>, Box<dyn Write + Send>>;

/// The printer that writes in this form to where it goes. `inputs` are the files that are read.
///
/// # Errors
/// If that is a file, and cannot be written or is one of the inputs.
pub fn printer(form: &Form, filter: Option<Query>, inputs: &[PathBuf]) -> Result<Printed, Failure> {
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
        Some(file) if file.as_os_str() != "-" => {
            is_no_input(file, inputs)?;
            Box::new(create(file, inputs)?)
        }
        _ => Box::new(io::stdout()),
    };
    Ok(Printer::new(view, filter, output))
}

/// A report on standard output with so many rows, which is told meanwhile too.
///
/// # Errors
/// If the system gives no thread, or no signals.
pub fn report(rows: usize, json: bool, every: Option<Duration>) -> Result<LiveReport, Failure> {
    LiveReport::start(Report::new(rows, json), every, |text| output::write(text))
}

/// A scenario whose files go into the folder of --into.
///
/// # Errors
/// If none was named, or it cannot be made.
pub fn into_folder(into: Option<&Path>) -> Result<Recording, Failure> {
    let none = || Failure::usage("--as scenario makes files: name a folder, --into DIR");
    Recording::new(into.ok_or_else(none)?)
}

/// A printer that records the operations that a query means.
pub fn recorder(recording: &Recording, filter: Option<Query>) -> Printed {
    let view: Box<dyn View + Send> = Box::new(recording.clone());
    Printer::new(view, filter, Box::new(io::sink()))
}
