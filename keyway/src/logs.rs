//! `keyway log`: what a server has written down, chosen, or summed up.

mod line;
mod report;
mod select;

use crate::limits::LOG_LINE_BYTES_MAX;
use clap::{Args, ValueEnum};
use keyway_folder::data::{self, name};
use keyway_host::failure::Failure;
use keyway_host::output;
use line::Line;
use report::Report;
use select::Selection;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Show what the logs say, or sum it up
///
/// Reads DIR/log/access.log, error.log and audit.log and those that were put aside (NAME.log.1 and so on),
/// in either form, in the order of time. A server may be writing them. What went into systemd's journal
/// is read with --file - from journalctl -o cat or -o json.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway log --since 1h
      all of the last hour
  keyway log --of audit --where dn=uid=eve,ou=People,dc=example,dc=com
      who changed an entry, and when
  keyway log --of access --where result=49 --since 2026-11-24T08 --until 2026-11-24T09
      binds that failed in that hour (times are UTC)
  keyway log failed-binds --since 1d
      where they came from, and as whom
  keyway log slowest
      the ten slowest kinds of search, and where their time went (access = \"everything\" writes all
      of them down)
  keyway log --slow 250 --since 1d
      operations that took a quarter of a second or longer
  keyway log changes --json
      who changed how much, for programs
  tail -F keyway-data/log/access.log | keyway log --file - --where from=10.0.0.7
      as they come
  journalctl -u keyway -o cat | keyway log failed-binds --file -
      out of the journal (to = \"journal\")

An operation's time_us is from the last byte of its request to its answer. What of it went where:
  queue_us    waiting: behind other requests, for the turn of a password check, for the committer
  plan_us     understanding it; rights and the choice of indexes
  store_us    reading entries and making answers of them; of a change, its transaction and sync
  crypto_us   checking and hashing passwords
  write_us    waiting until the client took answers; of what had to wait, the way back
A stage of less than a microsecond is left out.")]
pub struct Log {
    /// What of it
    #[arg(value_enum, default_value = "lines")]
    pub what: What,
    /// The data folder
    #[arg(long = "data", value_name = "DIR", default_value = "keyway-data")]
    pub data: PathBuf,
    /// Read these files instead of the data folder's, in this order; - is standard input
    #[arg(long = "file", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Of these logs only
    #[arg(long = "of", value_enum, value_name = "LOG")]
    pub of: Vec<Book>,
    /// From this time on: as it begins in the log (2026-11-24T08), or so long ago (30s, 15m, 2h, 7d)
    #[arg(long, value_name = "TIME", value_parser = select::time)]
    pub since: Option<String>,
    /// Up to this time, in the same forms
    #[arg(long, value_name = "TIME", value_parser = select::time)]
    pub until: Option<String>,
    /// Only lines whose field has this text in it; the event's name is the field "event"
    #[arg(long = "where", value_name = "FIELD=TEXT", value_parser = select::field)]
    pub fields: Vec<(String, String)>,
    /// Only operations that took at least so many milliseconds
    #[arg(long, value_name = "MS")]
    pub slow: Option<u64>,
    /// How many rows of a summary
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub top: usize,
    /// A line of JSON for each
    #[arg(long)]
    pub json: bool,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum What {
    /// The lines themselves
    Lines,
    /// Binds that failed, by where they came from and as whom
    FailedBinds,
    /// Kinds of search by the longest that one of them took, with the mean of each stage
    Slowest,
    /// Changes, by who made them and what they were
    Changes,
}

/// One of the logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Book {
    /// What clients asked for
    Access,
    /// What concerns the server itself
    Error,
    /// Who changed what
    Audit,
}

impl Book {
    const ALL: [Book; 3] = [Book::Access, Book::Error, Book::Audit];

    fn name(self) -> &'static str {
        match self {
            Book::Access => "access",
            Book::Error => "error",
            Book::Audit => "audit",
        }
    }
}

