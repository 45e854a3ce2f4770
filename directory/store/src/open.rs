//! Opening a store: whose folder it is, its format, its first files.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use heed::types::Bytes;
use heed::{CommitOrAbort, MdbError};

use crate::disk::{self, DATA, LMDB_LOCK, LOCK, LOST_AND_FOUND, Mark, NAMES};
use crate::feed::{FIRST_OF_A_NEW_STORE, head_row};
use crate::format::{
    FORMAT_FIRST, FORMAT_WITH_FEED, FORMAT_WITH_LARGE, META_FEED, META_FORMAT, META_INCARNATION,
};
use crate::limits::{MAP_BYTES_DEFAULT, MAP_BYTES_MIN, QUEUE_JOBS_MAX};
use crate::lmdb::{self, Access, Environment, Tables};
use crate::lock::Lock;
use crate::shared::{Opened, Shared};
use crate::{OpenError, header, precheck};

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// Address space for the data, in bytes: the store can grow to this. Halved while the system
    /// refuses it, at least to [`MAP_BYTES_MIN`].
    pub map_bytes_max: usize,
    /// Whether every commit reaches the disk before it is acknowledged. Off only for tests and for
    /// loading a fresh store in bulk: a store that was opened so, and was not closed in good order,
    /// is lost and does not open again ([`OpenError::Unfinished`]).
    pub sync: bool,
    /// Jobs that may wait for the committer.
    pub queue_jobs_max: usize,
    /// Whether this process locks all memory that it will use (`mlockall`): the map is left out
    /// then.
    pub locked_memory: bool,
    /// The store that has to be there, by its [`Store::incarnation`](crate::Store::incarnation). None is made
    /// in its place then, and another one is refused.
    pub expected: Option<[u8; 16]>,
    /// Whether changes are put into the feed ([`FeedRow`](crate::FeedRow)). A change that is made without it
    /// takes all that the feed has along.
    pub feed: bool,
    /// The attribute whose first value says in the feed which entry was changed, also in the eyes of another store.
    pub identity: Option<&'static str>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            map_bytes_max: MAP_BYTES_DEFAULT,
            sync: true,
            queue_jobs_max: QUEUE_JOBS_MAX,
            locked_memory: false,
            expected: None,
            feed: true,
            identity: None,
        }
    }
}

pub(crate) fn open(dir: &Path, options: &Options) -> Result<Shared, OpenError> {
    if options.expected.is_some() {
        // Before anything is made that would look like a store.
        expect_data(dir)?;
    }
    make_folder(dir)?;
    refuse_unfit(dir)?;
    survey(dir)?;
    let lock = Lock::take(&dir.join(LOCK))?;
    let fresh = is_fresh(dir)?;
    if fresh {
        // The folder's own name; the process that made it may have died before it was on the disk.
        disk::sync_folder(dir.parent().unwrap_or(Path::new(".")))?;
        disk::mark(dir, Mark::Creating)?;
        // LMDB takes an empty file for a new one.
        disk::create(&dir.join(DATA)).map_err(|e| OpenError::system("creating the store", e))?;
    } else {
        precheck::check(&dir.join(DATA))?;
    }
    // LMDB maps its lock file and writes to it, and would make it sparse. Nothing but LMDB may open
    // the file from here on: closing it a second time would drop this process's locks on it (POSIX
    // fcntl), and the next tool that looks at the store would make its mutexes anew.
    disk::allocate(&dir.join(LMDB_LOCK), lmdb::LOCK_BYTES)
        .map_err(|e| OpenError::system("making room for the lock file", e))?;
    let access = if options.sync { Access::Durable } else { Access::Loading };
    let map = || map_environment(dir, options, access);
    let (env, map_bytes) =
        if options.locked_memory { lmdb::beside_locked_memory(map)? } else { map()? };
    if !fresh {
        check_format(&env)?;
    }
    let tables = lmdb::open_tables(&env).map_err(|e| refused("opening the tables", e))?;
    if fresh {
        sign(&env, &tables, options.feed).map_err(|e| refused("creating the store", e))?;
        disk::unmark(dir)?;
    }
    // Slots of readers that were killed would keep free pages from being used.
    env.clear_stale_readers().map_err(|e| refused("opening the store", e))?;
    let incarnation = incarnation(&env, &tables)?;
    if options.expected.is_some_and(|expected| expected != incarnation) {
        return Err(OpenError::Another { found: incarnation });
    }
    let (loading, feed) = (!options.sync, options.feed.then_some(options.identity));
    let opened = Opened { env, tables, map_bytes, incarnation, loading, feed };
    let shared = Shared::new(dir, opened, Some(lock))
        .map_err(|e| OpenError::system("looking at the data file", e))?;
    if !options.sync {
        disk::mark(dir, Mark::Loading)?;
    }
    Ok(shared)
}

