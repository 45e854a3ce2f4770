//! Putting entries into a directory: the sample, or somebody's LDIF.

use crate::failure::{Failure, describe, plain};
use crate::instance::Instance;
use crate::output::{self, grouped};
use crate::progress::Progress;
use crate::sample::Sample;
use crate::source::Source;
use keyway_server::{ImportError, ImportOptions, ImportReport, Unfinished};
use std::path::Path;

/// What an unfinished sample is called in the store.
const SAMPLE: &str = "sample:";

/// Puts a sample in, or what an earlier start has left to do of it.
///
/// # Errors
/// If the store cannot be written.
pub fn sample(instance: &Instance, sample: &Sample, done: u64) -> Result<(), Failure> {
    let options = ImportOptions {
        source: format!("{SAMPLE}{}", sample.people()),
        skip_records: done,
        ..ImportOptions::default()
    };
    let bar = Progress::entries("making the sample", sample.entry_count());
    let imported = instance.directory.import(&mut sample.ldif(), &options, &mut |so_far| {
        bar.at(done + so_far.records, so_far.records);
    });
    imported.map_err(|why| Failure::new(format!("cannot make the sample: {why}")))?;
    instance.mark_filled()
}

/// How many people an unfinished sample was to have; `None` if it was no sample.
pub fn people_of(unfinished: &Unfinished) -> Option<u32> {
    unfinished.source.strip_prefix(SAMPLE)?.parse().ok()
}

/// How LDIF is put in.
#[derive(Clone, Copy)]
pub struct Manner {
    /// Go on after a record that is refused.
    pub go_on: bool,
    /// Records that are in already.
    pub done: u64,
    /// What to do about a record that is refused.
    pub advice: &'static str,
}

/// What came of it.
pub struct Filled {
    /// The directory's account.
    pub report: ImportReport,
    /// Bytes that were read.
    pub bytes: u64,
    /// How long it took.
    pub seconds: f64,
}

/// Puts LDIF in. Records that are refused are said on standard error, if it goes on after them.
///
/// # Errors
/// The first record that is refused, unless it goes on; the system's errors.
pub fn ldif(instance: &Instance, mut source: Source, manner: Manner) -> Result<Filled, Failure> {
    let options = ImportOptions {
        source: source.path.clone(),
        keep_going: manner.go_on,
        skip_records: manner.done,
    };
    let bar = Progress::bytes("importing", source.bytes);
    let imported = instance.directory.import(&mut source, &options, &mut |so_far| {
        bar.at(so_far.bytes, so_far.records);
    });
    let seconds = bar.seconds();
    drop(bar);
    let report = imported.map_err(|why| refusal(&source, why, manner.advice))?;
    instance.mark_filled()?;
    for error in &report.first_errors {
        output::note(format_args!("{}: {error}", source.shown));
    }
    let unsaid = report.errors.saturating_sub(report.first_errors.len() as u64);
    if unsaid > 0 {
        output::note(format_args!("{}: {} more were refused", source.shown, grouped(unsaid)));
    }
    Ok(Filled { report, bytes: source.read_bytes, seconds })
}

fn refusal(source: &Source, why: ImportError, advice: &str) -> Failure {
    let shown = &source.shown;
    Failure::new(match why {
        ImportError::Input(why) => format!("{shown}: {}", plain(&why)),
        ImportError::Record { error, records } => format!(
            "{shown}: {error}; records before it that are in: {}; {advice}",
            grouped(records)
        ),
        ImportError::Directory(why) => format!("importing {shown}: {}", describe(&why)),
    })
}

/// What to say of an import that was not finished.
pub fn unfinished_text(unfinished: &Unfinished, folder: &Path) -> String {
    let data = output::shell(&folder.to_string_lossy());
    let (what, command) = match people_of(unfinished) {
        Some(_) => ("the sample".to_owned(), "up".to_owned()),
        None => {
            let file = output::shell(&unfinished.source);
            let what = if file == "-" { "standard input" } else { &file };
            (format!("an import of {what}"), format!("directory import --resume {file}"))
        }
    };
    format!(
        "{what} was not finished ({} of its records are done); go on with: keyway {command} --data \
         {data}",
        grouped(unfinished.records)
    )
}
