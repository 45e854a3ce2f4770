//! The state that all handles of an open store share.

use keyway_lock::Unpoisoned;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf, absolute};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::disk::{self, DATA};
use crate::idle::IdleReads;
use crate::limits::IDLE_READS_MAX;
use crate::lmdb::{self, Environment, Table, Tables, Txn};
use crate::lock::Lock;
use crate::posting::Lists;
use crate::values::ValueTable;
use crate::{Append, Error, OpenError};

/// Hears of positions that are on the disk, and whether each is another store's that was applied.
pub(crate) type Heard = Arc<dyn Fn(u64, bool) + Send + Sync>;
pub(crate) type Confirms = Arc<dyn Fn() -> Result<(), Error> + Send + Sync>;

/// Fields drop in order: the lock goes last.
pub(crate) struct Shared {
    pub idle: IdleReads,
    pub env: Environment,
    pub tables: Tables,
    pub map_bytes: usize,
    pub incarnation: [u8; 16],
    dir: PathBuf,
    /// The data file as the caller named it, and which file that was when it was opened: device and number.
    data: (PathBuf, (u64, u64)),
    /// Commits do not sync; the folder carries the mark of a bulk load.
    loading: bool,
    /// Changes go into the feed, with the value of this attribute.
    pub feed: Option<Option<&'static str>>,
    /// It makes no changes of its own.
    following: AtomicBool,
    /// Takes each commit before the disk does.
    append: Mutex<Option<Arc<dyn Append>>>,
    /// Hears of each position that is on the disk.
    heard: Mutex<Option<Heard>>,
    confirms: Mutex<Option<Confirms>>,
    failed: Mutex<Option<String>>,
    /// Why the last commit was refused, if it was.
    refused: Mutex<Option<Error>>,
    /// LMDB's lock file, once its table of readers was looked at. It stays open for as long as the
    /// environment is: closing a file drops all of the process's POSIX locks on it, LMDB's too.
    pub reader_table: Mutex<Option<File>>,
    /// None where it is only read.
    _lock: Option<Lock>,
}

/// The result of opening.
pub(crate) struct Opened {
    pub env: Environment,
    pub tables: Tables,
    pub map_bytes: usize,
    pub incarnation: [u8; 16],
    pub loading: bool,
    pub feed: Option<Option<&'static str>>,
}

impl Shared {
    /// # Errors
    /// If the data file is not there any more.
    pub(crate) fn new(dir: &Path, opened: Opened, lock: Option<Lock>) -> io::Result<Shared> {
        let Opened { env, tables, map_bytes, incarnation, loading, feed } = opened;
        let path = absolute(dir)?.join(DATA);
        let data = (path.clone(), file_at(&path)?);
        let dir = env.path().to_owned();
        let (failed, refused, reader_table) =
            (Mutex::new(None), Mutex::new(None), Mutex::new(None));
        // Nothing says here when another process commits.
        let idle = IdleReads::new(if lock.is_some() { IDLE_READS_MAX } else { 0 });
        Ok(Shared {
            idle,
            env,
            tables,
            map_bytes,
            incarnation,
            dir,
            data,
            loading,
            feed,
            following: AtomicBool::new(false),
            append: Mutex::new(None),
            heard: Mutex::new(None),
            confirms: Mutex::new(None),
            failed,
            refused,
            reader_table,
            _lock: lock,
        })
    }

