//! Putting entries into a directory: the sample, or somebody's LDIF.

use crate::data::{self, Folder};
use crate::failure::{Failure, describe, plain};
use crate::forecast::Forecast;
use crate::instance::Instance;
use crate::output::{self, grouped};
use crate::progress::Progress;
use crate::sample::Sample;
use crate::source::Source;
use keyway_server::password::Passwords;
use keyway_server::{
    Disagreement, ImportError, ImportOptions, ImportReport, MemberOfReport, Note, Noted,
    ScratchMaker, Unfinished,
};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

/// What an unfinished sample is called in the store.
const SAMPLE: &str = "sample:";
/// What unfinished entries of a template are called, before the arguments that they were made with.
pub const MADE: &str = "made:";

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
    instance.mark_populated()
}

/// How many people an unfinished sample was to have; `None` if it was no sample.
pub fn people_of(unfinished: &Unfinished) -> Option<u32> {
    unfinished.source.strip_prefix(SAMPLE)?.parse().ok()
}

/// How many values an import left out.
pub fn left_out(report: &ImportReport) -> u64 {
    let left_out = report.notes.0.iter().filter(|(note, _)| matches!(note, Note::LeftOut(_)));
    left_out.map(|(_, noted)| noted.count).sum()
}

/// What an import did otherwise than its input says, for programs.
pub fn notes(report: &ImportReport) -> Value {
    let note = |(note, noted): (&Note, &Noted)| json!({ "note": note.to_string(), "count": noted.count, "first": noted.first });
    report.notes.0.iter().map(note).collect()
}

/// The same for people, a line each.
///
/// # Errors
/// If it cannot be written.
pub fn say_notes(report: &ImportReport) -> Result<(), Failure> {
    for (note, Noted { count, first }) in &report.notes.0 {
        let more = if *count > first.len() as u64 { ", ..." } else { "" };
        let (count, first) = (grouped(*count), first.join("; "));
        output::text(format_args!("  {count} {note}: {first}{more}"))?;
    }
    Ok(())
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
pub struct Populated {
    /// The directory's account.
    pub report: ImportReport,
    /// Bytes that were read.
    pub bytes: u64,
    /// How long it took.
    pub seconds: f64,
    /// How long it was said beforehand that hashing clear passwords would take, if there were any
    /// and somebody could know.
    pub forecast_s: Option<f64>,
}

/// Puts LDIF in. Records that are refused are said on standard error, if it goes on after them.
///
/// # Errors
/// The first record that is refused, unless it goes on; the system's errors.
pub fn ldif(
    instance: &Instance,
    folder: &Folder,
    mut source: Source,
    manner: Manner,
) -> Result<Populated, Failure> {
    let scratch = folder.path().to_owned();
    let options = ImportOptions {
        source: source.path.clone(),
        keep_going: manner.go_on,
        skip_records: manner.done,
        scratch: Some(ScratchMaker(Arc::new(move || Ok(Box::new(data::scratch(&scratch)?))))),
    };
    let passwords = instance.directory.passwords();
    let forecast = Forecast::of(&source, manner.done, passwords)?;
    if let Some(forecast) = forecast.filter(Forecast::is_worth_saying) {
        output::note(format_args!("{}: {forecast}", source.shown));
    }
    let mut rate = StreamRate::of(&source);
    let bar = Progress::bytes("importing", source.bytes);
    let imported = instance.directory.import(&mut source, &options, &mut |so_far| {
        bar.at(so_far.bytes, so_far.records);
        if let Some(said) = rate.said(so_far.passwords_hashed, passwords) {
            bar.aside(|| output::note(said));
        }
    });
    let seconds = bar.seconds();
    drop(bar);
    let report = imported.map_err(|why| refusal(&source, why, manner.advice))?;
    instance.mark_populated()?;
    for error in &report.first_errors {
        output::note(format_args!("{}: {error}", source.shown));
    }
    let unsaid = report.errors.saturating_sub(report.first_errors.len() as u64);
    if unsaid > 0 {
        output::note(format_args!("{}: {} more were refused", source.shown, grouped(unsaid)));
    }
    say_unverified(&source.shown, &report);
    say_groups(&source.shown, &report.member_of);
    let forecast_s = forecast.map(|forecast| forecast.duration().as_secs_f64());
    Ok(Populated { report, bytes: source.read_bytes, seconds, forecast_s })
}

/// Says once how fast clear passwords of a stream are hashed, of which nobody knows how many there
/// are: when they have taken long enough to be noticed.
struct StreamRate {
    shown: String,
    unsaid: bool,
    measured: Option<Forecast>,
}

impl StreamRate {
    fn of(source: &Source) -> StreamRate {
        StreamRate { shown: source.shown.clone(), unsaid: source.bytes.is_none(), measured: None }
    }

    /// What is to be said now that so many have been hashed.
    fn said(&mut self, hashed: u64, passwords: &Passwords) -> Option<String> {
        if !self.unsaid || hashed == 0 {
            return None;
        }
        // If it cannot be measured, the import itself will say why.
        self.measured = self.measured.or_else(|| Forecast::measure(passwords).ok());
        let so_far = Forecast { passwords: hashed, ..self.measured? };
        self.unsaid = !so_far.is_worth_saying();
        (!self.unsaid).then(|| format!("{}: {}", self.shown, so_far.of_a_stream()))
    }
}

/// Says where entries claim to be in groups that have them not.
fn say_groups(shown: &str, report: &MemberOfReport) {
    for Disagreement { dn, group } in &report.first {
        output::note(format_args!(
            "{shown}: memberOf of \"{dn}\" names \"{group}\", which does not have it as a member; \
             the group is believed"
        ));
    }
    let unsaid = report.disagreeing.saturating_sub(report.first.len() as u64);
    if unsaid > 0 {
        output::note(format_args!("{shown}: {} more such values", grouped(unsaid)));
    }
    if report.unchecked > 0 {
        output::note(format_args!(
            "{shown}: {} values of memberOf were too many to compare with the groups",
            grouped(report.unchecked)
        ));
    }
}

/// Says which passwords were kept though no password will match them.
fn say_unverified(shown: &str, report: &ImportReport) {
    let schemes = &report.passwords_unverified;
    if schemes.is_empty() {
        return;
    }
    let each: Vec<_> =
        schemes.iter().map(|(scheme, count)| format!("{} {scheme}", grouped(*count))).collect();
    output::note(format_args!(
        "{shown}: {} passwords are kept as they are, but cannot be verified here and match nothing: \
         {}; accept in keyway.toml, under [password], names what is verified",
        grouped(schemes.values().sum()),
        each.join(", ")
    ));
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
    let made = unfinished.source.strip_prefix(MADE);
    if let Some(arguments) = made {
        return format!(
            "an import of entries of a template was not finished ({} of them are in); go on with: \
             keyway data make {arguments} --resume --into {data}",
            grouped(unfinished.records)
        );
    }
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
