//! What the thread that writes does with lines. It never gives up.

use super::file::{Rotating, Sizes};
use super::format;
use super::settings::{BOOKS, Form, Settings, To, place};
use crate::failure::{Failure, plain};
use crate::output;
use keyway_server::log::{Book, Record, Severity, Value};
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::time::SystemTime;

/// Whole lines, of each log.
pub type Lines = [Vec<u8>; BOOKS.len()];
/// How many, of each log.
pub type Counts = [u64; BOOKS.len()];

/// Where lines go, and what became of those before.
pub struct Writer {
    target: Target,
    /// Lines of each log that were lost and not told of yet.
    lost: Counts,
}

enum Target {
    Files([Rotating; BOOKS.len()]),
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
            To::Stderr => Target::Stderr,
            To::Nowhere => Target::Nowhere,
            To::Files => {
                let folder = data.join(&settings.folder);
                let sizes = Sizes { bytes_max: settings.file_bytes_max, kept: settings.files_kept };
                let mut files = BOOKS.map(|book| Rotating::new(&folder, book, sizes));
                for file in &mut files {
                    match file.open() {
                        Err(why) if !is_full(&why) => {
                            return Err(Failure::system("write the log", file.path(), &why));
                        }
                        _ => {}
                    }
                }
                Target::Files(files)
            }
        };
        Ok(Writer { target, lost: Counts::default() })
    }

    /// Writes lines, and tells of those that were lost where it has to be told now: if some were
    /// just lost, or these are the last.
    pub fn write(&mut self, lines: &Lines, lost: &Counts, form: Form, last: bool) {
        for (book, lines) in lines.iter().enumerate() {
            self.put(book, lines, form);
            self.lost[book] += lost[book];
            if lost[book] > 0 || last {
                self.tell_of_lost(book, form);
            }
        }
    }

    /// Goes on as another, which knows what was lost.
    pub fn go_on_as(&mut self, successor: Writer) {
        self.target = successor.target;
    }

    /// Writes lines of one log. When it can be written again, a line says how many could not be.
    fn put(&mut self, book: usize, lines: &[u8], form: Form) {
        if let Err((left, why)) = self.target.put(book, lines) {
            if self.lost[book] == 0 {
                output::note(format_args!(
                    "the {} log cannot be written ({}); lines are counted until it can be",
                    BOOKS[book],
                    plain(&why)
                ));
            }
            self.lost[book] += count(left);
        } else if !lines.is_empty() {
            self.tell_of_lost(book, form);
        }
    }

    fn tell_of_lost(&mut self, book: usize, form: Form) {
        if self.lost[book] == 0 {
            return;
        }
        let fields =
            [("name", Value::Text(BOOKS[book])), ("lines", Value::Number(self.lost[book]))];
        let record = Record { at: SystemTime::now(), book: ERRORS, event: "lost", fields: &fields };
        let mut line = Vec::new();
        format::line(&mut line, &record, form);
        if self.target.put(place(ERRORS), &line).is_ok() {
            self.lost[book] = 0;
        }
    }
}

const ERRORS: Book = Book::Error(Severity::Error);

impl Target {
    /// Writes whole lines; gives back those that could not be written.
    fn put<'a>(&mut self, book: usize, lines: &'a [u8]) -> Result<(), (&'a [u8], io::Error)> {
        match self {
            Target::Files(files) => files[book].put(lines),
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
