//! The writer's thread: how it writes lines. It never gives up.

use crate::file::{Rotating, Sizes};
use crate::format;
use crate::journal::{self, Journal};
use crate::limits::{LOG_LEFT_OUT_SAY_EVERY, LOG_RESERVE_BYTES};
use crate::settings::{Form, LOG_NAMES, Settings, To, place};
use keyway_host::failure::{Failure, plain};
use keyway_host::output;
use keyway_meter::{Counter, counter};
use keyway_server::log::{Field, LogKind, Record, Severity, Value};
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::time::{Instant, SystemTime};

/// Whole lines, of each log.
pub type Lines = [Vec<u8>; LOG_NAMES.len()];
/// How many, of each log.
pub type Counts = [u64; LOG_NAMES.len()];

/// Where lines go, and what became of those before.
pub struct Writer {
    target: Target,
    /// Lines of each log that were lost and not told of yet.
    lost: Counts,
    lost_ever: Counter,
    left_out: LeftOut,
}

/// Lines for which others stand.
struct LeftOut {
    ever: Counter,
    /// How many were told of, and when it was last looked.
    told: u64,
    looked: Instant,
}

enum Target {
    Files(Box<[Rotating; LOG_NAMES.len()]>),
    Journal(Journal),
    Stderr,
    Nowhere,
}

impl Writer {
    /// Opens the files.
    ///
    /// # Errors
    /// If there is no place for them. A full disk is none: it may have room when there is
    /// something to write.
    pub fn open(data: &Path, settings: &Settings) -> Result<Writer, Failure> {
        let target = match settings.to {
            To::Journal => {
                let path = &settings.journal;
                Target::Journal(Journal::open(path).map_err(|why| no_journal(path, &why))?)
            }
            To::Stderr => Target::Stderr,
            To::Nowhere => Target::Nowhere,
            To::Files => {
                let folder = data.join(&settings.folder);
                let sizes = Sizes { bytes_max: settings.file_bytes_max, kept: settings.files_kept };
                // That the disk is full is to be in the error log.
                let reserve = |kind| if kind == "error" { LOG_RESERVE_BYTES } else { 0 };
                let new = |kind| {
                    Rotating::new(&folder, kind, sizes, settings.mode).with_reserve(reserve(kind))
                };
                let mut files = LOG_NAMES.map(new);
                for file in &mut files {
                    match file.open() {
                        Err(why) if !is_full(&why) => {
                            return Err(Failure::system("write the log", file.path(), &why));
                        }
                        _ => {}
                    }
                }
                Target::Files(Box::new(files))
            }
        };
        let ever = counter("log.left_out");
        let left_out = LeftOut { ever, told: ever.value(), looked: Instant::now() };
        let lost = Counts::default();
        Ok(Writer { target, lost, lost_ever: counter("log.lost"), left_out })
    }

    /// Writes lines, and tells of those that were lost where it has to be told now: if some were
    /// just lost, or these are the last.
    pub fn write(&mut self, lines: &Lines, lost: &Counts, form: Form, last: bool) {
        for (kind, lines) in lines.iter().enumerate() {
            self.put(kind, lines, form);
            self.lose(kind, lost[kind]);
            if lost[kind] > 0 || last {
                self.tell_of_lost(kind, form);
            }
        }
        if last || self.left_out.looked.elapsed() >= LOG_LEFT_OUT_SAY_EVERY {
            self.tell_of_left_out(form);
        }
    }

    /// Brings the audit log to the disk, where it is a file; says whether it is there.
    pub fn sync_audit(&mut self) -> bool {
        match &mut self.target {
            Target::Files(files) => {
                let audit = place(LogKind::Audit);
                self.lost[audit] == 0 && files[audit].sync().is_ok()
            }
            // Their receiver is responsible for them.
            Target::Journal(_) | Target::Stderr | Target::Nowhere => true,
        }
    }

    /// Goes on as another, which knows what was lost.
    pub fn go_on_as(&mut self, successor: Writer) {
        self.target = successor.target;
    }

    /// Writes lines of one log. When it can be written again, a line says how many could not be.
    fn put(&mut self, kind: usize, lines: &[u8], form: Form) {
        if !lines.is_empty() && self.target.leave_if_gone(kind) {
            let text =
                "the file was removed, moved or replaced; lines that it had are not written again";
            let fields = [("name", Value::Text(LOG_NAMES[kind])), ("text", Value::Text(text))];
            self.say(LogKind::Error(Severity::Warning), "reopened", &fields, form);
        }
        if let Err((left, why)) = self.target.put(kind, lines) {
            if self.lost[kind] == 0 {
                output::note(format_args!(
                    "the {} log cannot be written ({}); lines are counted until it can be",
                    LOG_NAMES[kind],
                    plain(&why)
                ));
            }
            let lines = match form {
                Form::Journal => journal::count(left),
                _ => count(left),
            };
            self.lose(kind, lines);
        } else if !lines.is_empty() {
            self.tell_of_lost(kind, form);
        }
    }

    fn lose(&mut self, kind: usize, lines: u64) {
        self.lost[kind] += lines;
        self.lost_ever.add(lines);
    }

    /// Says how many operations that went well are in no line (`access_one_in`).
    fn tell_of_left_out(&mut self, form: Form) {
        self.left_out.looked = Instant::now();
        let ever = self.left_out.ever.value();
        let lines = ever.wrapping_sub(self.left_out.told);
        if lines > 0
            && self.say(LogKind::Access, "left-out", &[("lines", Value::Number(lines))], form)
        {
            self.left_out.told = ever;
        }
    }

    fn tell_of_lost(&mut self, kind: usize, form: Form) {
        if self.lost[kind] == 0 {
            return;
        }
        let fields =
            [("name", Value::Text(LOG_NAMES[kind])), ("lines", Value::Number(self.lost[kind]))];
        if self.say(LogKind::Error(Severity::Error), "lost", &fields, form) {
            self.lost[kind] = 0;
        }
    }

    /// Writes a line of its own; says whether it could.
    fn say(&mut self, kind: LogKind, event: &str, fields: &[Field<'_>], form: Form) -> bool {
        let mut line = Vec::new();
        format::line(&mut line, &Record { at: SystemTime::now(), kind, event, fields }, form);
        // The folder may be gone, with all files.
        self.target.leave_if_gone(place(kind));
        self.target.put(place(kind), &line).is_ok()
    }
}

fn no_journal(path: &Path, why: &io::Error) -> Failure {
    Failure::new(format!(
        "cannot write to the journal: {}: {}; in [log], to = \"files\" or \"stderr\" need none, and \
         journal_socket names another place",
        path.display(),
        plain(why)
    ))
}

impl Target {
    /// As [`Rotating::leave_if_gone`]; other targets have no files.
    fn leave_if_gone(&mut self, kind: usize) -> bool {
        match self {
            Target::Files(files) => files[kind].leave_if_gone(),
            Target::Journal(_) | Target::Stderr | Target::Nowhere => false,
        }
    }

    /// Writes whole lines; gives back those that could not be written.
    fn put<'a>(&mut self, kind: usize, lines: &'a [u8]) -> Result<(), (&'a [u8], io::Error)> {
        match self {
            Target::Files(files) => files[kind].put(lines),
            Target::Journal(journal) => journal.put(lines),
            Target::Stderr => io::stderr().lock().write_all(lines).map_err(|why| (lines, why)),
            Target::Nowhere => Ok(()),
        }
    }
}

fn count(lines: &[u8]) -> u64 {
    lines.iter().filter(|byte| **byte == b'\n').count() as u64
}

pub fn is_full(why: &io::Error) -> bool {
    matches!(why.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}
