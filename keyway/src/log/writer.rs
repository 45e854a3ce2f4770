//! The thread that writes: it takes what has come together, and never gives up.

use super::file::{Rotating, Sizes};
use super::queue::{Counts, Lines, Queue};
use super::{BOOKS, Form, Settings, To, format, place};
use crate::failure::{Failure, plain};
use crate::output;
use keyway_server::log::{Book, Record, Severity, Value};
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::time::SystemTime;

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

    /// Writes until the queue is closed and empty.
    pub fn run(mut self, queue: &Queue) {
        let mut used = Lines::default();
        loop {
            let mut work = queue.next(used);
            for (book, lines) in work.lines.iter().enumerate() {
                self.put(book, lines, work.form);
                self.lost[book] += work.lost[book];
                if work.lost[book] > 0 || work.last {
                    self.tell_of_lost(book, work.form);
                }
            }
            if let Some(mut successor) = work.successor.take() {
                successor.lost = self.lost;
                self = successor;
            }
            queue.finish(&work);
            if work.last {
                return;
            }
            used = work.lines;
            used.iter_mut().for_each(Vec::clear);
        }
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