/// Opens a store to read it only, also while another process has it open.
///
/// The data file is not checked first: a process that has it open has done that.
pub(crate) fn open_to_read(dir: &Path, options: &Options) -> Result<Shared, OpenError> {
    refuse_unfit(dir)?;
    survey(dir)?;
    if disk::marked(dir)?.is_some() {
        return Err(OpenError::Unfinished);
    }
    // If no process has it open LMDB would make the file as the reader's. If this fails, so will that.
    let lock = dir.join(LMDB_LOCK);
    if !lock.exists() {
        let _ = disk::create(&lock);
    }
    let (env, map_bytes) = map_environment(dir, options, Access::Reading)?;
    check_format(&env)?;
    let tables = lmdb::find_tables(&env).map_err(|e| refused("opening the tables", e))?;
    let tables = tables.ok_or_else(|| OpenError::Damaged { what: "a table is missing".into() })?;
    let incarnation = incarnation(&env, &tables)?;
    let opened = Opened { env, tables, map_bytes, incarnation, loading: false, feed: None };
    Shared::new(dir, opened, None).map_err(|e| OpenError::system("looking at the data file", e))
}

/// Refuses a folder without a data file, or with one whose creation was never finished.
fn expect_data(dir: &Path) -> Result<(), OpenError> {
    let is_there = dir.join(DATA).try_exists();
    match is_there.map_err(|e| OpenError::system("opening the store", e))? {
        true if disk::marked(dir)? != Some(Mark::Creating) => Ok(()),
        _ => Err(OpenError::Missing),
    }
}

/// Creates the folder if it is missing, for its owner alone; its parent has to exist.
fn make_folder(dir: &Path) -> Result<(), OpenError> {
    let made = match DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made.and_then(|()| disk::keep_owner(dir)),
    };
    made.map_err(|error| OpenError::system("creating the store's folder", error))
}

/// Refuses a folder on a disk of another machine, and what is no file in the data file's place: a pipe would be waited
/// for.
fn refuse_unfit(dir: &Path) -> Result<(), OpenError> {
    if fs::metadata(dir.join(DATA)).is_ok_and(|found| !found.is_file()) {
        return Err(OpenError::NotOurs { what: format!("{DATA}, which is no file") });
    }
    let found = disk::network_file_system(dir);
    match found.map_err(|e| OpenError::system("looking at the file system", e))? {
        None => Ok(()),
        Some(kind) => Err(OpenError::Network { kind }),
    }
}

/// Refuses a folder that is not ours before anything is written to it.
fn survey(dir: &Path) -> Result<(), OpenError> {
    if Lock::is_signed(&dir.join(LOCK)) {
        return Ok(());
    }
    let mut others = Vec::new();
    let reading = |e| OpenError::system("reading the store's folder", e);
    for found in fs::read_dir(dir).map_err(reading)? {
        let name = found.map_err(reading)?.file_name();
        // Our own, from a process that died before it had signed it; and that of a disk which has only the store.
        if name != LOCK && name != LOST_AND_FOUND {
            others.push(name.to_string_lossy().into_owned());
        }
    }
    // A cut of power can take the signature of a store that an earlier version of this program made. The
    // content of the other files tells as well whose they are.
    let foreign = others.iter().find(|name| !NAMES.contains(&name.as_str()));
    match foreign.or(others.first()) {
        Some(what) if foreign.is_some() || !holds_our_data(dir)? => {
            Err(OpenError::NotOurs { what: what.clone() })
        }
        _ => Ok(()),
    }
}

/// Whether a folder without our signature has our tables in it, or was about to get them.
fn holds_our_data(dir: &Path) -> Result<bool, OpenError> {
    if disk::has_mark(dir) {
        return Ok(true);
    }
    let mut tables = lmdb::TABLES.map(str::as_bytes).to_vec();
    tables.sort_unstable();
    let found = header::tables(&dir.join(DATA))
        .map_err(|e| OpenError::system("reading the store's data file", e))?;
    let Some(found) = found else { return Ok(false) };
    let mut is_whole = found == tables;
    // Earlier versions did not make these tables.
    for later in [lmdb::FEED, lmdb::VALUE] {
        tables.retain(|name| *name != later.as_bytes());
        is_whole |= found == tables;
    }
    Ok(is_whole)
}

