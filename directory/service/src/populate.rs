//! Putting entries into a directory: the sample, or a user's LDIF.

use crate::forecast::{self, Forecast};
use crate::instance::Instance;
use crate::instance::describe;
use crate::ldif_source::Source;
use crate::sample::Sample;
use keyway_folder::data::{self, Folder};
use keyway_host::decompress::Decompress;
use keyway_host::failure::{Failure, plain};
use keyway_host::output::{self, grouped};
use keyway_host::progress::Progress as Bar;
use keyway_password::Passwords;
use keyway_schema::Changes;
use keyway_server::{
    Directory, Disagreement, ImportError, ImportOptions, ImportReport, MemberOfReport, Note, Noted,
    Progress, ScratchMaker, TakenDefinitions, Unfinished, Verdict,
};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

/// Advice where hashing takes too long.
const ALTERNATIVE: &str = "; for test data, --fast-passwords stores {SSHA512} instead, in no time";

/// Advice on a compressed file that is cut off or changed.
const UNPACKED: &str = "; nothing of it was imported: get a whole copy of it, or import what can be unpacked with \
                        keyway directory import --unverified";

/// Definitions that are named one by one where some are added or left out.
const DEFINITIONS_SAID_MAX: usize = 10;

/// The name of an unfinished sample in the store.
const SAMPLE: &str = "sample:";
/// The name of unfinished entries of a template, before the arguments that they were made with.
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
    let bar = Bar::entries("making the sample", sample.entry_count());
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

/// Deviations of an import from its input, for programs.
pub fn notes(report: &ImportReport) -> Value {
    let note = |(note, noted): (&Note, &Noted)| json!({ "note": note.to_string(), "count": noted.count, "first": noted.first });
    report.notes.0.iter().map(note).collect()
}

/// That as text for people, a line each, and what definitions came with it.
///
/// # Errors
/// If it cannot be written.
pub fn say_notes(populated: &Populated) -> Result<(), Failure> {
    let Populated { report, definitions: TakenDefinitions { added, .. }, .. } = populated;
    if !added.is_empty() {
        let first = added.iter().take(DEFINITIONS_SAID_MAX).cloned().collect::<Vec<_>>().join("; ");
        let more = if added.len() > DEFINITIONS_SAID_MAX { "; ..." } else { "" };
        let count = grouped(added.len() as u64);
        output::text(format_args!(
            "  {count} definitions that came with it, added: {first}{more}"
        ))?;
    }
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
    /// The handling of a refused record.
    pub advice: &'static str,
    /// Take what can be read of an export that was cut off or changed.
    pub unverified: bool,
    /// Whether passwords in clear are to be stored with a hash that is fast, where that can be asked for.
    pub fast_passwords: Option<bool>,
}

/// The result.
pub struct Populated {
    /// The directory's account.
    pub report: ImportReport,
    /// Bytes that were read.
    pub bytes: u64,
    /// How long it took.
    pub seconds: f64,
    /// The printed forecast for hashing clear passwords, if there were any and it was known.
    pub forecast_s: Option<f64>,
    /// Whether it is whole.
    pub verdict: Verdict,
    /// How the definitions that came with it were taken.
    pub definitions: TakenDefinitions,
}

/// The findings of a look through LDIF before any of it is put in.
struct Ahead {
    /// Clear passwords behind the records that are done.
    clear_passwords: u64,
    /// The definitions that come with it.
    definitions: String,
}

impl Ahead {
    /// Looks; `None` if it can be read only once.
    fn look(
        directory: &Directory,
        source: &Source,
        manner: Manner,
    ) -> Result<Option<Ahead>, Failure> {
        let Some(file) = source.again() else { return Ok(None) };
        let look = || {
            let plain = Readable::new(Decompress::open(file)?, manner.unverified);
            let mut verifying = directory.verifying(plain, !manner.unverified);
            let clear_passwords = forecast::clear_passwords(&mut verifying, manner.done)?;
            Ok(Ahead { clear_passwords, definitions: verifying.definitions()?.to_owned() })
        };
        let bad = |why: io::Error| {
            let advice = match why.kind() {
                ErrorKind::InvalidData => {
                    "; nothing of it was imported: get a whole copy of it, or, if it was changed on purpose, \
                     import it with keyway directory import --unverified"
                }
                _ => "",
            };
            let advice = match why.kind() {
                ErrorKind::UnexpectedEof | ErrorKind::InvalidInput => UNPACKED,
                _ => advice,
            };
            Failure::new(format!("{}: {}{advice}", source.shown, plain(&why)))
        };
        look().map(Some).map_err(bad)
    }
}

