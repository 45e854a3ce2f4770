//! Errors of the key store, and the party at fault.

use keyway_engine::Blame;
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Why the store did not do what it was asked to.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// To a caller that wants to use a key: there is none of that name, or it is not for this
    /// caller. Only the audit log says which of the two.
    Refused,
    /// There is a store in the folder.
    StoreExists(PathBuf),
    /// The name is none that a key can have.
    Name,
    /// There is a key of that name.
    Exists(String),
    /// There is no key of that name.
    NoSuchKey(String),
    /// A key or a version of it is being made or destroyed, which takes long.
    Busy(String),
    /// The change is in force, and is not on the disk.
    Unsaved {
        /// The key.
        name: String,
        /// Why it could not be written.
        why: Box<Error>,
    },
    /// The caller is no manager of keys, as the audit log tells it.
    NotManaged,
    /// Nothing that was granted is for this caller. A caller that wants to use a key sees
    /// [`Error::Refused`].
    NotAllowed(String),
    /// The key's file cannot be relied on, so that no client may use the key. Every caller that
    /// asks for it is told so, since only the file says which callers it was for.
    Disabled {
        /// The key.
        name: String,
        /// Why its file cannot be relied on.
        why: String,
    },
    /// A disabled key, as clients are told of it.
    Unusable(String),
    /// The key is revoked, and no caller may use it.
    Revoked(String),
    /// The key is in use: a key has to be revoked before it is deleted.
    NotRevoked(String),
    /// Key, algorithm and purpose do not go together.
    Unfit(&'static str),
    /// The material is no key, or none that the engine takes.
    Material(&'static str),
    /// The certificates are not the key's, or are none.
    Certificate(&'static str),
    /// The wrapped bytes are not authentic, or are for another key or context.
    Unwrap,
    /// A stated limit.
    Limit {
        /// The things there would be too many of.
        of: &'static str,
        /// How many there may be.
        most: usize,
    },
    /// The engine refused.
    Engine(keyway_engine::Error),
    /// A token refused, or is not there.
    Token(keyway_token::Error),
    /// The value to be saved has no saved form: a mistake of this program.
    Unwritten,
    /// It is not the master key that the store was made with.
    WrongMaster(PathBuf),
    /// The file is not what this store wrote. It was left as it is.
    Damaged {
        /// The file.
        file: PathBuf,
        /// Its fault.
        what: &'static str,
    },
    /// Others than the owner may read or change a file that only the owner should.
    Exposed(PathBuf),
    /// Another process has the store open.
    InUse(PathBuf),
    /// A tool of the TPM failed.
    Tpm {
        /// The tool.
        tool: &'static str,
        /// The tool's own words, or the system's.
        why: String,
    },
    /// The system refused.
    System {
        /// To do what.
        doing: &'static str,
        /// With which file.
        file: PathBuf,
        /// Why.
        why: io::Error,
    },
}

impl Error {
    /// The party at fault.
    pub fn blame(&self) -> Blame {
        match self {
            Error::Engine(why) => why.blame(),
            Error::Limit { .. } | Error::Busy(_) => Blame::Limit,
            Error::Unwrap => Blame::Peer,
            Error::Unwritten
            | Error::Disabled { .. }
            | Error::Unusable(_)
            | Error::Damaged { .. }
            | Error::Tpm { .. }
            | Error::Token(_)
            | Error::Unsaved { .. }
            | Error::System { .. } => Blame::System,
            _ => Blame::Caller,
        }
    }

    pub(crate) fn system(doing: &'static str, file: &Path) -> impl FnOnce(io::Error) -> Self {
        let file = file.to_owned();
        move |why| Error::System { doing, file, why }
    }

    pub(crate) fn damaged(file: &Path, what: &'static str) -> Self {
        Error::Damaged { file: file.to_owned(), what }
    }
}

impl From<keyway_engine::Error> for Error {
    fn from(why: keyway_engine::Error) -> Self {
        Error::Engine(why)
    }
}

impl From<keyway_token::Error> for Error {
    fn from(why: keyway_token::Error) -> Self {
        Error::Token(why)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Refused => f.write_str("there is no key of that name that you may use"),
            Error::StoreExists(folder) => {
                write!(f, "{}: there is a key store already", folder.display())
            }
            Error::Name => write!(
                f,
                "a key's name begins with a lower-case letter, a digit or an underscore, and has these, dashes and \
                 dots, {} at most",
                keyway_engine::limits::KEY_NAME_BYTES_MAX
            ),
            Error::Exists(name) => write!(f, "there is a key `{name}` already"),
            Error::NoSuchKey(name) => write!(f, "there is no key `{name}`"),
            Error::Busy(name) => {
                write!(f, "key `{name}` is just being made or destroyed; try again")
            }
            Error::Unsaved { name, why } => write!(
                f,
                "it is in force for key `{name}` as long as this daemon runs, and not on the disk, so that the next \
                 start would forget it: {why}; it is written within a minute once that works"
            ),
            Error::NotManaged => {
                f.write_str("only the daemon's own user and root look after its keys")
            }
            Error::NotAllowed(name) => write!(f, "key `{name}` is not allowed to this caller"),
            Error::Disabled { name, why } => write!(
                f,
                "key `{name}` is disabled: {why}; put the newest file there and start the daemon again, or \
                 take what is there: keyway key accept {name}"
            ),
            Error::Unusable(name) => write!(
                f,
                "key `{name}` cannot be used, since its file is damaged or not the newest; keyway key list \
                 shows its administrator more"
            ),
            Error::Revoked(name) => write!(f, "key `{name}` is revoked"),
            Error::NotRevoked(name) => {
                write!(f, "key `{name}` is in use; revoke it before it is deleted")
            }
            Error::Unfit(why) => f.write_str(why),
            Error::Material(why) => write!(f, "that is no key to import: {why}"),
            Error::Certificate(why) => write!(f, "those are no certificates for the key: {why}"),
            Error::Unwrap => f.write_str(
                "what was wrapped is not authentic, or was wrapped for another key or context",
            ),
            Error::Limit { of, most } => write!(f, "there may be at most {most} {of}"),
            Error::Engine(why) => why.fmt(f),
            Error::Token(why) => why.fmt(f),
            Error::Unwritten => f.write_str("it cannot be written down; nothing was changed"),
            Error::WrongMaster(folder) => write!(
                f,
                "{}: this is not the master key that the store was made with",
                folder.display()
            ),
            Error::Damaged { file, what } => write!(
                f,
                "{}: {what}; the file was left as it is: restore it from a backup, or move it away",
                file.display()
            ),
            Error::Exposed(path) => write!(
                f,
                "{}: others than this user may get at it; make this user its owner and take the others' \
                 rights (chmod go=)",
                path.display()
            ),
            Error::InUse(folder) => {
                write!(f, "{}: another process has the store open", folder.display())
            }
            Error::Tpm { tool, why } => write!(f, "the TPM: {tool}: {why}"),
            Error::System { doing, file, why } => {
                let file = file.display();
                match why.kind() {
                    ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                        write!(f, "cannot {doing} {file}: the disk is full; make room")
                    }
                    // The bare kind's own words are "entity not found".
                    ErrorKind::NotFound if why.get_ref().is_none() => {
                        write!(f, "cannot {doing} {file}: there is no such file")
                    }
                    _ => write!(f, "cannot {doing} {file}: {why}"),
                }
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Engine(why) => Some(why),
            Error::Token(why) => Some(why),
            Error::Unsaved { why, .. } => Some(&**why),
            Error::System { why, .. } => Some(why),
            _ => None,
        }
    }
}
