//! Errors of the store, and the party at fault.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::EntryId;
use crate::limits::{DEPTH_LEVELS_MAX, READERS_MAX};

/// Why an operation on an open store did not happen.
///
/// Cloned to every member of a commit group that fails.
#[derive(Clone, Debug)]
pub enum Error {
    /// A limit: the committer's queue is full. Try again when earlier changes have been answered.
    Busy,
    /// A limit: as many read transactions are open as there may be.
    TooManyReaders,
    /// The caller: an entry with this parent and component exists already.
    Exists,
    /// The caller: the entry, or the name it is said to have, is not there.
    NotFound,
    /// The caller: the entry has children.
    HasChildren,
    /// The caller: the new parent lies in the subtree that is to move.
    WouldLoop,
    /// A limit: the entry would lie too deep.
    TooDeep,
    /// A limit: the encoded entry is too large.
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// The caller: a name for `meta_put` is empty or too long.
    BadMetaName,
    /// The system: no room on the disk. Nothing was changed; changes work again when there is room.
    DiskFull,
    /// A limit: the address space reserved when the store was opened is used up.
    MapFull {
        /// The size that was reserved.
        map_bytes: usize,
    },
    /// The disk: stored bytes are not what was written.
    Damaged {
        /// Where, as far as it is known.
        what: String,
        /// The entry, if they are those of one: see [`View::dn_in_tree`](crate::View::dn_in_tree).
        entry: Option<EntryId>,
    },
    /// The caller: the feed does not have what comes next behind this position any more. It has to take the whole
    /// state anew.
    FeedTrimmed {
        /// The position that was named.
        position: u64,
        /// The first one that is kept.
        first: u64,
    },
    /// The caller: the feed has not come to this position. It is another store's, or that of a state that this
    /// store was in before it was restored.
    FeedAhead {
        /// The position that was named.
        position: u64,
        /// The last one.
        last: u64,
    },
    /// The caller: a row of another feed is not the next one of this history.
    NotNext {
        /// The row's position.
        position: u64,
        /// The last position of this store.
        last: u64,
    },
    /// The caller: the store makes the changes of another one again, and none of its own: see
    /// [`Store::follow`](crate::Store::follow).
    Following,
    /// The disk, or a fault of a program: this store and the one whose changes it has made again hold different entries.
    ContentsDiffer,
    /// The caller's [`Append`](crate::Append) has not taken the commit; nothing was changed.
    NotAppended {
        /// Its words.
        why: String,
    },
    /// What the caller has [`Store::confirm_by`](crate::Store::confirm_by) has not confirmed the commit, which is made.
    NotConfirmed {
        /// Its words.
        why: String,
    },
    /// The caller's [`Append`](crate::Append) takes no commit of this size; nothing was changed.
    TooLargeToAppend {
        /// Its words.
        why: String,
    },
    /// The caller: the job panicked; its changes were undone.
    JobPanicked,
    /// The store has stopped taking changes, because an earlier commit failed in a way after which
    /// nothing can be promised. It has to be opened again.
    Failed {
        /// The first error.
        why: String,
    },
    /// The caller: another process has moved, removed or replaced the data file of an open store.
    /// Committed changes are in the file that is open, and not in the folder.
    Displaced {
        /// Where it was.
        path: PathBuf,
    },
    /// The system refused something.
    System {
        /// The action that was attempted.
        what: &'static str,
        /// The system's answer.
        error: Arc<io::Error>,
    },
}

impl Error {
    pub(crate) fn system(what: &'static str, error: io::Error) -> Error {
        if is_disk_full(&error) {
            return Error::DiskFull;
        }
        Error::System { what, error: Arc::new(error) }
    }

    pub(crate) fn closed() -> Error {
        Error::Failed { why: "it was closed".into() }
    }

    pub(crate) fn damaged(what: impl Into<String>) -> Error {
        Error::Damaged { what: what.into(), entry: None }
    }

