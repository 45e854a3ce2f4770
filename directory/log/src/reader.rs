//! The files of the logs, read in the order of time.

use crate::limits::LOG_LINE_BYTES_MAX;
use crate::line::Line;
use keyway_host::failure::Failure;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Lines of several logs, the earliest first. A server may be writing them.
pub struct Reader {
    streams: Vec<Stream>,
}

/// How many lines were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineCounts {
    /// Lines of a log.
    pub understood: u64,
    /// Other lines, which are passed over; without one that has no end, since it may be half written.
    pub strange: u64,
}

impl Reader {
    /// Reads these files, one after the other; `-` is standard input.
    pub fn of_files(files: &[PathBuf]) -> Reader {
        Reader { streams: vec![Stream::new(files.to_vec())] }
    }

    /// Reads these logs (`access`, `error`, `audit`), each from its oldest file in this folder on; `None` if there
    /// is none of them.
    pub fn of_folder<'n>(folder: &Path, logs: impl IntoIterator<Item = &'n str>) -> Option<Reader> {
        let all: Vec<_> = logs.into_iter().map(|log| files(folder, log)).collect();
        let is_there = all.iter().any(|files| !files.is_empty());
        is_there.then(|| Reader { streams: all.into_iter().map(Stream::new).collect() })
    }

    /// How many lines were read so far.
    pub fn counts(&self) -> LineCounts {
        let add = |a: LineCounts, b: LineCounts| LineCounts {
            understood: a.understood + b.understood,
            strange: a.strange + b.strange,
        };
        self.streams.iter().map(|stream| stream.counts).fold(LineCounts::default(), add)
    }

    /// The next line.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn next_line(&mut self) -> Result<Option<Line>, Failure> {
        for stream in &mut self.streams {
            stream.look()?;
        }
        let waiting = self.streams.iter_mut().filter(|stream| stream.ahead.is_some());
        let earliest = waiting.min_by(|a, b| a.time().cmp(&b.time()));
        Ok(earliest.and_then(|stream| stream.ahead.take()))
    }
}

/// A file that is being read.
type Open = (PathBuf, Box<dyn BufRead>);

/// A log, from its oldest file on.
struct Stream {
    files: Vec<PathBuf>,
    open: Option<Open>,
    /// The next line, once it was read.
    ahead: Option<Line>,
    counts: LineCounts,
}

/// Those that were put aside have a higher number the older they are.
fn files(folder: &Path, log: &str) -> Vec<PathBuf> {
    let path = |number: usize| match number {
        0 => folder.join(format!("{log}.log")),
        number => folder.join(format!("{log}.log.{number}")),
    };
    let mut files: Vec<_> = (1..).map(path).take_while(|path| path.exists()).collect::<Vec<_>>();
    files.reverse();
    files.extend(Some(path(0)).filter(|path| path.exists()));
    files
}

impl Stream {
    fn new(mut files: Vec<PathBuf>) -> Stream {
        files.reverse();
        Stream { files, open: None, ahead: None, counts: LineCounts::default() }
    }

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
                Ok(_) => {
                    self.ahead = Line::parse(&String::from_utf8_lossy(&bytes));
                    match self.ahead {
                        Some(_) => self.counts.understood += 1,
                        None if bytes.ends_with(b"\n")
                            || bytes.len() as u64 == LOG_LINE_BYTES_MAX =>
                        {
                            self.counts.strange += 1;
                        }
                        None => {}
                    }
                }
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
