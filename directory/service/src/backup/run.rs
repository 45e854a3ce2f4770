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

/// Backs a data folder up until `stop` is asked for: what has changed since the last time, and whole if the repository
/// has no backup of the store that is younger than `full_every`, and whenever changes are missing. `told` hears of each
/// step.
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
        let failed = |why| noted(folder, place, why);
        let saved = saved(&repository, folder, running).map_err(failed)?;
        let changes = match &saved {
            Some(saved) => changes(folder, &repository, saved).map_err(failed)?,
            None => None,
        };
        if let Some(step) = &changes {
            Done::new(history::BACKUP, Some(&place.folder))
                .with(history::CHANGES, None)
                .record(folder);
            told(step)?;
        }
        if changes.is_none() || saved.is_some_and(|saved| saved.is_old) {
            let make = || create_in(folder, &repository, running.with, &mut |_, _| ());
            let mut created = recorded(folder, place, make)?;
            created.key_file = key_file.take();
            told(&Step::Backup(created))?;
        }
        while begun.elapsed() < running.every {
            if stop.is_asked() {
                return Ok(());
            }
            thread::sleep(STOP_LOOK_EVERY.min(running.every.saturating_sub(begun.elapsed())));
        }
    }
}

/// What a repository has of a store.
struct Saved {
    /// Whether the newest backup is too old.
    is_old: bool,
    /// The positions behind which changes are missing, the best to go on from first: the newest backup has those before
    /// it, but no restore could end among them.
    ends: Vec<u64>,
}

/// What the repository has of the folder's store; `None` without a backup of it.
fn saved(
    repository: &Repository,
    folder: &Path,
    running: &Running,
) -> Result<Option<Saved>, Failure> {
    let incarnation = offline::store_to_read(folder)?.incarnation();
    let listed = repository.backups().map_err(Failure::new)?;
    let known = listed.iter().filter_map(|one| {
        let manifest = one.manifest.as_ref().ok()?;
        let feed = manifest.feed.as_ref().filter(|feed| feed.history == incarnation)?;
        Some((feed.position, manifest.created_unix_s))
    });
    let known: Vec<(u64, i64)> = known.collect();
    let Some(&(newest, created)) = known.last() else { return Ok(None) };
    let age = Timestamp::now().unix_s().saturating_sub(created);
    // A clock that was set back makes an age that says nothing.
    let is_old = u64::try_from(age).map_or(true, |age| age >= running.full_every.as_secs());
    let (mut end, mut last) = (newest, 0);
    for segment in repository.segments(incarnation).map_err(Failure::new)? {
        if segment.first <= end + 1 {
            end = end.max(segment.last);
        }
        last = last.max(segment.last);
    }
    let mut ends = vec![end];
    if end == newest && last < newest {
        // No changes go on from it yet.
        ends.extend(known.iter().map(|(position, _)| (*position).max(last)));
        ends.sort_unstable();
        ends.dedup();
    }
    Ok(Some(Saved { is_old, ends }))
}

/// Ships what is missing; `None` if the feed does not have all of it any more.
fn changes(folder: &Path, repository: &Repository, saved: &Saved) -> Result<Option<Step>, Failure> {
    let store = offline::store_to_read(folder)?;
    for after in &saved.ends {
        if let Shipped::To(position) = ship(&store, repository, *after)? {
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
