//! Whether everything in a repository can be read.

use crate::backup::read_piece;
use crate::disk;
use crate::error::{Error, Fault};
use crate::limits::{BATCH_PIECES, HEADER_BYTES_MAX};
use crate::list::{Needed, Walk};
use crate::manifest::Manifest;
use crate::name::{self, BackupName, Name, Segment};
use crate::objects::Objects;
use crate::parallel;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// A file of a repository that cannot be read as it was written.
#[derive(Debug)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// Its fault.
    pub fault: Fault,
    /// The backups that cannot be restored whole.
    pub backups: Vec<BackupName>,
}

/// Positions that no piece of a history's feed has, between two that are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The store's incarnation.
    pub history: [u8; 16],
    /// The first position that is missing.
    pub first: u64,
    /// The last position that is missing.
    pub last: u64,
}

/// The counts of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Backups, damaged ones too.
    pub backups: u64,
    /// Chunks that backups name, lists too.
    pub chunks: u64,
    /// The bytes of their text.
    pub bytes: u64,
    /// Pieces of feeds.
    pub segments: u64,
    /// Chunks that no backup names: a create that was ended left them, and `prune` removes them. Counted only
    /// where all backups can be read.
    pub orphans: u64,
    /// Holes in feeds.
    pub gaps: Vec<Gap>,
    /// Damaged files.
    pub damages: u64,
}

/// The chunks that backups name.
#[derive(Default)]
struct Named {
    /// How long each piece has to be.
    pieces: HashMap<Name, usize>,
    lists: HashSet<Name>,
    /// Lists that cannot be read, and pieces that two places want to have different lengths.
    damaged: HashMap<Name, Fault>,
}

/// Reads everything. `progress` is told how many bytes of pieces were read, and how many there are.
pub(crate) fn verify(
    objects: &Objects,
    header: &[u8],
    progress: &mut dyn FnMut(u64, u64),
    tell: &mut dyn FnMut(Damage),
) -> Result<Verified, Error> {
    let mut verified = Verified::default();
    let mut tell = |verified: &mut Verified, damage| {
        verified.damages += 1;
        tell(damage);
    };
    let names = objects.backups()?;
    for file in [name::HEADER, name::COPY] {
        let path = objects.at(file);
        let fault = match disk::read(&path, HEADER_BYTES_MAX) {
            Ok(bytes) if bytes == header => continue,
            Ok(bytes) if header.starts_with(&bytes) => Fault::Truncated,
            Ok(_) => Fault::Altered,
            Err(fault) => fault,
        };
        // The other one is there: it was opened with that.
        tell(&mut verified, Damage { path, fault, backups: Vec::new() });
    }
    let (mut manifests, mut named) = (Vec::new(), Named::default());
    for name in names {
        verified.backups += 1;
        match objects.read_manifest(&name) {
            Ok(manifest) => {
                named.add(objects, &manifest);
                manifests.push((name, manifest));
            }
            Err(fault) => {
                let path = objects.at(name::MANIFESTS).join(name.to_string());
                tell(&mut verified, Damage { path, fault, backups: vec![name] });
            }
        }
    }
    let are_all_read = manifests.len() as u64 == verified.backups;
    verified.chunks = (named.pieces.len() + named.lists.len()) as u64;
    verified.bytes = named.read_pieces(objects, progress);
    if are_all_read && named.damaged.is_empty() {
        for folder in 0..=u8::MAX {
            let is_named =
                |name: &&Name| named.pieces.contains_key(name) || named.lists.contains(name);
            let chunks = objects.chunks(folder)?;
            verified.orphans += chunks.iter().filter(|name| !is_named(name)).count() as u64;
        }
    }
    let mut suffering = named.suffering(objects, &manifests);
    let mut damaged: Vec<_> = named.damaged.into_iter().collect();
    damaged.sort_unstable_by_key(|(name, _)| *name);
    for (name, fault) in damaged {
        let backups = suffering.remove(&name).unwrap_or_default();
        tell(&mut verified, Damage { path: objects.at(name.path()), fault, backups });
    }
    let segments = objects.segments()?;
    verified.gaps = gaps(&segments);
    for segment in segments {
        verified.segments += 1;
        if let Err(fault) = objects.read_segment(&segment) {
            let path = objects.at(segment.path());
            tell(&mut verified, Damage { path, fault, backups: Vec::new() });
        }
    }
    Ok(verified)
}

