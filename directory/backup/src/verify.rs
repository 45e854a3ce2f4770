//! Whether everything in a repository can be read.

use crate::backup::read_piece;
use crate::disk;
use crate::error::{Error, Fault};
use crate::limits::{BATCH_PIECES, HEADER_BYTES_MAX, PIECE_BYTES};
use crate::list::{Needed, Walk};
use crate::manifest::Manifest;
use crate::name::{self, BackupName, Name, Segment};
use crate::objects::Objects;
use crate::parallel;
use crate::sealed::Kind;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// A file of a repository that cannot be read as it was written.
#[derive(Debug)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// Its fault.
    pub fault: Fault,
    /// The backups that cannot be restored whole, as far as their manifests and lists can be read. None for a
    /// chunk that no such backup names.
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
    /// Chunks that no backup names which can be read: a create that was ended left them, or they are below
    /// something that is damaged. They are read too, since the next backup may use them.
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

/// Reads everything. `progress` is told how many bytes of pieces were read, and how many there are, and may end it.
pub(crate) fn verify(
    objects: &Objects,
    header: &[u8],
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
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
    verified.chunks = (named.pieces.len() + named.lists.len()) as u64;
    verified.bytes = named.pieces.values().map(|bytes| *bytes as u64).sum();
    let orphans = named.orphans(objects)?;
    verified.orphans = orphans.len() as u64;
    if named.read(objects, &orphans, progress).is_break() {
        return Err(Error::Stopped);
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

    /// The chunks that are there and not named.
    fn orphans(&self, objects: &Objects) -> Result<Vec<Name>, Error> {
        let mut orphans = Vec::new();
        for folder in 0..=u8::MAX {
            let mut chunks = objects.chunks(folder)?;
            chunks.retain(|name| {
                !self.pieces.contains_key(name)
                    && !self.lists.contains(name)
                    && !self.damaged.contains_key(name)
            });
            orphans.extend(chunks);
        }
        Ok(orphans)
    }

    /// Reads each piece once, and the orphans. Lists were read.
    fn read(
        &mut self,
        objects: &Objects,
        orphans: &[Name],
        progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let pieces = self.pieces.iter().map(|(name, bytes)| (*name, Some(*bytes)));
        let mut chunks: Vec<_> = pieces.chain(orphans.iter().map(|name| (*name, None))).collect();
        chunks.sort_unstable();
        // An orphan may be a piece or a list.
        let length = |(_, bytes): &(Name, Option<usize>)| bytes.unwrap_or(PIECE_BYTES) as u64;
        let total = chunks.iter().map(length).sum();
        let mut done = 0;
        let read = |part: &[(Name, Option<usize>)]| -> Vec<(Name, Fault)> {
            let read = |(name, bytes): &(Name, Option<usize>)| {
                let text = match bytes {
                    Some(bytes) => read_piece(objects, name, *bytes),
                    None => match objects.read_chunk(Kind::Piece, name) {
                        Err(Fault::Misplaced) => objects.read_chunk(Kind::List, name),
                        read => read,
                    },
                };
                text.err().map(|fault| (*name, fault))
            };
            part.iter().filter_map(read).collect()
        };
        for batch in chunks.chunks(BATCH_PIECES) {
            let (found, ()) = parallel::parts(batch, read, || ());
            self.damaged.extend(found.into_iter().flatten());
            done += batch.iter().map(length).sum::<u64>();
            progress(done, total)?;
        }
        ControlFlow::Continue(())
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

/// Moves a file below `damaged/`, if it is damaged still. Whether it was moved.
pub(crate) fn set_aside(objects: &Objects, damage: &Damage) -> Result<bool, Error> {
    let path = &damage.path;
    let Some(below) = path.strip_prefix(&objects.folder).ok().and_then(Path::to_str) else {
        return Ok(false);
    };
    let parts: Vec<&str> = below.split('/').collect();
    let is_damaged = match parts[..] {
        [name::CHUNKS, _, file] => name::from_hex(file).map(Name).is_some_and(|name| {
            name.path() == Path::new(below)
                && objects.read_chunk(Kind::Piece, &name).is_err()
                && objects.read_chunk(Kind::List, &name).is_err()
        }),
        [name::MANIFESTS, file] => {
            BackupName::parse(file).is_some_and(|name| objects.read_manifest(&name).is_err())
        }
        [name::SEGMENTS, history, file] => name::from_hex(history)
            .and_then(|history| Segment::parse(history, file))
            .is_some_and(|segment| objects.read_segment(&segment).is_err()),
        _ => false,
    };
    let Some(file) = path.file_name().filter(|_| is_damaged) else { return Ok(false) };
    match fs::rename(path, objects.at(Path::new(name::DAMAGED).join(file))) {
        Err(why) if why.kind() == ErrorKind::NotFound => Ok(false),
        moved => {
            moved.map_err(objects.system("move", path))?;
            Ok(true)
        }
    }
}