/// Shows what is asked for.
///
/// # Errors
/// If there is no log, one cannot be read, or nobody reads what is shown.
pub fn run(arguments: &Log) -> Result<(), Failure> {
    let selection = Selection::of(arguments);
    let mut streams = streams(arguments)?;
    let mut report = Report::new(arguments.what);
    while let Some(line) = next(&mut streams)? {
        if !selection.takes(&line) {
            continue;
        }
        match &mut report {
            Some(report) => report.add(&line),
            None if arguments.json => output::json(&line.json())?,
            None => output::text(&line.text)?,
        }
    }
    report.map_or(Ok(()), |report| report.show(arguments.top, arguments.json))
}

/// A file that is being read.
type Open = (PathBuf, Box<dyn BufRead>);

/// A log, from its oldest file on.
struct Stream {
    files: Vec<PathBuf>,
    open: Option<Open>,
    /// What comes next, once it was looked for.
    ahead: Option<Line>,
}

fn streams(arguments: &Log) -> Result<Vec<Stream>, Failure> {
    let stream = |mut files: Vec<PathBuf>| {
        files.reverse();
        Stream { files, open: None, ahead: None }
    };
    if !arguments.files.is_empty() {
        return Ok(vec![stream(arguments.files.clone())]);
    }
    data::may_look(&arguments.data)?;
    let folder = arguments.data.join(name::LOG);
    let wanted = |book: &Book| arguments.of.is_empty() || arguments.of.contains(book);
    let logs: Vec<_> = Book::ALL.into_iter().filter(wanted).map(|it| files(&folder, it)).collect();
    if logs.iter().all(Vec::is_empty) {
        return Err(Failure::new(format!(
            "there is no log in {}; name the server's folder with --data DIR, or a log with --file \
             ([log] in its keyway.toml may send them elsewhere)",
            folder.display()
        )));
    }
    Ok(logs.into_iter().map(stream).collect())
}

/// Those that were put aside have a higher number the older they are.
fn files(folder: &Path, book: Book) -> Vec<PathBuf> {
    let path = |number: usize| match number {
        0 => folder.join(format!("{}.log", book.name())),
        number => folder.join(format!("{}.log.{number}", book.name())),
    };
    let mut files: Vec<_> = (1..).map(path).take_while(|path| path.exists()).collect::<Vec<_>>();
    files.reverse();
    files.extend(Some(path(0)).filter(|path| path.exists()));
    files
}

/// The earliest line of all.
fn next(streams: &mut [Stream]) -> Result<Option<Line>, Failure> {
    for stream in streams.iter_mut() {
        stream.look()?;
    }
    let earliest = streams
        .iter_mut()
        .filter(|stream| stream.ahead.is_some())
        .min_by(|a, b| a.time().cmp(&b.time()));
    Ok(earliest.and_then(|stream| stream.ahead.take()))
}

impl Stream {
    fn time(&self) -> Option<&str> {
        self.ahead.as_ref().map(|line| line.time.as_str())
    }

    /// Sees to it that the next line is there, if there is one. Lines that are none are passed over: the
    /// last one may be half written.
    fn look(&mut self) -> Result<(), Failure> {
        while self.ahead.is_none() {
            let Some((path, file)) = &mut self.open else {
                let Some(path) = self.files.pop() else { return Ok(()) };
                self.open = open(path)?;
                continue;
            };
            let mut bytes = Vec::new();
            match file.take(LOG_LINE_BYTES_MAX).read_until(b'\n', &mut bytes) {
                Ok(0) => self.open = None,
                Ok(_) => self.ahead = Line::parse(&String::from_utf8_lossy(&bytes)),
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) => return Err(Failure::system("read", path, &why)),
            }
        }
        Ok(())
    }
}

fn open(path: PathBuf) -> Result<Option<Open>, Failure> {
    if path.as_os_str() == "-" {
        return Ok(Some((path, Box::new(BufReader::new(io::stdin())))));
    }
    match File::open(&path) {
        Ok(file) => Ok(Some((path, Box::new(BufReader::new(file))))),
        Err(why) => Err(Failure::system("read", &path, &why)),
    }
}
