//! Backups at intervals, and between them what has changed since.

use super::create::{Created, create_in, may_be_backed_up, recorded};
use super::meta::{Meta, With};
use super::place::Place;
use super::segments::{Shipped, ship};
use crate::limits::STOP_LOOK_EVERY;
use crate::offline;
use keyway_backup::{Repository, Segment};
use keyway_folder::data::StoreId;
use keyway_folder::history::{self, Done};
use keyway_host::failure::Failure;
use keyway_host::shutdown::Stop;
use keyway_host::timestamp::Timestamp;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// How it goes on.
#[derive(Clone, Debug)]
pub struct Running {
    /// The pause between two looks.
    pub every: Duration,
    /// The pause between two whole backups.
    pub full_every: Duration,
    /// What whole backups have beside the store.
    pub with: With,
}

/// Something that was put into the repository.
#[derive(Clone, Debug)]
pub enum Step {
    /// A whole backup.
    Backup(Created),
    /// Changes.
    Changes {
        /// The last of them.
        position: u64,
        /// How many commits there were.
        commits: u64,
    },
}

/// Backs a data folder up until `stop` is asked for: whole if the repository has no backup of the store that is younger
/// than `full_every`, and whenever changes are missing; else what has changed since. `told` hears of each step.
///
/// # Errors
/// The first failure, which the folder's history has then, so that the server warns of it.
pub fn run(
    folder: &Path,
    place: &Place,
    running: &Running,
    stop: &Stop,
    told: &mut dyn FnMut(&Step) -> Result<(), Failure>,
) -> Result<(), Failure> {
    may_be_backed_up(folder, place).map_err(|why| noted(folder, place, why))?;
    let looked = place.open_or_create(folder).map_err(|why| noted(folder, place, why))?;
    let (repository, mut key_file) = (looked.0, looked.1.map(Path::to_owned));
    loop {
        let begun = Instant::now();
        let is_young = has_young_backup(&repository, folder, running);
        let mut is_due = !is_young.map_err(|why| noted(folder, place, why))?;
        loop {
            if is_due {
                let make = || {
                    let store = offline::store_to_read(folder)?;
                    create_in(folder, &store, &repository, running.with, None, &mut |_, _| ())
                };
                let mut created = recorded(folder, place, None, make)?;
                created.key_file = key_file.take();
                told(&Step::Backup(created))?;
            }
            // Those before a whole backup, too: a restore can begin with an older one.
            let changes = changes(folder, &repository);
            if let Some(step) = changes.map_err(|why| noted(folder, place, why))? {
                let done = Done::new(history::BACKUP, Some(&place.folder));
                done.with(history::CHANGES, None).record(folder);
                told(&step)?;
                break;
            }
            is_due = true;
        }
        loop {
            // Asked at least once a round, however long that took.
            if stop.is_asked() {
                return Ok(());
            }
            if begun.elapsed() >= running.every {
                break;
            }
            thread::sleep(STOP_LOOK_EVERY.min(running.every.saturating_sub(begun.elapsed())));
        }
    }
}

/// The backups of the folder's store that can be read, the newest first: when each was begun, and its position.
fn backups(
    repository: &Repository,
    incarnation: StoreId,
) -> Result<impl Iterator<Item = (i64, u64)>, Failure> {
    let listed = repository.backups().map_err(Failure::new)?;
    Ok(listed.into_iter().rev().filter_map(move |one| {
        let manifest = one.manifest.ok()?;
        let feed = manifest.feed.filter(|feed| feed.history == incarnation)?;
        Some((manifest.created_unix_s, feed.position))
    }))
}

/// Whether the repository has a backup of the folder's store that is young enough, and has what is wanted beside it.
fn has_young_backup(
    repository: &Repository,
    folder: &Path,
    running: &Running,
) -> Result<bool, Failure> {
    let incarnation = offline::store_to_read(folder)?.incarnation();
    let listed = repository.backups().map_err(Failure::new)?;
    let created = listed.iter().rev().find_map(|one| {
        let manifest = one.manifest.as_ref().ok()?;
        let meta = Meta::read(&one.name.to_string(), &manifest.meta).ok()?;
        let has_all = meta.with.has(running.with);
        let is_of_store = meta.history().is_ok_and(|history| history == incarnation);
        (has_all && is_of_store).then_some(manifest.created_unix_s)
    });
    let Some(created) = created else { return Ok(false) };
    let age = Timestamp::now().unix_s().saturating_sub(created);
    // A clock that was set back makes an age that says nothing.
    Ok(u64::try_from(age).is_ok_and(|age| age < running.full_every.as_secs()))
}

/// Ships what has changed behind the changes that the repository has, or behind its oldest backup; if the feed does not
/// go back so far, behind its newest one. `None` if it does not have all of that any more.
fn changes(folder: &Path, repository: &Repository) -> Result<Option<Step>, Failure> {
    let store = offline::store_to_read(folder)?;
    let incarnation = store.incarnation();
    let positions: Vec<u64> =
        backups(repository, incarnation)?.map(|(_, position)| position).collect();
    let (Some(newest), Some(oldest)) = (positions.first(), positions.last()) else {
        return Ok(None);
    };
    let segments = repository.segments(incarnation).map_err(Failure::new)?;
    let reaches = |from: u64| {
        let goes_on = |last: u64, segment: &Segment| match segment.first <= last + 1 {
            true => last.max(segment.last),
            false => last,
        };
        segments.iter().fold(from, goes_on)
    };
    for after in [reaches(*oldest), reaches(*newest)] {
        if let Shipped::To(position) = ship(&store, repository, after)? {
            return Ok(Some(Step::Changes { position, commits: position - after }));
        }
    }
    Ok(None)
}

/// Writes a failure down in the folder's history.
fn noted(folder: &Path, place: &Place, why: Failure) -> Failure {
    let done = Done::new(history::BACKUP, Some(&place.folder));
    done.with("failed", Some(&why.to_string())).record(folder);
    why
}
