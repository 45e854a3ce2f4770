//! A new data folder, made of a backup.

use super::files::STORE_FILE;
use super::meta::{self, Meta};
use super::place::Place;
use super::point::Point;
use super::segments::{self, Applied};
use crate::instance::{Instance, describe};
use crate::lineage;
use crate::scratch::Scratch;
use keyway_backup::{Backup, BackupName, Listed, Repository};
use keyway_config::{Configuration, applied};
use keyway_folder::data::{Folder, StoreId, name, shown};
use keyway_host::failure::Failure;
use keyway_host::timestamp::{Timestamp, now_unix_us, parse_unix_us, show_unix_us};
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
    /// The time up to which it is known that nothing is missing, in microseconds since 1970, if a later one was asked
    /// for: the repository does not say whether there were changes between them.
    pub not_known_from: Option<u64>,
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
    let listed = repository.backups().map_err(Failure::new)?;
    let known = known(&listed);
    let backup = choose(repository, &listed, &known, backup, point)?;
    let meta = Meta::read(&backup.name().to_string(), &backup.manifest().meta)?;
    let folder = Folder::open(folder, Timestamp::now())?;
    unpack(&backup, folder.path(), progress)?;
    let store = folder.file(name::STORE);
    let cannot = |why: &dyn std::fmt::Display| Failure::new(format!("the restored store: {why}"));
    let (incarnation, epoch) = keyway_store::restored(&store, &[]).map_err(|why| cannot(&why))?;
    folder.note_store(incarnation)?;
    if !folder.has(name::CONFIGURATION)
        && let Some(text) = applied::of_folder(folder.path())?
    {
        folder.write(name::CONFIGURATION, text.as_bytes())?;
    }
    let feed = meta.position.is_some();
    let options = Options { sync: false, feed, identity: Some(ENTRY_UUID), ..Options::default() };
    let store = Store::open(&store, options).map_err(|why| cannot(&why))?;
    let mut position = meta.position;
    let mut was = meta.history()?;
    let mut not_known_from = None;
    if let (Some(point), Some(after)) = (point, meta.position) {
        let reached = replay(&store, repository, &known, (backup.name(), &meta), after, point)?;
        position = Some(reached.position);
        (was, not_known_from) = (reached.history, reached.not_known_from);
    }
    lineage::add(&store, was, position)?;
    store.close().map_err(|why| cannot(&why))?;
    let is_changed = position != meta.position;
    let entries = finish(&folder, is_changed)?;
    if !is_changed && entries != meta.entries {
        return Err(Failure::new(format!(
            "the backup says that it has {} entries, and there are {entries}",
            meta.entries
        )));
    }
    let (backup, incarnation) = (backup.name().to_string(), shown(incarnation));
    Ok(Restored { backup, meta, position, incarnation, epoch, entries, not_known_from })
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

/// A backup that can be read.
struct Known {
    name: BackupName,
    meta: Meta,
}

/// The backups that can be read, the oldest first.
fn known(listed: &[Listed]) -> Vec<Known> {
    let known = listed.iter().filter_map(|one| {
        let manifest = one.manifest.as_ref().ok()?;
        let meta = Meta::read(&one.name.to_string(), &manifest.meta).ok()?;
        Some(Known { name: one.name.clone(), meta })
    });
    known.collect()
}

/// The backup to begin with.
fn choose<'r>(
    repository: &'r Repository,
    listed: &[Listed],
    known: &[Known],
    named: Option<&str>,
    point: Option<&Point>,
) -> Result<Backup<'r>, Failure> {
    let Some(point) = point else {
        return repository.backup(named.unwrap_or("latest")).map_err(Failure::new);
    };
    if let Point::Time(unix_us) = point
        && *unix_us > now_unix_us()
    {
        return Err(Failure::new(format!("{point} has not come yet")));
    }
    let takes = |meta: &Meta| {
        meta.position.is_some_and(|position| point.takes_backup(position, meta.taken_unix_us))
    };
    if let Some(named) = named {
        let backup = repository.backup(named).map_err(Failure::new)?;
        let meta = Meta::read(&backup.name().to_string(), &backup.manifest().meta)?;
        return match takes(&meta) {
            true => Ok(backup),
            false => Err(Failure::new(format!(
                "backup {named} is of a state behind {point} (position {}, {}), or has no feed: leave --backup out, or \
                 name an older one",
                meta.position.unwrap_or_default(),
                show_unix_us(meta.taken_unix_us)
            ))),
        };
    }
    let path = path_to(repository, known, point)?;
    let is_on_path = |meta: &Meta| {
        let leads = |(incarnation, until): &(&str, Option<u64>)| {
            *incarnation == meta.incarnation && (until.is_none() || meta.position <= *until)
        };
        path.is_empty() || path.iter().any(leads)
    };
    let fits = known.iter().filter(|one| takes(&one.meta) && is_on_path(&one.meta));
    // The nearest; of a directory that was restored, those of before may come later in its positions.
    let nearest = fits.max_by_key(|one| match point {
        Point::Position(_) => (one.meta.position, one.name.number),
        Point::Time(_) => (None, one.name.number),
    });
    let Some(Known { name, .. }) = nearest else {
        return Err(Failure::new(format!("no backup is as old as {point}")));
    };
    // One that cannot be read may be nearer to that time, or say that positions are those of another store.
    let newest = known.last().map(|newest| newest.name.number);
    let is_missed = |one: &&Listed| match point {
        Point::Time(wanted) => {
            let begun = parse_unix_us(&one.name.time());
            one.name > *name && begun.is_some_and(|begun| begun <= *wanted)
        }
        Point::Position(_) => Some(one.name.number) > newest,
    };
    match listed.iter().rev().filter(is_missed).find_map(|one| one.manifest.as_ref().err()) {
        Some(why) => Err(Failure::new(format!(
            "{why}; {point} may need it: add --backup {name} to begin with that one all the same"
        ))),
        None => repository.backup(&name.to_string()).map_err(Failure::new),
    }
}

