//! Old backups, removed.

use crate::disk;
use crate::error::Error;
use crate::list::{Needed, Walk};
use crate::manifest::Manifest;
use crate::name::{self, BackupName, Name, Segment};
use crate::objects::Objects;
use keyway_host::timestamp::{DAY_S, Timestamp};
use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;

/// Which backups are kept. One that any of these keeps is kept. Days, weeks (from Monday) and months are those of
/// UTC in which backups were made, the newest ones first; of each the newest backup is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// So many of the newest backups.
    pub last: usize,
    /// One of each of so many days.
    pub daily: usize,
    /// One of each of so many weeks.
    pub weekly: usize,
    /// One of each of so many months.
    pub monthly: usize,
}

/// The files that were removed, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Backups that stay.
    pub kept: Vec<BackupName>,
    /// Backups that go.
    pub removed: Vec<BackupName>,
    /// Backups that cannot be read. They stay until they are moved out of the way.
    pub unreadable: Vec<BackupName>,
    /// Chunks that go.
    pub chunks: u64,
    /// Pieces of feeds that go.
    pub segments: u64,
    /// The bytes of these chunks and pieces of feeds.
    pub bytes: u64,
    /// Why no chunk and no piece of a feed goes, if that is so.
    pub held_back: Option<String>,
}

/// Removes backups, then the chunks and the pieces of feeds that no other one needs. The caller has all locks.
pub(crate) fn prune(objects: &Objects, keep: Keep, is_trial: bool) -> Result<Pruned, Error> {
    if keep == Keep::default() {
        return Err(Error::Unfit("a prune has to keep a backup at least; say how many".to_owned()));
    }
    let (mut pruned, mut read) = (Pruned::default(), Vec::new());
    for name in objects.backups()? {
        match objects.read_manifest(&name) {
            Ok(manifest) => read.push((name, manifest)),
            Err(_) => pruned.unreadable.push(name),
        }
    }
    let is_kept = keep.choose(read.iter().map(|(_, manifest)| manifest.created_unix_s));
    let (kept, removed): (Vec<_>, Vec<_>) =
        read.into_iter().zip(is_kept).partition(|(_, is_kept)| *is_kept);
    let name = |((name, _), _): &((BackupName, Manifest), bool)| name.clone();
    pruned.removed = removed.iter().map(name).collect();
    pruned.kept = kept.iter().map(name).collect();
    let manifests: Vec<&Manifest> = kept.iter().map(|((_, manifest), _)| manifest).collect();
    let needed = match pruned.unreadable.first() {
        Some(name) => Err(format!("the backup {name} cannot be read")),
        None => needed(objects, &manifests),
    };
    if !is_trial {
        let folder = objects.at(name::MANIFESTS);
        for name in &pruned.removed {
            let path = folder.join(name.to_string());
            disk::remove_if_there(&path).map_err(objects.system("remove", &path))?;
        }
        // A manifest must not come back after its chunks have gone.
        disk::sync_folder(&folder).map_err(objects.system("sync the folder", &folder))?;
    }
    match needed {
        Ok(needed) => {
            pruned.remove_chunks(objects, &needed, is_trial)?;
            pruned.remove_segments(objects, &manifests, is_trial)?;
        }
        Err(why) => {
            pruned.held_back =
                Some(format!("{why}, and may need any of them; `keyway backup verify` says more"));
        }
    }
    Ok(pruned)
}

impl Keep {
    /// Whether each of these backups, oldest first, is kept.
    fn choose(&self, created_unix_s: impl DoubleEndedIterator<Item = i64>) -> Vec<bool> {
        // 1970-01-01 was a Thursday.
        const WEEK_BEGINS_DAY: i64 = 3;
        let mut periods: [(usize, HashSet<i64>); 3] =
            [self.daily, self.weekly, self.monthly].map(|most| (most, HashSet::new()));
        let mut kept: Vec<bool> = created_unix_s
            .rev()
            .enumerate()
            .map(|(index, unix_s)| {
                let day = unix_s.div_euclid(DAY_S);
                let date = Timestamp::from_unix_s(unix_s).date_time();
                let month = i64::from(date.year()) * 12 + i64::from(u8::from(date.month()));
                let of = [day, (day + WEEK_BEGINS_DAY).div_euclid(7), month];
                let mut is_kept = index < self.last;
                for ((most, seen), period) in periods.iter_mut().zip(of) {
                    is_kept |= seen.len() < *most && seen.insert(period);
                }
                is_kept
            })
            .collect();
        kept.reverse();
        kept
    }
}

/// The chunks that these backups name, or why they are not known.
fn needed(objects: &Objects, manifests: &[&Manifest]) -> Result<HashSet<Name>, String> {
    let mut needed = HashSet::new();
    for file in manifests.iter().flat_map(|manifest| &manifest.files) {
        let mut walk = Walk::new(objects, file);
        while let Some(chunk) = walk.next() {
            match chunk {
                Ok(Needed::Piece(name, _)) => {
                    needed.insert(name);
                }
                // Another backup has named all of it.
                Ok(Needed::List(name)) if !needed.insert(name) => walk.skip_list(),
                Ok(Needed::List(_)) => {}
                Err((name, fault)) => {
                    return Err(format!("{}: {fault}", objects.at(name.path()).display()));
                }
            }
        }
    }
    Ok(needed)
}

impl Pruned {
    fn remove_chunks(
        &mut self,
        objects: &Objects,
        needed: &HashSet<Name>,
        is_trial: bool,
    ) -> Result<(), Error> {
        for folder in 0..=u8::MAX {
            for name in objects.chunks(folder)? {
                if !needed.contains(&name) && self.remove(objects, name.path(), is_trial)? {
                    self.chunks += 1;
                }
            }
        }
        Ok(())
    }

    /// A piece of a feed is needed if it goes on from a backup: it has changes that are not in all backups of
    /// its history.
    fn remove_segments(
        &mut self,
        objects: &Objects,
        manifests: &[&Manifest],
        is_trial: bool,
    ) -> Result<(), Error> {
        let goes_on = |segment: &Segment| {
            let mut feeds = manifests.iter().filter_map(|manifest| manifest.feed);
            feeds.any(|feed| feed.history == segment.history && feed.position < segment.last)
        };
        for segment in objects.segments()? {
            if !goes_on(&segment) && self.remove(objects, segment.path(), is_trial)? {
                self.segments += 1;
            }
        }
        Ok(())
    }

    fn remove(&mut self, objects: &Objects, path: PathBuf, is_trial: bool) -> Result<bool, Error> {
        let path = objects.at(path);
        let bytes = fs::symlink_metadata(&path).map_or(0, |metadata| metadata.len());
        let refused = objects.system("remove", &path);
        let is_gone = is_trial || disk::remove_if_there(&path).map_err(refused)?;
        self.bytes += if is_gone { bytes } else { 0 };
        Ok(is_gone)
    }
}
