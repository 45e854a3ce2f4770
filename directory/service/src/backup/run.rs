//! Backups at intervals, and between them what has changed since.

use super::create::{Created, create_in, recorded};
use super::meta::With;
use super::place::Place;
use super::segments::{Shipped, ship};
use crate::limits::STOP_LOOK_EVERY;
use crate::offline;
use keyway_backup::Repository;
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
    let looked = place.open_or_create().map_err(|why| noted(folder, place, why))?;
    let (repository, mut key_file) = (looked.0, looked.1.map(Path::to_owned));
    loop {
        let begun = Instant::now();
        let changes = match saved_until(&repository, folder, running) {
            Ok(Some(last)) => changes(folder, &repository, last),
            Ok(None) => Ok(None),
            Err(why) => Err(why),
        };
        let step = match changes.map_err(|why| noted(folder, place, why))? {
            Some(step) => step,
            None => {
                let make = || create_in(folder, &repository, running.with, &mut |_, _| ());
                let mut created = recorded(folder, place, make)?;
                created.key_file = key_file.take();
                Step::Backup(created)
            }
        };
        if let Step::Changes { .. } = step {
            Done::new(history::BACKUP, Some(&place.folder))
                .with(history::CHANGES, None)
                .record(folder);
        }
        told(&step)?;
        while begun.elapsed() < running.every {
            if stop.is_asked() {
                return Ok(());
            }
            thread::sleep(STOP_LOOK_EVERY.min(running.every.saturating_sub(begun.elapsed())));
        }
    }
}

/// Up to which position the repository has the changes of the folder's store behind its newest backup; `None` if that is
/// too old, or there is none.
fn saved_until(
    repository: &Repository,
    folder: &Path,
    running: &Running,
) -> Result<Option<u64>, Failure> {
    let incarnation = offline::store_to_read(folder)?.incarnation();
    let listed = repository.backups().map_err(Failure::new)?;
    let newest = listed.iter().rev().find_map(|one| {
        let manifest = one.manifest.as_ref().ok()?;
        let feed = manifest.feed.as_ref().filter(|feed| feed.history == incarnation)?;
        Some((manifest.created_unix_s, feed.position))
    });
    let Some((created, mut last)) = newest else { return Ok(None) };
    let age = Timestamp::now().unix_s().saturating_sub(created);
    // A clock that was set back makes an age that says nothing.
    if u64::try_from(age).map_or(true, |age| age >= running.full_every.as_secs()) {
        return Ok(None);
    }
    for segment in repository.segments(incarnation).map_err(Failure::new)? {
        if segment.first <= last + 1 {
            last = last.max(segment.last);
        }
    }
    Ok(Some(last))
}

/// Ships what has changed behind a position; `None` if the feed does not have all of it any more.
fn changes(folder: &Path, repository: &Repository, after: u64) -> Result<Option<Step>, Failure> {
    let store = offline::store_to_read(folder)?;
    Ok(match ship(&store, repository, after)? {
        Shipped::To(position) => Some(Step::Changes { position, commits: position - after }),
        Shipped::Trimmed => None,
    })
}

/// Writes a failure down in the folder's history.
fn noted(folder: &Path, place: &Place, why: Failure) -> Failure {
    let done = Done::new(history::BACKUP, Some(&place.folder));
    done.with("failed", Some(&why.to_string())).record(folder);
    why
}