/// Takes the definitions that came with entries.
fn define(
    directory: &Directory,
    shown: &str,
    definitions: &str,
    unverified: bool,
) -> Result<TakenDefinitions, Failure> {
    let readable = |line: &&str| Changes::from_text(line).is_ok();
    let taken = match unverified {
        false => directory.take_definitions(definitions),
        true => {
            let lines = definitions.lines().filter(readable);
            directory.take_definitions(&lines.collect::<Vec<_>>().join("\n"))
        }
    };
    let bad = |why: &keyway_server::Failure| {
        format!("{shown}: the definitions in its head cannot be taken: {}", describe(why))
    };
    match taken {
        Ok(taken) => Ok(taken),
        Err(why) if unverified => {
            output::note(format_args!("warning: {}", bad(&why)));
            Ok(TakenDefinitions::default())
        }
        Err(why) => Err(Failure::new(bad(&why))),
    }
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
    let directory = &*instance.directory;
    let is_fast = manner.fast_passwords == Some(true);
    let alternative = if manner.fast_passwords.is_some() { ALTERNATIVE } else { "" };
    let scratch = folder.path().to_owned();
    let options = ImportOptions {
        source: source.path.clone(),
        keep_going: manner.go_on,
        skip_records: manner.done,
        fast_passwords: is_fast,
        scratch: Some(ScratchMaker(Arc::new(move || Ok(Box::new(data::scratch(&scratch)?))))),
        whole_trees: !source.is_foreign(),
    };
    let passwords = directory.passwords();
    let ahead = Ahead::look(directory, &source, manner)?;
    let forecast = match &ahead {
        _ if is_fast => None,
        Some(ahead) => Forecast::of(ahead.clear_passwords, passwords)?,
        None => None,
    };
    if let Some(forecast) = forecast.filter(Forecast::is_worth_saying) {
        output::note(format_args!("{}: {forecast}{alternative}", source.shown));
    }
    let mut rate = StreamRate {
        shown: source.shown.clone(),
        unsaid: ahead.is_none() && !is_fast,
        alternative,
        entries: source.entries.map(|entries| entries.saturating_sub(manner.done)),
        measured: None,
    };
    let (shown, is_foreign) = (source.shown.clone(), source.is_foreign());
    let (all_bytes, read_bytes) = (source.bytes, source.read_bytes());
    let refused = |why: ImportError| refusal(&shown, ahead.is_some(), why, manner.advice);
    let unreadable = |why: io::Error| refused(ImportError::Input(why));
    let plain = Decompress::open(&mut source).map_err(unreadable)?;
    let plain = Readable::new(plain, manner.unverified);
    let damage = plain.damage.clone();
    let mut input = directory.verifying(plain, !manner.unverified);
    let definitions = match &ahead {
        Some(ahead) => ahead.definitions.as_str(),
        None => input.definitions().map_err(unreadable)?,
    };
    let definitions = define(directory, &shown, definitions, manner.unverified)?;
    let bar = Bar::bytes("importing", all_bytes);
    let imported = directory.import(&mut input, &options, &mut |so_far| {
        bar.at(read_bytes.get(), so_far.records);
        if let Some(said) = rate.said(so_far, passwords) {
            bar.aside(|| output::note(said));
        }
    });
    let seconds = bar.seconds();
    drop(bar);
    if let Some(why) = &*damage.borrow() {
        output::note(format_args!("warning: {shown}: {why}; what could be unpacked of it is in"));
    }
    let report = match imported {
        Ok(report) => report,
        Err(why @ ImportError::Directory(_)) => {
            let failure = refused(why);
            // Some commits may have gone well before.
            return Err(match instance.unfinished()?.filter(|unfinished| unfinished.records > 0) {
                Some(unfinished) => {
                    let text = unfinished_text(&unfinished, folder.path());
                    Failure::new(format!("{failure}; {text}"))
                }
                None => failure,
            });
        }
        Err(why) => return Err(refused(why)),
    };
    let verdict = input.verdict();
    if is_foreign && manner.done + report.read == 0 && verdict != Verdict::Whole(0) {
        return Err(Failure::new(format!(
            "{shown}: there is no record in it; is it the right file?"
        )));
    }
    instance.mark_populated()?;
    for error in &report.first_errors {
        output::note(format_args!("{shown}: {error}"));
    }
    let unsaid = report.errors.saturating_sub(report.first_errors.len() as u64);
    if unsaid > 0 {
        output::note(format_args!("{shown}: {} more were refused", grouped(unsaid)));
    }
    if is_foreign {
        say_verdict(&shown, &verdict);
    }
    for left in definitions.left.iter().take(DEFINITIONS_SAID_MAX) {
        output::note(format_args!("{shown}: its definition of {left} is left out"));
    }
    say_unverified(&shown, &report);
    say_groups(&shown, &report.member_of);
    let forecast_s = forecast.map(|forecast| forecast.duration().as_secs_f64());
    let bytes = read_bytes.get();
    Ok(Populated { report, bytes, seconds, forecast_s, verdict, definitions })
}