/// The stores whose changes lead to a point: a position is that of the newest store and of those that it was before, if
/// they have come so far. Else it is one of before the directory was restored or rolled back, which the backup that is
/// begun with leads to; as a time is.
fn path_to<'k>(
    repository: &Repository,
    known: &'k [Known],
    point: &Point,
) -> Result<Vec<(&'k str, Option<u64>)>, Failure> {
    let (Point::Position(wanted), Some(newest)) = (point, known.last()) else {
        return Ok(Vec::new());
    };
    let segments = repository.segments(newest.meta.history()?).map_err(Failure::new)?;
    let of_store = known.iter().filter(|one| one.meta.incarnation == newest.meta.incarnation);
    let positions = of_store.filter_map(|one| one.meta.position);
    let last = positions.chain(segments.iter().map(|segment| segment.last)).max();
    Ok(if last >= Some(*wanted) { newest.meta.path() } else { Vec::new() })
}

/// The state that changes led to.
struct Reached {
    position: u64,
    /// The store that had come to it.
    history: StoreId,
    not_known_from: Option<u64>,
}

/// Makes the changes behind a backup again, up to a point: those of its store, and of a store that this was made before
/// the position that was asked for.
fn replay(
    store: &Store,
    repository: &Repository,
    known: &[Known],
    (backup, meta): (&BackupName, &Meta),
    after: u64,
    point: &Point,
) -> Result<Reached, Failure> {
    let path = path_to(repository, known, point)?;
    let on = path.iter().skip_while(|(incarnation, _)| *incarnation != meta.incarnation);
    let mut on: Vec<(&str, Option<u64>)> = on.copied().collect();
    // A backup that was named may be one of what became of the store after another was made of it.
    let is_left = |(_, end): &(&str, Option<u64>)| end.is_some_and(|end| after > end);
    if on.first().is_none_or(is_left) {
        on = vec![(&meta.incarnation, None)];
    }
    let mut reached = Reached { position: after, history: meta.history()?, not_known_from: None };
    for (incarnation, end) in on {
        let history = meta::history(incarnation)?;
        let from = (history, reached.position, end);
        let applied = segments::apply(store, repository, from, point, &mut |_| ())?;
        if applied.last > reached.position {
            reached.history = history;
        }
        reached.position = applied.last;
        if applied.is_exact || matches!(point, Point::Position(wanted) if *wanted == applied.last) {
            return Ok(reached);
        }
        if let Point::Time(wanted) = point {
            let begun_with = (incarnation, backup);
            reached.not_known_from = known_until(known, begun_with, &applied, *wanted)?;
            return Ok(reached);
        }
    }
    match point {
        Point::Position(wanted) if reached.position < *wanted => Err(Failure::new(format!(
            "position {wanted} is not in these backups: from this one on they have all changes up to position {}",
            reached.position
        ))),
        _ => Ok(reached),
    }
}

/// The time up to which all is there, if that is not the one that was asked for.
///
/// # Errors
/// If changes are missing of which some may have been made up to that time.
fn known_until(
    known: &[Known],
    (incarnation, backup): (&str, &BackupName),
    applied: &Applied,
    wanted: u64,
) -> Result<Option<u64>, Failure> {
    let last = applied.last;
    let of_store = || known.iter().filter(|one| one.meta.incarnation == incarnation);
    let later = of_store().filter_map(|one| one.meta.position).filter(|position| *position > last);
    if let Some(next) = later.chain(applied.goes_on_at.map(|first| first - 1)).min() {
        return Err(Failure::new(format!(
            "the changes {} to {next} are missing in the repository, and some of them may have been made before {}: \
             restore what is before them (backup {backup}, --position {last}), or the next backup (keyway backup list)",
            last + 1,
            show_unix_us(wanted)
        )));
    }
    let taken = of_store().filter(|one| one.meta.position == Some(last));
    let taken = taken.map(|one| one.meta.taken_unix_us).max().unwrap_or_default();
    let until = taken.max(applied.last_unix_us);
    Ok((until < wanted).then_some(until))
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