    /// That an entry's own bytes are not what was written.
    pub(crate) fn damaged_entry(entry: EntryId, what: impl Into<String>) -> Error {
        Error::Damaged { what: what.into(), entry: Some(entry) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Busy => f.write_str("the store's queue of changes is full; try again"),
            Error::TooManyReaders => {
                write!(f, "more than {READERS_MAX} read transactions are open; try again")
            }
            Error::Exists => f.write_str("an entry of this name exists"),
            Error::NotFound => f.write_str("there is no such entry"),
            Error::HasChildren => f.write_str("the entry has children"),
            Error::WouldLoop => f.write_str("an entry cannot move below itself"),
            Error::TooDeep => write!(f, "the name has more than {DEPTH_LEVELS_MAX} levels"),
            Error::TooLarge { bytes, bytes_max } => {
                write!(f, "the entry has {bytes} bytes; the limit is {bytes_max}")
            }
            Error::BadMetaName => f.write_str("the name of a meta row is empty or too long"),
            Error::DiskFull => {
                f.write_str("the disk is full, so this was not done; make room and try again")
            }
            Error::MapFull { map_bytes } => write!(
                f,
                "the store is full: it was opened for {map_bytes} bytes, which is store_bytes_max \
                 in keyway.toml or what the system granted of it; raise it and start again"
            ),
            Error::Damaged { what, .. } => write!(f, "the store is damaged: {what}"),
            Error::FeedTrimmed { position, first } => write!(
                f,
                "the changes behind position {position} are not kept any more: the feed begins with \
                 position {first}"
            ),
            Error::FeedAhead { position, last } => write!(
                f,
                "there is no position {position}: the last one is {last}; a reader that has seen it has read \
                 another store, or this one before it was restored"
            ),
            Error::NotNext { position, last } => write!(
                f,
                "position {position} of the feed is not what came after position {last} of this store: it is of \
                 another history"
            ),
            Error::Following => {
                f.write_str("this store follows another one, and takes no changes of its own")
            }
            Error::ContentsDiffer => {
                f.write_str("the entries are not those of the store that is followed")
            }
            Error::NotAppended { why }
            | Error::NotConfirmed { why }
            | Error::TooLargeToAppend { why } => f.write_str(why),
            Error::JobPanicked => f.write_str("the change failed by a fault of the program"),
            Error::Displaced { path } => write!(
                f,
                "{} was moved, removed or replaced while it was open: put back the file that has \
                 what was acknowledged before that",
                path.display()
            ),
            Error::Failed { why } => {
                write!(f, "the store takes no changes until it is opened again: {why}")
            }
            Error::System { what, error } => write!(f, "{what}: {error}"),
        }
    }
}

impl std::error::Error for Error {}

/// Why a store could not be opened.
#[derive(Debug)]
pub enum OpenError {
    /// The caller: the folder holds something else.
    NotOurs {
        /// The content that was found there.
        what: String,
    },
    /// The caller: written by another version of this program.
    OtherVersion {
        /// The format found.
        found: u32,
        /// The format this program reads and writes.
        ours: u32,
    },
    /// The caller: another process has it open.
    Locked {
        /// Its process id, 0 if it could not be told.
        pid: u32,
    },
    /// The caller: a tool of another version of LMDB has it open.
    InOtherHands,
    /// The caller: the folder or a file in it cannot be written.
    NotWritable {
        /// The system's answer.
        error: io::Error,
    },
    /// The caller: the folder is on a disk of another machine.
    Network {
        /// Its file system.
        kind: &'static str,
    },
    /// The system: no room to create it.
    DiskFull,
    /// The disk, or a bulk load that did not end: the files cannot be trusted.
    Damaged {
        /// The fault.
        what: String,
    },
    /// The caller: a bulk load (`Options::sync` off) was interrupted; the store it left is not
    /// whole.
    Unfinished,
    /// The caller: the store that has to be there is not.
    Missing,
    /// The caller: there is a store, and not the one that has to be there.
    Another {
        /// Which it is.
        found: [u8; 16],
    },
    /// The system refused something else.
    System {
        /// The action that was attempted.
        what: &'static str,
        /// The system's answer.
        error: io::Error,
    },
}

impl OpenError {
    pub(crate) fn system(what: &'static str, error: io::Error) -> OpenError {
        if is_disk_full(&error) {
            return OpenError::DiskFull;
        }
        match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                OpenError::NotWritable { error }
            }
            _ => OpenError::System { what, error },
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::NotOurs { what } => {
                write!(f, "the folder holds something that is not a store: {what}")
            }
            OpenError::OtherVersion { found, ours } => write!(
                f,
                "the store has format {found}; this program reads and writes format {ours}"
            ),
            OpenError::Locked { pid: 0 } => f.write_str("another process has the store open"),
            OpenError::Locked { pid } => {
                write!(f, "the process {pid} has the store open; stop it first")
            }
            OpenError::InOtherHands => f.write_str(
                "a tool of another version of LMDB (mdb_stat, mdb_copy) has the store open; start \
                 again when it has ended",
            ),
            OpenError::NotWritable { error } => write!(f, "the store cannot be written: {error}"),
            OpenError::Network { kind } => write!(
                f,
                "the folder is on {kind}, a file system of another machine, on which locks and mapped memory do not \
                 hold; move it to a local disk"
            ),
            OpenError::DiskFull => f.write_str("the disk is full; make room and try again"),
            OpenError::Damaged { what } => {
                write!(f, "the store is damaged: {what}; restore it from a backup")
            }
            OpenError::Unfinished => f.write_str(
                "an import into this store was interrupted; remove its folder and import again",
            ),
            OpenError::Missing => f.write_str("the store is gone"),
            OpenError::Another { .. } => f.write_str("it is another store than this folder's"),
            OpenError::System { what, error } => write!(f, "{what}: {error}"),
        }
    }
}

impl std::error::Error for OpenError {}

/// The answers of the system that mean "no room": full, over quota, over the file size limit.
pub(crate) fn is_disk_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}
