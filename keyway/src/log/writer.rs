//! The thread that writes: it takes what has come together, and never gives up.

use super::file::{Rotating, Sizes};
use super::queue::{Lines, Queue};
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
    /// Lines that could not be written since the last one that could.
    lost: u64,
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
        Ok(Writer { target, lost: 0 })
    }

    /// Writes until the queue is closed and empty.
    pub fn run(mut self, queue: &Queue) {
        let mut used = Lines::default();
        loop {
            let mut work = queue.next(used);
            for (book, lines) in work.lines.iter().enumerate() {
                self.put(book, lines, work.form);
            }
            if work.lost > 0 {
                self.lost += work.lost;
                self.put(place(ERRORS), b"", work.form);
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

    /// Writes lines of one log. Before them stands how many could not be written.
    fn put(&mut self, book: usize, lines: &[u8], form: Form) {
        if lines.is_empty() && self.lost == 0 {
            return;
        }
        if self.lost > 0 {
            let mut line = Vec::new();
            let fields = [("lines", Value::Number(self.lost))];
            let at = SystemTime::now();
            format::line(
                &mut line,
                &Record { at, book: ERRORS, event: "lost", fields: &fields },
                form,
            );
            if self.target.put(place(ERRORS), &line).is_err() {
                self.lost += count(lines);
                return;
            }
            self.lost = 0;
        }
        if let Err((left, why)) = self.target.put(book, lines) {
            self.lost += count(left);
            output::note(format_args!(
                "the {} log cannot be written ({}); lines are counted until it can be",
                BOOKS[book],
                plain(&why)
            ));
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
