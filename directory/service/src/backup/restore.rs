//! A new data folder, made of a backup.

use super::create::STORE_FILE;
use super::meta::Meta;
use super::place::Place;
use super::point::Point;
use super::segments;
use crate::instance::{Instance, describe};
use crate::scratch::Scratch;
use keyway_backup::{Backup, Listed, Manifest, Repository};
use keyway_config::Configuration;
use keyway_folder::data::{Folder, name, shown};
use keyway_host::failure::Failure;
use keyway_host::timestamp::Timestamp;
use keyway_schema::operational::ENTRY_UUID;
use keyway_store::{Options, Store};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Bytes that are gathered before the system is called.
const BUFFER_BYTES: usize = 1 << 20;

/// A folder that was made.
#[derive(Clone, Debug)]
pub struct Restored {
    /// The backup that it was made of.
    pub backup: String,
    /// The state that the backup holds.
    pub meta: Meta,
    /// The last commit that it has; `None` without a feed.
    pub position: Option<u64>,
    /// The restored store's own identity, in hexadecimal digits.
    pub incarnation: String,
    /// How often it or a store before it was restored.
    pub epoch: u64,
    /// How many entries it has.
    pub entries: u64,
}

/// Makes a new data folder of the newest backup, of a named one, or of the newest before a moment and of the changes
/// from it up to there. The folder gets its name when all of it is on the disk. `progress` hears of bytes of the
/// store, and how many there are.
///
/// # Errors
/// If the folder is there already, there is no such backup or moment, or something is damaged.
pub fn restore(
    place: &Place,
    backup: Option<&str>,
    point: Option<&Point>,
    to: &Path,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Restored, Failure> {
    let repository = place.open()?;
    let (to, scratch) = scratch_for(to)?;
    let restored = restore_in(&repository, backup, point, scratch.path(), progress)?;
    let system = |why: io::Error| Failure::system("put in place", &to, &why);
    fs::rename(scratch.path(), &to).map_err(system)?;
    let above = to.parent().unwrap_or(Path::new("/"));
    File::open(above).and_then(|above| above.sync_all()).map_err(system)?;
    Ok(restored)
}

/// The new folder's place from the root, and where it is until it is whole.
fn scratch_for(to: &Path) -> Result<(PathBuf, Scratch), Failure> {
    let to = std::path::absolute(to).map_err(|why| Failure::system("find", to, &why))?;
    let is_new = match fs::read_dir(&to) {
        Ok(mut found) => found.next().is_none(),
        Err(why) if why.kind() == io::ErrorKind::NotFound => true,
        Err(why) => return Err(Failure::system("look at", &to, &why)),
    };
    if !is_new {
        return Err(Failure::new(format!(
            "{} has something in it: a restore makes a new folder, and changes none; name another one with --to",
            to.display()
        )));
    }
    let name = to.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = name.ok_or_else(|| Failure::usage("--to names no folder"))?;
    let scratch = Scratch::make(&to.with_file_name(format!(".{name}.restoring")))?;
    Ok((to, scratch))
}

/// As [`restore`], into a folder that nothing is in.
pub(super) fn restore_in(
    repository: &Repository,
    backup: Option<&str>,
    point: Option<&Point>,
    folder: &Path,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Restored, Failure> {
    let backup = choose(repository, backup, point)?;
    let meta = Meta::read(&backup.name().to_string(), &backup.manifest().meta)?;
    let folder = Folder::open(folder, Timestamp::now())?;
    unpack(&backup, folder.path(), progress)?;
    let store = folder.file(name::STORE);
    let cannot = |why: &dyn std::fmt::Display| Failure::new(format!("the restored store: {why}"));
    let (incarnation, epoch) = keyway_store::restored(&store).map_err(|why| cannot(&why))?;
    folder.note_store(incarnation)?;
    let mut position = meta.position;
    if let (Some(point), Some(after)) = (point, meta.position) {
        let options = Options { sync: false, identity: Some(ENTRY_UUID), ..Options::default() };
        let store = Store::open(&store, options).map_err(|why| cannot(&why))?;
        let from = (meta.history()?, after);
        let last = segments::apply(&store, repository, from, point, &mut |_| ())?;
        store.close().map_err(|why| cannot(&why))?;
        position = Some(last);
    }
    let is_changed = position != meta.position;
    let entries = finish(&folder, is_changed)?;
    if !is_changed && entries != meta.entries {
        return Err(Failure::new(format!(
            "the backup says that it has {} entries, and there are {entries}",
            meta.entries
        )));
    }
    let (backup, incarnation) = (backup.name().to_string(), shown(incarnation));
    Ok(Restored { backup, meta, position, incarnation, epoch, entries })
}

/// Opens the directory, as a server does, and makes its indexes anew if changes were made without them. How many
/// entries it has.
fn finish(folder: &Folder, is_changed: bool) -> Result<u64, Failure> {
    let configuration = Configuration::load(folder)?;
    let instance = Instance::open(folder, &configuration, &keyway_drivers::engine(), false)?;
    let failed = |why: keyway_server::Failure| Failure::new(describe(&why));
    if is_changed {
        instance.directory.reindex(&[], false).map_err(failed)?;
        while !instance.directory.build_piece().map_err(failed)? {}
    }
    let read = instance.store.read();
    let entries = read.and_then(|read| read.view().entry_count());
    let entries = entries.map_err(|why| Failure::new(format!("the restored store: {why}")))?;
    instance.close()?;
    Ok(entries)
}

/// The backup to begin with.
fn choose<'r>(
    repository: &'r Repository,
    named: Option<&str>,
    point: Option<&Point>,
) -> Result<Backup<'r>, Failure> {
    let Some(point) = point else {
        return repository.backup(named.unwrap_or("latest")).map_err(Failure::new);
    };
    let is_before = |manifest: &Manifest, meta: &Meta| {
        let begun = Timestamp::from_unix_s(manifest.created_unix_s).to_string();
        meta.position.is_some_and(|position| point.takes_backup(position, &begun))
    };
    if let Some(named) = named {
        let backup = repository.backup(named).map_err(Failure::new)?;
        let meta = Meta::read(named, &backup.manifest().meta)?;
        return match is_before(backup.manifest(), &meta) {
            true => Ok(backup),
            false => Err(Failure::new(format!(
                "backup {named} does not lead to {point}: it is of later, or was made without a feed of changes; leave \
                 --backup out, or name an earlier one"
            ))),
        };
    }
    let listed = repository.backups().map_err(Failure::new)?;
    let whole =
        listed.iter().rev().filter_map(|one| Some((&one.name, one.manifest.as_ref().ok()?)));
    let known = whole.filter_map(|(name, manifest)| {
        Some((name, manifest, Meta::read(&name.to_string(), &manifest.meta).ok()?))
    });
    let known: Vec<_> = known.collect();
    // Positions count the commits of one store.
    let history = known.first().map(|(.., meta)| meta.incarnation.clone());
    let fits = known.iter().filter(|(_, manifest, meta)| {
        let is_same =
            matches!(point, Point::Time(_)) || Some(&meta.incarnation) == history.as_ref();
        is_same && is_before(manifest, meta)
    });
    let Some((name, ..)) = fits.max_by_key(|(name, ..)| name.number) else {
        return Err(Failure::new(format!("no backup is as old as {point}")));
    };
    // One that cannot be read may be nearer to that time, or say that positions are those of another store.
    let newest = known.first().map(|(name, ..)| name.number);
    let is_missed = |one: &&Listed| match point {
        Point::Time(_) => one.name > **name && point.takes_backup(0, &one.name.time()),
        Point::Position(_) => Some(one.name.number) > newest,
    };
    match listed.iter().rev().filter(is_missed).find_map(|one| one.manifest.as_ref().err()) {
        Some(why) => Err(Failure::new(format!(
            "{why}; {point} may need it: add --backup {name} to begin with that one all the same"
        ))),
        None => repository.backup(&name.to_string()).map_err(Failure::new),
    }
}

/// Writes a backup's files, each synced.
fn unpack(
    backup: &Backup<'_>,
    folder: &Path,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), Failure> {
    for file in backup.files() {
        let path = folder.join(&file.path);
        let system = |why: io::Error| Failure::system("write", &path, &why);
        let above = path.parent().unwrap_or(folder);
        DirBuilder::new().recursive(true).mode(0o700).create(above).map_err(system)?;
        let is_store = file.path == STORE_FILE;
        let mut contents = backup.read(&file.path).map_err(Failure::new)?;
        // A first start of the folder's own may have made one.
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(true).mode(file.mode & 0o777);
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, options.open(&path).map_err(system)?);
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut done = 0;
        loop {
            let read = io::Read::read(&mut contents, &mut buffer);
            let read = read.map_err(|why| Failure::new(format!("{}: {why}", file.path)))?;
            if read == 0 {
                break;
            }
            out.write_all(&buffer[..read]).map_err(system)?;
            done += read as u64;
            if is_store {
                progress(done, file.bytes);
            }
        }
        out.into_inner().map_err(|why| system(why.into_error()))?.sync_all().map_err(system)?;
        File::open(above).and_then(|above| above.sync_all()).map_err(system)?;
    }
    Ok(())
}
