//! Why the program ends without having done what it was asked.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::OnceLock;

/// One clear line for people, and the exit status that goes with it.
#[derive(Debug)]
pub struct Failure {
    line: String,
    status: u8,
    is_refused: bool,
}

/// Why this process does not get at files of others, if it has seen to that itself.
static CONFINED: OnceLock<String> = OnceLock::new();

/// Says of each file from now on that cannot be had why that may be.
pub fn say_confined(why: String) {
    // The first says it all.
    let _ = CONFINED.set(why);
}

/// The system, the data or another program is at fault.
const STATUS_FAILED: u8 = 1;
/// The caller is at fault.
const STATUS_USAGE: u8 = 2;

impl Failure {
    /// Something could not be done. The line says what, where, and what to do.
    pub fn new(line: impl fmt::Display) -> Failure {
        Failure { line: one_line(&line.to_string()), status: STATUS_FAILED, is_refused: false }
    }

    /// A server does not take a name and its password. To ask again would be to guess.
    pub fn refused(line: impl fmt::Display) -> Failure {
        Failure { is_refused: true, ..Failure::new(line) }
    }

    /// Whether it is that.
    pub fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// The message of another process of this program about its end.
    pub fn with_status(line: &str, status: u8) -> Failure {
        Failure { status, ..Failure::new(line) }
    }

    /// The program was called wrongly.
    pub fn usage(line: impl fmt::Display) -> Failure {
        Failure { status: STATUS_USAGE, ..Failure::new(line) }
    }

    /// The system refused: `what` (a verb and its object) with this file.
    pub fn system(what: &str, path: &Path, why: &io::Error) -> Failure {
        let path = path.display();
        Failure::new(match why.kind() {
            _ if is_disk_full(why) => {
                format!("cannot {what} {path}: the disk is full; make room and repeat the command")
            }
            ErrorKind::PermissionDenied if let Some(why) = CONFINED.get() => {
                format!("cannot {what} {path}: no permission; {why}")
            }
            ErrorKind::PermissionDenied => {
                format!("cannot {what} {path}: no permission; run as its owner or name another")
            }
            ErrorKind::ReadOnlyFilesystem => {
                format!("cannot {what} {path}: the file system is read-only; name another place")
            }
            _ => format!("cannot {what} {path}: {}", plain(why)),
        })
    }

    /// Standard output could not be written.
    pub fn output(why: &io::Error) -> Failure {
        Failure::new(match why.kind() {
            ErrorKind::BrokenPipe => "the output was closed early (broken pipe)".to_owned(),
            _ => format!("cannot write to standard output: {}", plain(why)),
        })
    }

    /// The exit status of the process.
    pub fn status(&self) -> u8 {
        self.status
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

/// Whether the system has no room, or none for this user.
pub fn is_disk_full(why: &io::Error) -> bool {
    matches!(why.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// The system's words without "(os error 2)", which helps no reader.
pub fn plain(why: &io::Error) -> String {
    let text = why.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_owned(),
        None => text,
    }
}

/// Text from elsewhere (a parser's message, a file's name) may have line ends in it.
fn one_line(text: &str) -> String {
    text.split(['\n', '\r'])
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_one_line() {
        assert_eq!(Failure::new("a\n  b\r\n\nc").to_string(), "a; b; c");
    }

    #[test]
    fn a_full_disk_says_so() {
        let why = io::Error::from(ErrorKind::StorageFull);
        let failure = Failure::system("write", Path::new("/x/y"), &why);
        assert!(failure.to_string().starts_with("cannot write /x/y: the disk is full"));
        assert_eq!(failure.status(), 1);
    }
}
