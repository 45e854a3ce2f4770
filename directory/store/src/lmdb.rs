//! The LMDB environment and its tables.

use heed::types::Bytes;
use heed::{AnyTls, CommitOrAbort, Database, Env, EnvOpenOptions, MdbError, RoTxn, WithoutTls};
use rustix::mm::{MlockAllFlags, mlockall};
use std::io;
use std::path::Path;

use crate::Error;
use crate::limits::READERS_MAX;

/// A table of byte strings.
pub(crate) type Table<'t> = Database<'t, Bytes, Bytes>;

/// The transaction of every read: a read transaction, or the reading side of a write.
pub(crate) type Txn<'e> = RoTxn<'e, AnyTls>;

/// The environment; its read transactions may move between threads.
pub(crate) type Environment = Env<WithoutTls>;

/// The tables of the one environment.
#[derive(Clone, Copy)]
pub(crate) struct Tables {
    /// Name → value; the store's own rows and those of the caller.
    pub meta: Table<'static>,
    /// Entry id → record.
    pub entry: Table<'static>,
    /// Parent id, component → entry id.
    pub tree: Table<'static>,
    /// Posting key, entry id → nothing.
    pub posting: Table<'static>,
    /// Entry id → how many children it has; no row for none.
    pub children: Table<'static>,
    /// Entry id, slot, key → values of a large attribute. A store that is only read, and was last
    /// written by a program that did not know of them, has none.
    pub value: Option<Table<'static>>,
    /// Position → the changes of a commit. As with `value`, a store that is only read may have none.
    pub feed: Option<Table<'static>>,
}

impl Tables {
    pub(crate) fn all(self) -> impl Iterator<Item = Table<'static>> {
        let always = [self.meta, self.entry, self.tree, self.posting, self.children];
        always.into_iter().chain(self.value).chain(self.feed)
    }
}

/// The table that says what the file is.
pub(crate) const META: &str = "meta";

/// Length of LMDB's lock file: a header of two cache lines and one for each reader. Where a
/// system's mutexes are larger, LMDB makes the file longer within its last block.
pub(crate) const LOCK_BYTES: u64 = 2 * 64 + READERS_BYTES;

/// The bytes of each of its readers, and all of them at its end.
pub(crate) const READER_BYTES: usize = 64;
pub(crate) const READERS_BYTES: u64 = READERS_MAX as u64 * READER_BYTES as u64;

/// All tables.
pub(crate) const TABLES: [&str; 7] = [META, "entry", "tree", "posting", "children", VALUE, FEED];

/// The table of the values of large attributes, which came after the others.
pub(crate) const VALUE: &str = "value";

/// The table of the feed, which came after that.
pub(crate) const FEED: &str = "feed";

/// The purpose of an open environment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Commits that reach the disk before they are acknowledged.
    Durable,
    /// Commits that reach it some time.
    Loading,
    /// None.
    Reading,
}

/// Opens the environment in `dir`, creating its files when there are none.
///
/// The caller holds the store's lock file, so that no other process has these files open, or only
/// reads.
#[allow(unsafe_code)]
pub(crate) fn open_environment(
    dir: &Path,
    map_bytes: usize,
    access: Access,
) -> Result<Environment, heed::Error> {
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.map_size(map_bytes).max_dbs(TABLES.len() as u32).max_readers(READERS_MAX);
    let flags = match access {
        Access::Durable => heed::EnvFlags::empty(),
        Access::Loading => heed::EnvFlags::NO_SYNC,
        Access::Reading => heed::EnvFlags::READ_ONLY,
    };
    // SAFETY: NO_SYNC weakens durability only. A store opened so carries a mark that refuses it
    // until it was closed in good order. READ_ONLY lets nothing be written.
    unsafe { options.flags(flags) };
    // SAFETY: the files are mapped, so no other program may change them: the store's lock file keeps
    // other stores out, heed refuses a second environment in this process, and the folder's files are
    // created for their owner alone. A process that only reads is beside the one store that writes,
    // which through LMDB's own lock file leaves alone the pages that a reader sees. The heads and the
    // tree of pages were checked (all but the leaves of a large store), and the file is as long as they
    // say, so that no page lies beyond its end.
    unsafe { options.open(dir) }
}

/// Calls what maps a file in a process that locks its memory, so that the file's pages stay the
/// system's to keep or to drop.
pub(crate) fn beside_locked_memory<R>(map: impl FnOnce() -> R) -> R {
    // Locked memory stays locked; later memory is not. A refusal leaves more locked than need be.
    let _ = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::ONFAULT);
    let result = map();
    let _ = mlockall(MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT);
    result
}

/// Opens the tables; creates those that are missing.
pub(crate) fn open_tables(env: &Environment) -> Result<Tables, heed::Error> {
    let txn = env.write_txn()?;
    let tables: CommitOrAbort<[Table<'static>; 7], ()> =
        env.create_databases_and_commit(txn, |opener, txn| {
            let [a, b, c, d, e, f, g] = TABLES;
            let open = |name, txn: &mut _| opener.create_database::<Bytes, Bytes>(txn, Some(name));
            Ok::<_, heed::Error>(CommitOrAbort::Commit([
                open(a, &mut *txn)?,
                open(b, &mut *txn)?,
                open(c, &mut *txn)?,
                open(d, &mut *txn)?,
                open(e, &mut *txn)?,
                open(f, &mut *txn)?,
                open(g, &mut *txn)?,
            ]))
        })?;
    let [meta, entry, tree, posting, children, value, feed] = tables.unwrap_commit();
    let (value, feed) = (Some(value), Some(feed));
    Ok(Tables { meta, entry, tree, posting, children, value, feed })
}

/// Opens the tables of an environment that is only read; `None` if one is not there.
pub(crate) fn find_tables(env: &Environment) -> Result<Option<Tables>, heed::Error> {
    let txn = env.read_txn()?;
    let tables: CommitOrAbort<[Option<Table<'static>>; 7], ()> =
        env.open_databases_and_commit(txn, |opener, txn| {
            let [a, b, c, d, e, f, g] = TABLES;
            let open = |name, txn: &_| opener.open_database::<Bytes, Bytes>(txn, Some(name));
            Ok::<_, heed::Error>(CommitOrAbort::Commit([
                open(a, txn)?,
                open(b, txn)?,
                open(c, txn)?,
                open(d, txn)?,
                open(e, txn)?,
                open(f, txn)?,
                open(g, txn)?,
            ]))
        })?;
    let [Some(meta), Some(entry), Some(tree), Some(posting), Some(children), value, feed] =
        tables.unwrap_commit()
    else {
        return Ok(None);
    };
    Ok(Some(Tables { meta, entry, tree, posting, children, value, feed }))
}

/// The meaning of LMDB's error for the caller; `what` is the action that was attempted.
pub(crate) fn error(what: &'static str, map_bytes: usize, error: heed::Error) -> Error {
    match error {
        heed::Error::Io(error) => Error::system(what, error),
        heed::Error::Mdb(MdbError::MapFull) => Error::MapFull { map_bytes },
        heed::Error::Mdb(MdbError::ReadersFull) => Error::TooManyReaders,
        heed::Error::Mdb(MdbError::Panic) => {
            Error::Failed { why: "an earlier commit could not be finished".into() }
        }
        heed::Error::Mdb(
            found @ (MdbError::Corrupted | MdbError::PageNotFound | MdbError::Invalid),
        ) => Error::damaged(format!("{what}: {found}")),
        other => Error::System { what, error: io::Error::other(other.to_string()).into() },
    }
}
