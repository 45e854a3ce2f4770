//! Backups, looked through: each piece is read and decrypted, and one of them can be restored to see that it opens.

use super::meta::Meta;
use super::place::Place;
use super::restore::{Restored, restore_in};
use crate::instance::{Instance, describe};
use crate::scratch::Scratch;
use keyway_backup::{Damage, Gap, Repository};
use keyway_config::Configuration;
use keyway_folder::data::{Folder, shown};
use keyway_folder::history::{self, Done};
use keyway_host::failure::Failure;
use keyway_host::shutdown::Stop;
use keyway_host::timestamp::Timestamp;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

/// The name of the folder in which a backup is restored.
const SCRATCH: &str = ".keyway-verify";

/// The outcome.
#[derive(Clone, Debug, Default)]
pub struct Verified {
    /// How many backups there are.
    pub backups: u64,
    /// How many pieces of files were read.
    pub chunks: u64,
    /// Their bytes in the repository.
    pub bytes: u64,
    /// How many segments of the feed were read.
    pub segments: u64,
    /// What is damaged, and what suffers from it.
    pub damages: Vec<String>,
    /// Positions of the feed between backups to which cannot be restored.
    pub gaps: Vec<String>,
    /// How many damaged files were moved out of the way.
    pub set_aside: u64,
    /// What a server that is made of the newest backup alone lacks.
    pub lacks: Vec<String>,
    /// The backup that was restored, if one was, and is sound.
    pub restored: Option<Restored>,
    /// Why it could not be restored, although what was asked for is not known to be damaged: the place may be full.
    pub restore_failed: Option<String>,
}

impl Verified {
    /// Whether nothing is damaged, and what was to be restored was.
    pub fn is_sound(&self) -> bool {
        self.damages.is_empty() && self.restore_failed.is_none()
    }
}

/// Reads all that is in the repository. With a folder for it, the named backup, or the newest, is restored there,
/// opened, its parts compared with each other, and removed. Damaged files are moved out of the way if they are to be
/// set aside. `progress` hears of bytes, and how many there are. The history of a data folder, if one is named, notes
/// it.
///
/// # Errors
/// If the repository cannot be opened, or it was stopped. Damage is none: it is in the outcome.
pub fn verify(
    place: &Place,
    backup: Option<&str>,
    scratch: Option<&Path>,
    is_set_aside: bool,
    noted_in: Option<&Path>,
    stop: Option<&Stop>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Verified, Failure> {
    let begun = Instant::now();
    let looked = look_through(place, backup, scratch, is_set_aside, stop, progress);
    let is_stopped = looked.is_err() && stop.is_some_and(Stop::is_asked);
    if let Some(folder) = noted_in.filter(|_| !is_stopped) {
        let seconds = begun.elapsed().as_secs_f64();
        let done = Done { seconds, ..Done::new(history::VERIFY, Some(&place.folder)) };
        let done = match &looked {
            Ok(found) if found.is_sound() => {
                Done { bytes: Some(found.bytes), ..done }.with("sound", None)
            }
            Ok(Verified { damages, restore_failed: Some(why), .. }) if damages.is_empty() => {
                done.with("failed", Some(why))
            }
            Ok(found) => done.with("damaged", found.damages.first().map(String::as_str)),
            Err(why) => done.with("failed", Some(&why.to_string())),
        };
        done.record(folder);
    }
    looked
}

fn look_through(
    place: &Place,
    backup: Option<&str>,
    scratch: Option<&Path>,
    is_set_aside: bool,
    stop: Option<&Stop>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Verified, Failure> {
    let repository = place.open()?;
    let mut verified = Verified::default();
    let mut damages = Vec::new();
    let mut goes_on = |done, total| {
        progress(done, total);
        match stop.is_some_and(Stop::is_asked) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    };
    let found = repository.verify(&mut goes_on, &mut |damage| damages.push(damage));
    let found = found.map_err(Failure::new)?;
    verified.damages.extend(damages.iter().map(words));
    verified.backups = found.backups;
    verified.chunks = found.chunks;
    verified.bytes = found.bytes;
    verified.segments = found.segments;
    let gap = |gap: &Gap| {
        let (first, last) = (gap.first, gap.last);
        format!("changes {first} to {last} of store {} are missing", shown(gap.history))
    };
    verified.gaps.extend(found.gaps.iter().map(gap));
    if let Ok(newest) = repository.backup(backup.unwrap_or("latest")) {
        verified.lacks = Meta::read(&newest.name().to_string(), &newest.manifest().meta)?.lacks();
    }
    if let Some(scratch) = scratch {
        match try_restore(&repository, backup, scratch, progress)? {
            Ok(restored) => verified.restored = Some(restored),
            Err(why) => verified.restore_failed = Some(why.to_string()),
        }
    }
    if is_set_aside {
        verified.set_aside = repository.set_aside(&damages).map_err(Failure::new)?;
    }
    Ok(verified)
}

fn words(damage: &Damage) -> String {
    let suffer = damage.backups.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let suffer = match suffer.is_empty() {
        false => format!("of {suffer}"),
        true if damage.path.iter().any(|part| part == keyway_backup::SEGMENTS) => {
            "what was changed behind it cannot be restored, but by later backups".to_owned()
        }
        true => "no backup suffers".to_owned(),
    };
    format!("{}: {}; {suffer}", damage.path.display(), damage.fault)
}

fn try_restore(
    repository: &Repository,
    backup: Option<&str>,
    place: &Path,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Result<Restored, Failure>, Failure> {
    let scratch = Scratch::make_in(place, SCRATCH)?;
    let tried = restore_in(repository, backup, None, scratch.path(), progress);
    Ok(tried.and_then(|restored| {
        let folder = Folder::open(scratch.path(), Timestamp::now())?;
        let configuration = Configuration::load(&folder)?;
        let instance = Instance::open(&folder, &configuration, &keyway_drivers::engine(), false)?;
        let checked = instance.directory.check(&mut |_, _| ());
        let checked = checked.map_err(|why| Failure::new(describe(&why)))?;
        instance.close()?;
        match checked.entries == restored.entries {
            true => Ok(restored),
            false => Err(Failure::new(format!(
                "a check finds {} entries, and {} were counted",
                checked.entries, restored.entries
            ))),
        }
    }))
}