/// Whether there is a store of ours in `dir`, whatever state it is in. Changes nothing.
pub(crate) fn is_ours(dir: &Path) -> bool {
    Lock::is_signed(&dir.join(LOCK)) || dir.join(DATA).exists() && survey(dir).is_ok()
}

/// Whether the store is still to be created; the remains of an interrupted creation are removed.
fn is_fresh(dir: &Path) -> Result<bool, OpenError> {
    match disk::marked(dir)? {
        Some(Mark::Loading) => return Err(OpenError::Unfinished),
        Some(Mark::Creating) => {
            for name in [DATA, LMDB_LOCK] {
                disk::remove(&dir.join(name))
                    .map_err(|e| OpenError::system("creating the store", e))?;
            }
        }
        None => {}
    }
    dir.join(DATA)
        .try_exists()
        .map(|exists| !exists)
        .map_err(|e| OpenError::system("opening the store", e))
}

/// Maps as much as is wanted, or the largest half, quarter, … of it that the system grants.
pub(crate) fn map_environment(
    dir: &Path,
    options: &Options,
    access: Access,
) -> Result<(Environment, usize), OpenError> {
    const ALIGNMENT: usize = 1 << 20;
    let mut map_bytes = options.map_bytes_max.max(ALIGNMENT) / ALIGNMENT * ALIGNMENT;
    loop {
        match lmdb::open_environment(dir, map_bytes, access) {
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

pub(crate) fn check_format(env: &Environment) -> Result<(), OpenError> {
    let opening = |e| refused("opening the store", e);
    let txn = env.read_txn().map_err(opening)?;
    let meta: CommitOrAbort<_, ()> = env
        .open_databases_and_commit(txn, |opener, txn| {
            let meta = opener.open_database::<Bytes, Bytes>(txn, Some(lmdb::META))?;
            Ok(CommitOrAbort::Commit(meta))
        })
        .map_err(opening)?;
    let Some(meta) = meta.unwrap_commit() else {
        return Err(OpenError::NotOurs { what: "a data file without our tables".into() });
    };
    let txn = env.read_txn().map_err(opening)?;
    let found = meta.get(&txn, META_FORMAT).map_err(opening)?;
    match found.and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes) {
        Some(FORMAT_FIRST | FORMAT_WITH_LARGE | FORMAT_WITH_FEED) => Ok(()),
        Some(found) => Err(OpenError::OtherVersion { found, ours: FORMAT_WITH_FEED }),
        None => Err(OpenError::Damaged { what: "its format row is missing".into() }),
    }
}

/// A random UUID (RFC 9562 § 5.4).
pub(crate) fn new_incarnation() -> io::Result<[u8; 16]> {
    let mut uuid = [0; 16];
    getrandom::fill(&mut uuid).map_err(io::Error::other)?;
    uuid[6] = uuid[6] & 0x0F | 0x40;
    uuid[8] = uuid[8] & 0x3F | 0x80;
    Ok(uuid)
}

/// Writes the rows that make the tables a store.
fn sign(env: &Environment, tables: &Tables, feed: bool) -> Result<(), heed::Error> {
    let mut txn = env.write_txn()?;
    tables.meta.put(&mut txn, META_INCARNATION, &new_incarnation()?)?;
    let format = if feed { FORMAT_WITH_FEED } else { FORMAT_FIRST };
    tables.meta.put(&mut txn, META_FORMAT, &format.to_be_bytes())?;
    if feed {
        tables.meta.put(&mut txn, META_FEED, &head_row(&FIRST_OF_A_NEW_STORE))?;
    }
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

pub(crate) fn refused(what: &'static str, error: heed::Error) -> OpenError {
    match error {
        heed::Error::Io(error) => OpenError::system(what, error),
        heed::Error::EnvAlreadyOpened => OpenError::Locked { pid: std::process::id() },
        // The data file's version was looked at before, so it is the lock file's.
        heed::Error::Mdb(MdbError::VersionMismatch) => OpenError::InOtherHands,
        heed::Error::Mdb(
            found @ (MdbError::Invalid | MdbError::Corrupted | MdbError::PageNotFound),
        ) => OpenError::Damaged { what: found.to_string() },
        other => OpenError::System { what, error: io::Error::other(other.to_string()) },
    }
}
