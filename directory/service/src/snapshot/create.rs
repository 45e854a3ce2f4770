//! A snapshot, made.

use super::meta::Meta;
use super::place::{DATA, MAKING, Snapshots, check_name, compact, remove, sync};
use crate::offline;
use keyway_folder::data::name;
use keyway_host::failure::Failure;
use keyway_host::timestamp::Timestamp;
use keyway_store::Store;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// A snapshot that was made.
#[derive(Clone, Debug)]
pub struct Created {
    /// Its name.
    pub name: String,
    /// The state that it holds.
    pub meta: Meta,
    /// The bytes that it takes of the disk; those that it shares with the store are counted.
    pub bytes: u64,
}

/// Keeps the store of a data folder as it is now, whether or not a server serves from it. Its name is the time if none
/// is given. `progress` hears of bytes, and how many there are.
///
/// # Errors
/// If the name cannot be one or is taken, there is no store, or the snapshot cannot be written; then none is left.
pub fn create(
    folder: &Path,
    name: Option<&str>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Created, Failure> {
    name.map_or(Ok(()), check_name)?;
    // Before the snapshots are locked: this may wait for a process that waits for them.
    let store = offline::store_to_read(folder)?;
    is_beside(folder)?;
    let snapshots = Snapshots::lock(folder)?;
    let now = Timestamp::now();
    let name = match name {
        Some(name) => snapshots.is_free(name).map(|()| name.to_owned())?,
        None => snapshots.free_name(&compact(now)),
    };
    let draft = snapshots.draft(MAKING)?;
    let made = fill(&draft, &store, now, progress)
        .and_then(|meta| snapshots.put(&draft, &name).map(|()| meta));
    if made.is_err() {
        // The next one does it if this fails, too.
        let _ = remove(&draft);
    }
    let meta = made?;
    let bytes = snapshots.find(&name)?.bytes;
    Ok(Created { name, meta, bytes })
}

/// Refuses a store on a disk of its own: no rollback could put a snapshot in its place in one step.
fn is_beside(folder: &Path) -> Result<(), Failure> {
    let device = |path: &Path| fs::metadata(path).map(|it| it.dev());
    let store = folder.join(name::STORE);
    match (device(folder), device(&store)) {
        (Ok(one), Ok(other)) if one != other => Err(Failure::new(format!(
            "{} is on a disk of its own, and snapshots are not, so that none could be rolled back to: use keyway backup",
            store.display()
        ))),
        _ => Ok(()),
    }
}

/// Writes all of it; what it says of itself is the last.
fn fill(
    draft: &Path,
    store: &Store,
    now: Timestamp,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Meta, Failure> {
    let path = draft.join(DATA);
    let system = |why: io::Error| Failure::system("write", &path, &why);
    let unreadable =
        |why: keyway_store::Error| Failure::new(format!("cannot read the store: {why}"));
    let options = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    let file = options.map_err(system)?;
    let snapshot = store.snapshot().map_err(unreadable)?;
    let meta = Meta::of(&snapshot, now).map_err(unreadable)?;
    snapshot.write_to(&file, &mut |done| progress(done, meta.length)).map_err(system)?;
    // The server may use its pages again.
    drop(snapshot);
    file.sync_all().map_err(system)?;
    meta.write(draft)?;
    sync(draft).map_err(system)?;
    Ok(meta)
}
