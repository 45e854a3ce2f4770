//! Opening a store: whose folder it is, its format, its first files.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use heed::types::Bytes;
use heed::{CommitOrAbort, MdbError};

use crate::limits::{MAP_BYTES_DEFAULT, MAP_BYTES_MIN, QUEUE_JOBS_MAX};
use crate::lmdb::{self, Environment, Table, Tables, Txn};
use crate::lock::Lock;
use crate::write::{META_FORMAT, META_INCARNATION};
use crate::{Error, OpenError};

/// The format this program reads and writes.
const FORMAT: u32 = 1;

const DATA: &str = "data.mdb";
const LMDB_LOCK: &str = "lock.mdb";
const LOCK: &str = "lock";
/// Lies in the folder while the store is being created or loaded in bulk.
const UNFINISHED: &str = "unfinished";
const CREATING: &[u8] = b"creating\n";
const LOADING: &[u8] = b"loading\n";

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// Address space for the data, in bytes: the store can grow to this. Halved while the system
    /// refuses it, at least to [`MAP_BYTES_MIN`].
    pub map_bytes_max: usize,
    /// Whether every commit reaches the disk before it is acknowledged. Off only for tests and for
    /// loading a fresh store in bulk: until such a store is closed in good order it will not open
    /// again ([`OpenError::Unfinished`]).
    pub sync: bool,
    /// Jobs that may wait for the committer.
    pub queue_jobs_max: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options { map_bytes_max: MAP_BYTES_DEFAULT, sync: true, queue_jobs_max: QUEUE_JOBS_MAX }
    }
}

/// What all handles of an open store share. Fields drop in order: the lock goes last.
pub(crate) struct Shared {
    pub env: Environment,
    pub tables: Tables,
    pub map_bytes: usize,
    pub incarnation: [u8; 16],
    dir: PathBuf,
    loading: bool,
    failed: Mutex<Option<String>>,
    _lock: Lock,
}

impl Shared {
    pub(crate) fn open(dir: &Path, options: &Options) -> Result<Shared, OpenError> {
        make_folder(dir)?;
        survey(dir)?;
        let lock = Lock::take(&dir.join(LOCK))?;
        restart_creation(dir)?;
        let fresh = !dir.join(DATA).exists();
        if fresh {
            mark_unfinished(dir, CREATING)?;
        }
        let (env, map_bytes) = open_environment(dir, options)?;
        if !fresh {
            check_format(&env)?;
        }
        let tables = lmdb::open_tables(&env).map_err(|e| refused("opening the tables", e))?;
        if fresh {
            sign(&env, &tables).map_err(|e| refused("creating the store", e))?;
            finish(dir)?;
        }
        if !options.sync {
            mark_unfinished(dir, LOADING)?;
        }
        let incarnation = incarnation(&env, &tables)?;
        Ok(Shared {
            env,
            tables,
            map_bytes,
            incarnation,
            dir: dir.to_owned(),
            loading: !options.sync,
            failed: Mutex::new(None),
            _lock: lock,
        })
    }

    /// Ends a bulk load: everything to the disk, then the mark goes. Nothing to do otherwise.
    pub(crate) fn close(&self) -> Result<(), Error> {
        if !self.loading || self.failure().is_some() {
            return Ok(());
        }
        self.env.force_sync().map_err(|e| self.error("syncing the store", e))?;
        finish(&self.dir).map_err(|e| Error::System {
            what: "ending the import",
            error: io::Error::other(e.to_string()).into(),
        })
    }

    pub(crate) fn error(&self, what: &'static str, error: heed::Error) -> Error {
        lmdb::error(what, self.map_bytes, error)
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
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stops the store; the first reason stays.
    pub(crate) fn fail(&self, why: String) {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
    }
}

/// Creates the folder if it is missing, for its owner alone; its parent has to exist.
fn make_folder(dir: &Path) -> Result<(), OpenError> {
    match DirBuilder::new().mode(0o700).create(dir) {
        Ok(()) => match dir.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => sync_folder(parent),
            _ => sync_folder(Path::new(".")),
        },
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(OpenError::system("creating the store's folder", error)),
    }
}

/// Refuses a folder that is not ours before anything is written to it.
fn survey(dir: &Path) -> Result<(), OpenError> {
    if Lock::is_signed(&dir.join(LOCK)) {
        return Ok(());
    }
    let reading = |e| OpenError::system("reading the store's folder", e);
    if let Some(found) = fs::read_dir(dir).map_err(reading)?.next() {
        let what = found.map_err(reading)?.file_name().to_string_lossy().into_owned();
        return Err(OpenError::NotOurs { what });
    }
    Ok(())
}