impl Named {
    fn add(&mut self, objects: &Objects, manifest: &Manifest) {
        for file in &manifest.files {
            for needed in Walk::new(objects, file) {
                match needed {
                    Ok(Needed::Piece(name, bytes)) => match self.pieces.entry(name) {
                        Entry::Occupied(entry) if *entry.get() != bytes => {
                            let why = Fault::Unfit("two places ask for it in different lengths");
                            self.damaged.insert(name, why);
                        }
                        entry => {
                            entry.or_insert(bytes);
                        }
                    },
                    Ok(Needed::List(name)) => {
                        self.lists.insert(name);
                    }
                    Err((name, fault)) => {
                        self.damaged.insert(name, fault);
                    }
                }
            }
        }
    }

    /// Reads each piece once. The bytes of all.
    fn read_pieces(&mut self, objects: &Objects, progress: &mut dyn FnMut(u64, u64)) -> u64 {
        let mut pieces: Vec<(Name, usize)> =
            self.pieces.iter().map(|(name, bytes)| (*name, *bytes)).collect();
        pieces.sort_unstable();
        let total = pieces.iter().map(|(_, bytes)| *bytes as u64).sum();
        let mut done = 0;
        let read = |part: &[(Name, usize)]| -> Vec<(Name, Fault)> {
            let read = |(name, bytes): &(Name, usize)| {
                read_piece(objects, name, *bytes).err().map(|fault| (*name, fault))
            };
            part.iter().filter_map(read).collect()
        };
        for batch in pieces.chunks(BATCH_PIECES) {
            let (found, ()) = parallel::parts(batch, read, || ());
            self.damaged.extend(found.into_iter().flatten());
            done += batch.iter().map(|(_, bytes)| *bytes as u64).sum::<u64>();
            progress(done, total);
        }
        total
    }

    /// The backups that name each damaged chunk.
    fn suffering(
        &self,
        objects: &Objects,
        manifests: &[(BackupName, Manifest)],
    ) -> HashMap<Name, Vec<BackupName>> {
        let mut suffering: HashMap<Name, Vec<BackupName>> = HashMap::new();
        if self.damaged.is_empty() {
            return suffering;
        }
        for (backup, manifest) in manifests {
            for needed in manifest.files.iter().flat_map(|file| Walk::new(objects, file)) {
                let (Ok(Needed::Piece(name, _) | Needed::List(name)) | Err((name, _))) = needed;
                if self.damaged.contains_key(&name) {
                    let backups = suffering.entry(name).or_default();
                    if backups.last() != Some(backup) {
                        backups.push(backup.clone());
                    }
                }
            }
        }
        suffering
    }
}

/// The holes between sorted pieces of feeds.
fn gaps(segments: &[Segment]) -> Vec<Gap> {
    let mut gaps = Vec::new();
    let mut reached: Option<Segment> = None;
    for segment in segments {
        reached = match reached {
            Some(before) if before.history == segment.history => {
                if let Some(first) = before.last.checked_add(1)
                    && first < segment.first
                {
                    gaps.push(Gap { history: segment.history, first, last: segment.first - 1 });
                }
                Some(if before.last > segment.last { before } else { *segment })
            }
            _ => Some(*segment),
        };
    }
    gaps
}

/// Moves a damaged file out of the way, below `damaged/`. Whether it was there.
pub(crate) fn set_aside(objects: &Objects, damage: &Damage) -> Result<bool, Error> {
    let folders = [name::CHUNKS, name::MANIFESTS, name::SEGMENTS].map(|folder| objects.at(folder));
    let is_ours = folders.iter().any(|folder| damage.path.starts_with(folder));
    let Some(file) = damage.path.file_name().filter(|_| is_ours) else { return Ok(false) };
    let moved = std::fs::rename(&damage.path, objects.at(Path::new(name::DAMAGED).join(file)));
    match moved {
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => Ok(false),
        moved => {
            moved.map_err(objects.system("move", &damage.path))?;
            Ok(true)
        }
    }
}