/// The part of a file that can be unpacked, where the rest is not to be an error: then the file ends there.
struct Readable<R> {
    inner: R,
    is_lenient: bool,
    /// Why it has ended.
    damage: Rc<RefCell<Option<String>>>,
}

impl<R> Readable<R> {
    fn new(inner: R, is_lenient: bool) -> Readable<R> {
        Readable { inner, is_lenient, damage: Rc::default() }
    }
}

impl<R: Read> Read for Readable<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.damage.borrow().is_some() {
            return Ok(0);
        }
        match self.inner.read(out) {
            // So what is packed is cut off, or changed.
            Err(why)
                if self.is_lenient
                    && matches!(why.kind(), ErrorKind::UnexpectedEof | ErrorKind::InvalidInput) =>
            {
                *self.damage.borrow_mut() = Some(plain(&why));
                Ok(0)
            }
            read => read,
        }
    }
}

/// Says what is not known of what was imported, or known to be wrong with it.
fn say_verdict(shown: &str, verdict: &Verdict) {
    match verdict {
        Verdict::Whole(_) => {}
        Verdict::Unframed => output::note(format_args!(
            "{shown}: whether it is whole is not known: it has no checksum at its end, as an export of keyway \
             has"
        )),
        Verdict::Damaged(why) => {
            output::note(format_args!("warning: {shown}: {why}; what could be read of it is in"));
        }
    }
}

/// Prints once how fast clear passwords of a stream, whose number is not known, are hashed: when they have
/// taken long enough to be noticed.
struct StreamRate {
    shown: String,
    unsaid: bool,
    alternative: &'static str,
    /// How many entries come, if that is known.
    entries: Option<u64>,
    measured: Option<Forecast>,
}

impl StreamRate {
    /// The line to be said now that it has got so far.
    fn said(&mut self, so_far: Progress, passwords: &Passwords) -> Option<String> {
        let hashed = so_far.passwords_hashed;
        if !self.unsaid || hashed == 0 {
            return None;
        }
        // If it cannot be measured, the import itself will say why.
        self.measured = self.measured.or_else(|| Forecast::measure(passwords).ok());
        // Those that come are made as those that came were.
        let each = hashed as f64 / so_far.records.max(1) as f64;
        let all = self.entries.map(|entries| (each * entries as f64) as u64);
        let forecast = Forecast { passwords: all.unwrap_or(hashed).max(hashed), ..self.measured? };
        self.unsaid = !forecast.is_worth_saying();
        let said = match all {
            Some(_) => forecast.to_string(),
            None => forecast.of_a_stream(),
        };
        (!self.unsaid).then(|| format!("{}: {said}{}", self.shown, self.alternative))
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

fn refusal(shown: &str, is_file: bool, why: ImportError, advice: &str) -> Failure {
    Failure::new(match why {
        ImportError::Input(why) if why.kind() == ErrorKind::InvalidData && !is_file => format!(
            "{shown}: {}; what was read before that was noticed is in: begin again with a new data folder",
            plain(&why)
        ),
        ImportError::Input(why) => format!("{shown}: {}", plain(&why)),
        ImportError::Record { error, records } => format!(
            "{shown}: {error}; records before it that are in: {}; {advice}",
            grouped(records)
        ),
        ImportError::Another { records } => format!(
            "{shown}: its first {} records are not those that are in already, so this is not the import that was \
             not finished; nothing of it was imported: go on with that one's file, in which only what comes \
             behind those may be corrected, or begin with the first record of this one with --restart",
            grouped(records)
        ),
        ImportError::Directory(why) => format!("importing {shown}: {}", describe(&why)),
    })
}

/// The error for an import that was not finished.
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