/// Deals with what an interrupted creation or load has left.
fn restart_creation(dir: &Path) -> Result<(), OpenError> {
    let mut mark = Vec::new();
    match File::open(dir.join(UNFINISHED)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(OpenError::system("opening the store", error)),
        Ok(mut file) => file
            .read_to_end(&mut mark)
            .map_err(|error| OpenError::system("opening the store", error))?,
    };
    if mark == LOADING {
        return Err(OpenError::Unfinished);
    }
    for name in [DATA, LMDB_LOCK] {
        match fs::remove_file(dir.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(OpenError::system("creating the store", error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Maps as much as is wanted, or the largest half, quarter, … of it that the system grants.
fn open_environment(dir: &Path, options: &Options) -> Result<(Environment, usize), OpenError> {
    const ALIGNMENT: usize = 1 << 20;
    let mut map_bytes = options.map_bytes_max.max(ALIGNMENT) / ALIGNMENT * ALIGNMENT;
    loop {
        match lmdb::open_environment(dir, map_bytes, options.sync) {
            Ok(env) => return Ok((env, map_bytes)),
            Err(heed::Error::Io(error))
                if error.kind() == io::ErrorKind::OutOfMemory && map_bytes / 2 >= MAP_BYTES_MIN =>
            {
                map_bytes = map_bytes / 2 / ALIGNMENT * ALIGNMENT;
            }
            Err(error) => return Err(refused("opening the store", error)),
        }
    }
}

fn check_format(env: &Environment) -> Result<(), OpenError> {
    let opening = |e| refused("opening the store", e);
    let txn = env.read_txn().map_err(opening)?;
    let meta: CommitOrAbort<_, ()> = env
        .open_databases_and_commit(txn, |opener, txn| {
            let meta = opener.open_database::<Bytes, Bytes>(txn, Some("meta"))?;
            Ok(CommitOrAbort::Commit(meta))
        })
        .map_err(opening)?;
    let Some(meta) = meta.unwrap_commit() else {
        return Err(OpenError::NotOurs { what: "data.mdb without our tables".into() });
    };
    let txn = env.read_txn().map_err(opening)?;
    let found = meta.get(&txn, META_FORMAT).map_err(opening)?;
    match found.and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes) {
        Some(FORMAT) => Ok(()),
        Some(found) => Err(OpenError::OtherVersion { found, ours: FORMAT }),
        None => Err(OpenError::Damaged { what: "its format row is missing".into() }),
    }
}

/// Writes the rows that make the tables a store.
fn sign(env: &Environment, tables: &Tables) -> Result<(), heed::Error> {
    let mut uuid = [0; 16];
    getrandom::fill(&mut uuid).map_err(io::Error::other)?;
    uuid[6] = uuid[6] & 0x0F | 0x40;
    uuid[8] = uuid[8] & 0x3F | 0x80;
    let mut txn = env.write_txn()?;
    tables.meta.put(&mut txn, META_INCARNATION, &uuid)?;
    tables.meta.put(&mut txn, META_FORMAT, &FORMAT.to_be_bytes())?;
    txn.commit()?;
    env.force_sync()
}

fn incarnation(env: &Environment, tables: &Tables) -> Result<[u8; 16], OpenError> {
    let opening = |e| refused("opening the store", e);
    let txn = env.read_txn().map_err(opening)?;
    let found = tables.meta.get(&txn, META_INCARNATION).map_err(opening)?;
    found
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or_else(|| OpenError::Damaged { what: "its incarnation row is missing".into() })
}

/// Leaves a durable mark that the store is not whole yet.
fn mark_unfinished(dir: &Path, mark: &[u8]) -> Result<(), OpenError> {
    let marking = |e| OpenError::system("marking the store as unfinished", e);
    let path = dir.join(UNFINISHED);
    fs::write(&path, mark).map_err(marking)?;
    File::open(&path).and_then(|file| file.sync_all()).map_err(marking)?;
    sync_folder(dir)
}

/// Takes the mark away, after the names of all files have reached the disk.
fn finish(dir: &Path) -> Result<(), OpenError> {
    sync_folder(dir)?;
    fs::remove_file(dir.join(UNFINISHED))
        .map_err(|e| OpenError::system("finishing the store", e))?;
    sync_folder(dir)
}

/// LMDB never does this, and without it a cut may take the file itself.
fn sync_folder(dir: &Path) -> Result<(), OpenError> {
    File::open(dir)
        .and_then(|folder| folder.sync_all())
        .map_err(|e| OpenError::system("syncing a folder", e))
}

fn refused(what: &'static str, error: heed::Error) -> OpenError {
    match error {
        heed::Error::Io(error) => OpenError::system(what, error),
        heed::Error::EnvAlreadyOpened => OpenError::Locked { pid: std::process::id() },
        heed::Error::Mdb(MdbError::VersionMismatch) => {
            OpenError::NotOurs { what: "a data file of another LMDB".into() }
        }
        heed::Error::Mdb(
            found @ (MdbError::Invalid | MdbError::Corrupted | MdbError::PageNotFound),
        ) => OpenError::Damaged { what: found.to_string() },
        other => OpenError::System { what, error: io::Error::other(other.to_string()) },
    }
}
