//! Errors of a repository: what is wrong, where, and what to do.

use crate::protection::Protection;
use keyway_host::failure::{Failure, is_disk_full, plain};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why something could not be done with a repository.
#[derive(Debug)]
pub enum Error {
    /// It was to end before it was done.
    Stopped,
    /// The folder has no repository.
    NoRepository(PathBuf),
    /// A new repository cannot begin in a folder that has one.
    Exists(PathBuf),
    /// A new repository cannot begin in a folder with other things in it.
    Occupied {
        /// The folder.
        folder: PathBuf,
        /// A name in it.
        name: String,
    },
    /// The folder has backups, and neither a header nor its copy.
    NoHeader(PathBuf),
    /// The secret is of the right kind and not the right one.
    WrongSecret {
        /// The folder.
        folder: PathBuf,
        /// The secret that opens it.
        needed: Protection,
    },
    /// The secret is of another kind than the one that opens it.
    OtherSecret {
        /// The folder.
        folder: PathBuf,
        /// The secret that opens it.
        needed: Protection,
    },
    /// The holder of the key failed.
    Held {
        /// The key.
        label: String,
        /// Why.
        why: io::Error,
    },
    /// Another process writes to the repository.
    InUse {
        /// The folder.
        folder: PathBuf,
        /// The process, in words.
        by: String,
    },
    /// Other processes read backups, and something was to be removed.
    BeingRead(PathBuf),
    /// There is no backup of this name.
    NoBackup {
        /// The folder.
        folder: PathBuf,
        /// The name; `latest` if there is none at all.
        name: String,
    },
    /// There is no such file in the backup.
    NoFile {
        /// The backup.
        backup: String,
        /// The file.
        path: String,
    },
    /// A file of the repository is not as it was written.
    Damaged {
        /// The file.
        path: PathBuf,
        /// Its fault.
        fault: Fault,
    },
    /// The repository's disk is full.
    Full(PathBuf),
    /// The system refused.
    System {
        /// A verb and its object.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why.
        why: io::Error,
    },
    /// A file that was to be stored could not be read.
    Source {
        /// Its path in the backup.
        path: String,
        /// Why.
        why: io::Error,
    },
    /// There is more of something than a repository takes.
    Limit {
        /// A plural noun.
        of: &'static str,
        /// Their largest number.
        most: usize,
    },
    /// The caller asks for something that cannot be.
    Unfit(String),
    /// The engine failed.
    Engine(keyway_engine::Error),
}

/// The way in which a file of a repository is not as it was written.
#[derive(Debug)]
pub enum Fault {
    /// It is not there.
    Missing,
    /// Its end is cut off.
    Truncated,
    /// It has other bytes than were written.
    Altered,
    /// It is whole, and was written under another name.
    Misplaced,
    /// It is authentic and not what its place asks for, or no file at all; why.
    Unfit(&'static str),
    /// The system or the engine does not read it; why.
    Unreadable(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::Missing => "it is missing",
            Fault::Truncated => "it is cut off",
            Fault::Altered => "it was altered",
            Fault::Misplaced => "it is a file of another name, put in its place",
            Fault::Unfit(why) => why,
            Fault::Unreadable(why) => why,
        })
    }
}

impl Error {
    /// The system refused `what` (a verb and its object) with this file of the repository in `folder`.
    pub(crate) fn system(folder: &Path, what: &'static str, path: &Path, why: io::Error) -> Self {
        if is_disk_full(&why) {
            return Error::Full(folder.to_owned());
        }
        Error::System { what, path: path.to_owned(), why }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Stopped => f.write_str("it was stopped"),
            Error::NoRepository(folder) => write!(
                f,
                "{} has no backups in it: the file keyway-backup is missing; name the folder that \
                 `keyway backup create` was given",
                folder.display()
            ),
            Error::Exists(folder) => write!(
                f,
                "{} is a repository of backups already; open it with its secret, or name another \
                 folder",
                folder.display()
            ),
            Error::Occupied { folder, name } => write!(
                f,
                "{} is not empty: it has {name:?} in it; name an empty folder, or one that is not \
                 there yet",
                folder.display()
            ),
            Error::NoHeader(folder) => write!(
                f,
                "{} has backups in it, but keyway-backup and keyway-backup.copy are missing, without \
                 which no backup can be read; bring one of them back from a copy of the folder",
                folder.display()
            ),
            Error::WrongSecret { folder, needed } => match needed {
                Protection::Passphrase => {
                    write!(f, "the passphrase is not that of the backups in {}", folder.display())
                }
                Protection::KeyFile => write!(
                    f,
                    "the key file is not that of the backups in {}; name the one that their first \
                     create was given",
                    folder.display()
                ),
                Protection::Held { label } => write!(
                    f,
                    "cryptod's key {label} is not the one that the backups in {} were made with; its \
                     key store may be another, or the key was made anew",
                    folder.display()
                ),
            },
            Error::OtherSecret { folder, needed } => {
                write!(f, "the backups in {} are opened with {needed}", folder.display())
            }
            Error::Held { label, why } => {
                write!(f, "cryptod did not use its key {label}: {}", plain(why))
            }
            Error::InUse { folder, by } => {
                write!(
                    f,
                    "{by} writes to the backups in {}; wait until it is done",
                    folder.display()
                )
            }
            Error::BeingRead(folder) => write!(
                f,
                "a restore or a verification reads the backups in {}, so none is removed now; wait \
                 until it is done",
                folder.display()
            ),
            Error::NoBackup { folder, name } if name == "latest" => write!(
                f,
                "{} has no backup yet; make one with `keyway backup create`",
                folder.display()
            ),
            Error::NoBackup { folder, name } => write!(
                f,
                "{} has no backup {name:?}; `keyway backup list` shows their names",
                folder.display()
            ),
            Error::NoFile { backup, path } => {
                write!(
                    f,
                    "the backup {backup} has no file {path:?}; `keyway backup show` lists them"
                )
            }
            Error::Damaged { path, fault } => write!(
                f,
                "{} is damaged: {fault}; `keyway backup verify` says which backups suffer",
                path.display()
            ),
            Error::Full(folder) => write!(
                f,
                "the disk of {} is full; make room there, or remove old backups with `keyway backup \
                 prune`, and repeat the command; the backups that are there are whole",
                folder.display()
            ),
            Error::System { what, path, why } => Failure::system(what, path, why).fmt(f),
            Error::Source { path, why } => {
                write!(f, "cannot read {path} to store it: {}", plain(why))
            }
            Error::Limit { of, most } => write!(f, "a backup has at most {most} {of}"),
            Error::Unfit(why) => f.write_str(why),
            Error::Engine(why) => write!(f, "the engine failed: {why}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<keyway_engine::Error> for Error {
    fn from(why: keyway_engine::Error) -> Self {
        Error::Engine(why)
    }
}

impl From<Error> for Failure {
    fn from(why: Error) -> Self {
        Failure::new(why)
    }
}