    /// Whether the data file that is open is still the one in the folder. Commits to another one are lost
    /// for the next process that opens the store.
    ///
    /// # Errors
    /// [`Error::Displaced`], if it is not; the system's, if it does not say.
    pub(crate) fn is_in_place(&self) -> Result<(), Error> {
        let (path, opened) = &self.data;
        match file_at(path) {
            Ok(found) if found == *opened => Ok(()),
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::system("looking at the data file", error))
            }
            _ => Err(Error::Displaced { path: path.clone() }),
        }
    }

    pub(crate) fn is_following(&self) -> bool {
        self.following.load(Ordering::Acquire)
    }

    pub(crate) fn follow(&self, follows: bool) {
        self.following.store(follows, Ordering::Release);
    }

    pub(crate) fn append(&self) -> Option<Arc<dyn Append>> {
        self.append.lock().unpoisoned().clone()
    }

    pub(crate) fn append_to(&self, append: Option<Arc<dyn Append>>) {
        *self.append.lock().unpoisoned() = append;
    }

    pub(crate) fn confirm_by(&self, confirms: Confirms) {
        *self.confirms.lock().unpoisoned() = Some(confirms);
    }

    /// Whether a commit of the store's own that is on the disk may be answered.
    pub(crate) fn confirm(&self) -> Result<(), Error> {
        let confirms = self.confirms.lock().unpoisoned().clone();
        confirms.map_or(Ok(()), |confirms| confirms())
    }

    pub(crate) fn tell(&self, heard: Heard) {
        *self.heard.lock().unpoisoned() = Some(heard);
    }

    /// Says that a position is on the disk.
    pub(crate) fn say(&self, position: u64, is_applied: bool) {
        let heard = self.heard.lock().unpoisoned().clone();
        heard.iter().for_each(|heard| heard(position, is_applied));
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Ends a bulk load: everything to the disk, then the mark goes. Nothing to do otherwise.
    pub(crate) fn finish_loading(&self) -> Result<(), Error> {
        if !self.loading || self.failure().is_some() {
            return Ok(());
        }
        self.env.force_sync().map_err(|e| self.error("syncing the store", e))?;
        match disk::unmark(&self.dir) {
            Ok(()) => Ok(()),
            Err(OpenError::System { what, error }) => Err(Error::system(what, error)),
            Err(other) => Err(Error::system("ending the load", std::io::Error::other(other))),
        }
    }

    /// The meaning of LMDB's error.
    pub(crate) fn error(&self, what: &'static str, error: heed::Error) -> Error {
        lmdb::error(what, self.map_bytes, error)
    }

    /// The meaning of LMDB's error on writing about so many bytes.
    ///
    /// LMDB calls a write that the disk took in part an I/O error; on a full disk it is not one.
    pub(crate) fn write_error(
        &self,
        what: &'static str,
        error: heed::Error,
        bytes: usize,
    ) -> Error {
        const EIO: i32 = rustix::io::Errno::IO.raw_os_error();
        if matches!(&error, heed::Error::Io(error) if error.raw_os_error() == Some(EIO)) {
            let data_bytes = self.env.real_disk_size().unwrap_or(0);
            if !disk::has_space(&self.dir, data_bytes, bytes as u64) {
                return Error::DiskFull;
            }
        }
        self.error(what, error)
    }

    pub(crate) fn lists(&self) -> Lists {
        Lists { table: self.tables.posting, map_bytes: self.map_bytes }
    }

    /// The values of large attributes.
    pub(crate) fn values(&self) -> Result<ValueTable, Error> {
        let missing = || Error::damaged("the table of values is missing");
        let table = self.tables.value.ok_or_else(missing)?;
        Ok(ValueTable { table, map_bytes: self.map_bytes })
    }

    pub(crate) fn get<'t>(
        &self,
        table: Table<'static>,
        txn: &'t Txn<'_>,
        row: &[u8],
    ) -> Result<Option<&'t [u8]>, Error> {
        table.get(txn, row).map_err(|e| self.error("reading the store", e))
    }

    /// Why the store takes no more changes, if it does not.
    pub(crate) fn failure(&self) -> Option<String> {
        self.failed.lock().unpoisoned().clone()
    }

    /// Notes what has become of a commit.
    pub(crate) fn note_commit(&self, committed: &Result<(), Error>) {
        *self.refused.lock().unpoisoned() = committed.clone().err();
    }

    pub(crate) fn refusal(&self) -> Option<Error> {
        self.refused.lock().unpoisoned().clone()
    }

    /// Stops the store; the first reason stays.
    pub(crate) fn fail(&self, why: &Error) {
        let mut failed = self.failed.lock().unpoisoned();
        failed.get_or_insert_with(|| why.to_string());
    }

    /// Whether LMDB itself has given up the environment: a page that says which state is the last
    /// could not be written. To be asked outside of a change.
    pub(crate) fn is_given_up(&self) -> bool {
        self.env.write_txn().map(heed::RwTxn::abort).is_err()
    }
}

/// Which file is at a path: device and number.
fn file_at(path: &Path) -> io::Result<(u64, u64)> {
    let file = fs::metadata(path)?;
    Ok((file.dev(), file.ino()))
}
