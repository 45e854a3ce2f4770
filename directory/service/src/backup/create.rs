//! A backup, made.

use super::files::{self, Opened, STORE_FILE};
use super::meta::{Meta, With};
use super::place::Place;
use crate::lineage;
use crate::offline;
use keyway_backup::{FeedPosition, Listed, Repository};
use keyway_config::Running;
use keyway_folder::data::{self, name};
use keyway_folder::history::{self, Done};
use keyway_host::failure::Failure;
use keyway_host::shutdown::{Stop, Stoppable};
use keyway_host::timestamp::{Timestamp, now_unix_us};
use keyway_store::Store;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Files of which a backup says that it does not have them; the others are counted.
const LEFT_OUT_MAX: usize = 100;

/// A backup that was made.
#[derive(Clone, Debug)]
pub struct Created {
    /// Its name.
    pub name: String,
    /// The state that it holds.
    pub meta: Meta,
    /// All its bytes.
    pub bytes: u64,
    /// The bytes that this has added to the repository.
    pub new_bytes: u64,
    /// The key file that was made for the repository, if it is a new one.
    pub key_file: Option<PathBuf>,
}

/// Backs a data folder up, whether or not a server serves from it, and writes down there that it did. `progress`
/// hears how many bytes of how many are done.
///
/// # Errors
/// If there is no store, or the repository cannot be opened or written.
pub fn create(
    folder: &Path,
    place: &Place,
    with: With,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Created, Failure> {
    recorded(folder, place, None, || {
        may_be_backed_up(folder, place)?;
        let (repository, key_file) = place.open_or_create(folder)?;
        let store = offline::store_to_read(folder)?;
        let mut created = create_in(folder, &store, &repository, with, None, progress)?;
        created.key_file = key_file.map(Path::to_owned);
        Ok(created)
    })
}

/// Refuses a repository that has backups of another directory: each has its own positions and its own newest backup,
/// which prune keeps.
fn refuse_another(repository: &Repository, meta: &Meta) -> Result<(), Failure> {
    let listed = repository.backups().map_err(Failure::new)?;
    for Listed { name, manifest } in listed.iter().rev() {
        let Ok(manifest) = manifest else { continue };
        let other = Meta::read(&name.to_string(), &manifest.meta)?;
        if other.directory() == meta.directory() {
            return Ok(());
        }
        return Err(Failure::new(format!(
            "{} has backups of another directory (backup {name}, {} entries): make a repository of its own for this one",
            repository.folder().display(),
            other.entries
        )));
    }
    Ok(())
}

/// That there is something to be put into a repository, before one is made.
///
/// # Errors
/// If there is no store, or the repository would be in the data folder.
pub(super) fn may_be_backed_up(folder: &Path, place: &Place) -> Result<(), Failure> {
    data::is_not_own(folder, &place.folder)?;
    offline::store_to_read(folder).map(drop)
}

/// Writes down in the folder's history what came of a backup, if it was not stopped.
pub(super) fn recorded(
    folder: &Path,
    place: &Place,
    stop: Option<&Stop>,
    make: impl FnOnce() -> Result<Created, Failure>,
) -> Result<Created, Failure> {
    let begun = Instant::now();
    let made = make();
    if made.is_err() && stop.is_some_and(Stop::is_asked) {
        return made;
    }
    let mut done = Done::new(history::BACKUP, Some(&place.folder));
    done.served = Running::look(folder).is_some();
    done.seconds = begun.elapsed().as_secs_f64();
    let done = match &made {
        Ok(created) => {
            (done.entries, done.bytes) = (Some(created.meta.entries), Some(created.bytes));
            done.with("whole", None)
        }
        Err(why) => done.with("failed", Some(&why.to_string())),
    };
    done.record(folder);
    made
}

/// Backs up the store that a server has open, in the process that has it, until `stop` is asked for. As [`create`], but
/// the repository is there.
///
/// # Errors
/// As [`create`], and if it was stopped.
pub fn create_served(
    folder: &Path,
    store: &Store,
    place: &Place,
    with: With,
    stop: &Stop,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Created, Failure> {
    recorded(folder, place, Some(stop), || {
        data::is_not_own(folder, &place.folder)?;
        create_in(folder, store, &place.open()?, with, Some(stop), progress)
    })
}

/// As [`create`], of an open store in an open repository, without a line in the folder's history.
pub(super) fn create_in(
    folder: &Path,
    store: &Store,
    repository: &Repository,
    with: With,
    stop: Option<&Stop>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Created, Failure> {
    let mut creating = repository.begin(Timestamp::now()).map_err(Failure::new)?;
    let unreadable =
        |why: keyway_store::Error| Failure::new(format!("cannot read the store: {why}"));
    let mut snapshot = store.snapshot().map_err(unreadable)?;
    // All that the snapshot has was committed before now.
    let taken_unix_us = now_unix_us();
    let position = snapshot.feed_head().map_err(unreadable)?.map(|head| head.position);
    let total = snapshot.length();
    let incarnation = snapshot.incarnation();
    let mut meta = Meta {
        incarnation: data::shown(incarnation),
        epoch: snapshot.epoch().map_err(unreadable)?,
        position,
        entries: snapshot.entries().map_err(unreadable)?,
        taken_unix_us,
        ancestors: lineage::of(store)?,
        with,
        left_out: Vec::new(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    refuse_another(repository, &meta)?;
    let mut bytes = 0;
    let mut new_bytes = 0;
    let mut count = |put: keyway_backup::Put| {
        bytes += put.bytes;
        new_bytes += put.new_bytes;
    };
    let mut pages = Stoppable::new(&mut snapshot, stop);
    let put = creating.put(STORE_FILE, 0o600, &mut pages, &mut |done| progress(done, total));
    count(put.map_err(Failure::new)?);
    // The server may use its pages again.
    drop(snapshot);
    let (files, mut left_out) = files::choose(folder, repository.folder(), with)?;
    for file in files {
        match files::open(&folder.join(&file))? {
            Opened::Plain(mut open, mode) => {
                let put =
                    creating.put(&file, mode, &mut open, &mut |_| ()).map_err(Failure::new)?;
                count(put);
            }
            Opened::Gone if file == name::CONFIGURATION => left_out.push(files::missing(&file)),
            Opened::Gone => {}
            Opened::Other(why) => left_out.push(format!("{file}: {why}")),
        }
    }
    let more = left_out.len().saturating_sub(LEFT_OUT_MAX);
    left_out.truncate(LEFT_OUT_MAX);
    if more > 0 {
        left_out.push(format!("and {more} more files"));
    }
    meta.left_out = left_out;
    let feed = position.map(|position| FeedPosition { history: incarnation, position });
    let value = serde_json::to_value(&meta).map_err(Failure::new)?;
    let name = creating.finish(value, feed).map_err(Failure::new)?.to_string();
    Ok(Created { name, meta, bytes, new_bytes, key_file: None })
}
