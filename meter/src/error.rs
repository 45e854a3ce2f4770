//! Errors of a page.

use std::path::PathBuf;
use std::{fmt, io};

/// Why a page could not be created, mapped or read.
#[derive(Debug)]
pub enum Error {
    /// The caller's fault: this process has its page already; [`open`](crate::open) comes first,
    /// before the first counter, and once.
    AlreadyOpen,
    /// The file is at fault: it is not a page that can be read here.
    Page {
        /// Which file.
        path: PathBuf,
        /// The error.
        fault: Fault,
    },
    /// The system refused (no room on the disk, no permission, no such file).
    System {
        /// The action that was tried.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

/// An error of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is something else, or from a machine of the other byte order.
    NotAPage,
    /// Another version wrote it.
    OtherVersion {
        /// The version it says it has.
        found: u64,
        /// The version this program reads.
        ours: u64,
    },
    /// It claims to be a page of this version and cannot be one.
    Damaged(&'static str),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::AlreadyOpen => f.write_str(
                "this process already counts into a page; open it once, before the first counter",
            ),
            Error::Page { path, fault } => write!(f, "{}: {fault}", path.display()),
            Error::System { what, path, source } => {
                write!(f, "cannot {what} {}: {source}", path.display())
            }
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::NotAPage => f.write_str("not a page of counters"),
            Fault::OtherVersion { found, ours } => write!(
                f,
                "a page of counters of version {found}; this program reads version {ours}, use \
                 the one that wrote it"
            ),
            Fault::Damaged(what) => write!(f, "a damaged page of counters: {what}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::System { source, .. } => Some(source),
            Error::Page { fault, .. } => Some(fault),
            Error::AlreadyOpen => None,
        }
    }
}

impl std::error::Error for Fault {}
