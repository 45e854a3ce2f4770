//! A copy of a store becomes a store of its own.

use std::path::Path;

use crate::disk::{self, DATA, LMDB_LOCK, LOCK, Mark};
use crate::format::{META_EPOCH, META_INCARNATION, meta_row};
use crate::limits::MAP_BYTES_MIN;
use crate::lmdb::{self, Access};
use crate::lock::Lock;
use crate::open::{check_format, map_environment, new_incarnation, refused};
use crate::read::epoch_of;
use crate::{OpenError, Options, precheck};

/// Makes a store of the data file in `dir`, which came from a [`Snapshot`](crate::Snapshot): checks it, and gives it an
/// incarnation of its own and the next epoch, so that nothing that has followed the other one takes it for that. To be
/// done before it is opened in any other way; if it is killed once it has begun to change something, the store does not
/// open ([`OpenError::Unfinished`]) until this is done again. Until it begins, the folder is the other store as far as
/// anything can tell: the caller makes it under a name at which no program looks for one. `rows` are put into it as
/// [`Write::local_put`](crate::Write::local_put) does. Returns incarnation and epoch.
///
/// # Errors
/// As [`Store::open`](crate::Store::open).
pub fn restored(dir: &Path, rows: &[(&str, &[u8])]) -> Result<([u8; 16], u64), OpenError> {
    let data = dir.join(DATA);
    if !data.exists() {
        return Err(OpenError::Missing);
    }
    let _lock = Lock::take(&dir.join(LOCK))?;
    disk::mark(dir, Mark::Loading)?;
    precheck::check(&data)?;
    disk::allocate(&dir.join(LMDB_LOCK), lmdb::LOCK_BYTES)
        .map_err(|e| OpenError::system("making room for the lock file", e))?;
    let length = data.metadata().map_err(|e| OpenError::system("opening the store", e))?.len();
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let options = Options {
        map_bytes_max: length.saturating_mul(2).max(MAP_BYTES_MIN),
        ..Options::default()
    };
    let (env, _) = map_environment(dir, &options, Access::Durable)?;
    check_format(&env)?;
    let changing = |e| refused("giving the store an identity", e);
    let tables = lmdb::open_tables(&env).map_err(changing)?;
    let mut txn = env.write_txn().map_err(changing)?;
    let epoch = tables.meta.get(&txn, META_EPOCH).map_err(changing)?;
    let epoch = epoch.map_or(Ok(1), epoch_of);
    let epoch = epoch.map_err(|why| OpenError::Damaged { what: why.to_string() })? + 1;
    let incarnation = new_incarnation().map_err(|e| OpenError::system("making an identity", e))?;
    tables.meta.put(&mut txn, META_INCARNATION, &incarnation).map_err(changing)?;
    tables.meta.put(&mut txn, META_EPOCH, &epoch.to_be_bytes()).map_err(changing)?;
    for (name, value) in rows {
        tables.meta.put(&mut txn, &meta_row(name), value).map_err(changing)?;
    }
    txn.commit().map_err(changing)?;
    env.force_sync().map_err(changing)?;
    drop(env);
    disk::unmark(dir)?;
    Ok((incarnation, epoch))
}
