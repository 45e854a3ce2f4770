//! Why a run does not begin, or does not go on.

use keyway_host::failure::{Failure, plain};
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why not.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The scenario, or what stands for one, says something that makes no sense.
    Scenario {
        /// Its file, or what it came from.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The fault, and the remedy.
        why: String,
    },
    /// A template that the scenario names says something that makes no sense.
    Template(keyway_data::TemplateError),
    /// An argument makes no sense.
    Usage(String),
    /// The server cannot be reached, is not trusted, or does not take the account.
    Server(String),
    /// The system did not let us use a file.
    File {
        /// The action that failed: read, write.
        verb: &'static str,
        /// With which one.
        path: PathBuf,
        /// Why not.
        why: io::Error,
    },
    /// A file is not what it should be.
    Content(PathBuf, String),
    /// The system refused something else.
    System(&'static str, io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Scenario { file, line, why } => write!(f, "{file}, line {line}: {why}"),
            Error::Template(why) => why.fmt(f),
            Error::Usage(why) | Error::Server(why) => f.write_str(why),
            Error::File { verb, path, why } => {
                write!(f, "cannot {verb} {}: {why}", path.display())
            }
            Error::Content(path, why) => write!(f, "{}: {why}", path.display()),
            Error::System(what, why) => write!(f, "cannot {what}: {why}"),
        }
    }
}

impl std::error::Error for Error {}

/// One that is the caller's fault ends the program as such.
impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match &error {
            Error::File { verb, path, why } => Failure::system(verb, path, why),
            Error::System(what, why) => Failure::new(format!("cannot {what}: {}", plain(why))),
            Error::Usage(_) | Error::Scenario { .. } | Error::Template(_) => Failure::usage(error),
            _ => Failure::new(error),
        }
    }
}
