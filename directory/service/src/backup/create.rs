//! A backup, made.

use super::meta::{Meta, With};
use super::place::Place;
use crate::offline;
use keyway_backup::{FeedPosition, Repository};
use keyway_folder::data::{self, name};
use keyway_folder::history::{self, Done};
use keyway_host::failure::Failure;
use keyway_host::timestamp::Timestamp;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The store's file in a backup.
pub(super) const STORE_FILE: &str = "store/data.mdb";

/// Names in a data folder that are of the process which uses it, or of the store.
const NEVER: [&str; 9] = [
    name::VERSION,
    name::LOCK,
    name::HISTORY,
    name::RUNNING,
    name::METER,
    name::REINDEX,
    name::LOG,
    name::STORE,
    name::FEED_CHECK,
];
/// Names that the configuration is in; all others are taken for keys. A server does not start with a certificate
/// without its key, so that these go together.
const CONFIG: [&str; 3] = [name::CONFIGURATION, name::ACCEPTED, name::SCHEMA];
/// Levels of folders that are looked into.
const DEPTH_MAX: usize = 8;

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
    recorded(folder, place, || {
        let (repository, key_file) = place.open_or_create()?;
        let mut created = create_in(folder, &repository, with, progress)?;
        created.key_file = key_file.map(Path::to_owned);
        Ok(created)
    })
}

/// Writes down in the folder's history what came of a backup.
pub(super) fn recorded(
    folder: &Path,
    place: &Place,
    make: impl FnOnce() -> Result<Created, Failure>,
) -> Result<Created, Failure> {
    let begun = Instant::now();
    let made = make();
    let mut done = Done::new(history::BACKUP, Some(&place.folder));
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

/// As [`create`], in a repository that is open, without a line in the folder's history.
pub(super) fn create_in(
    folder: &Path,
    repository: &Repository,
    with: With,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Created, Failure> {
    data::is_not_own(folder, repository.folder())?;
    let store = offline::store_to_read(folder)?;
    let unreadable =
        |why: keyway_store::Error| Failure::new(format!("cannot read the store: {why}"));
    let mut snapshot = store.snapshot().map_err(unreadable)?;
    // The time is that of the state or a later one, so that a restore to it has no change that was made after it.
    let mut creating = repository.begin(Timestamp::now()).map_err(Failure::new)?;
    let position = snapshot.feed_head().map_err(unreadable)?.map(|head| head.position);
    let total = snapshot.length();
    let incarnation = snapshot.incarnation();
    let meta = Meta {
        incarnation: data::shown(incarnation),
        epoch: snapshot.epoch().map_err(unreadable)?,
        position,
        entries: snapshot.entries().map_err(unreadable)?,
        with,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let mut bytes = 0;
    let mut new_bytes = 0;
    let mut count = |put: keyway_backup::Put| {
        bytes += put.bytes;
        new_bytes += put.new_bytes;
    };
    let put = creating.put(STORE_FILE, 0o600, &mut snapshot, &mut |done| progress(done, total));
    count(put.map_err(Failure::new)?);
    // The server may use its pages again.
    drop(snapshot);
    for file in files(folder, with)? {
        let Some((mut open, mode)) = open_plain(&folder.join(&file))? else { continue };
        let put = creating.put(&file, mode, &mut open, &mut |_| ()).map_err(Failure::new)?;
        count(put);
    }
    let feed = position.map(|position| FeedPosition { history: incarnation, position });
    let value = serde_json::to_value(&meta).map_err(Failure::new)?;
    let name = creating.finish(value, feed).map_err(Failure::new)?.to_string();
    Ok(Created { name, meta, bytes, new_bytes, key_file: None })
}

/// Opens a plain file, and gives its rights; `None` if it is gone, or is something else by now. The folder may belong to
/// another user than this process, who can put a link or a pipe in a file's place at any moment.
fn open_plain(path: &Path) -> Result<Option<(File, u32)>, Failure> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = File::options().read(true).custom_flags(flags.bits() as i32).open(path);
    let system = |why: io::Error| Failure::system("read", path, &why);
    let file = match opened {
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(why) if why.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => return Ok(None),
        opened => opened.map_err(system)?,
    };
    let metadata = file.metadata().map_err(system)?;
    Ok(metadata.is_file().then(|| (file, metadata.permissions().mode() & 0o777)))
}

/// The plain files of a data folder that are to go with its store, by their paths in it.
fn files(folder: &Path, with: With) -> Result<Vec<String>, Failure> {
    let mut files = Vec::new();
    for name in names(folder)? {
        let is_config = CONFIG.contains(&name.as_str());
        let is_wanted = if is_config { with.config } else { with.keys };
        if is_wanted && !NEVER.contains(&name.as_str()) {
            gather(folder, name, DEPTH_MAX, &mut files)?;
        }
    }
    files.sort_unstable();
    Ok(files)
}

fn gather(
    folder: &Path,
    name: String,
    levels: usize,
    files: &mut Vec<String>,
) -> Result<(), Failure> {
    let path = folder.join(&name);
    let kind = match fs::symlink_metadata(&path) {
        Ok(metadata) => metadata.file_type(),
        // It was removed or replaced meanwhile.
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(why) => return Err(Failure::system("look at", &path, &why)),
    };
    // Pages of counters are the process's that uses the folder, as sockets are.
    if kind.is_file() && !name.ends_with("/meter") {
        files.push(name);
    } else if kind.is_dir() && levels > 0 {
        for below in names(&path)? {
            gather(folder, format!("{name}/{below}"), levels - 1, files)?;
        }
    }
    Ok(())
}

fn names(folder: &Path) -> Result<Vec<String>, Failure> {
    let system = |why: io::Error| Failure::system("read", folder, &why);
    let mut names = Vec::new();
    for found in fs::read_dir(folder).map_err(system)? {
        let name = found.map_err(system)?.file_name();
        // Files that are being written have such names for a moment.
        names.extend(name.into_string().ok().filter(|name| !name.starts_with('.')));
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// What stands in a file's place by the time it is opened: nothing waits for it, and no link is followed.
    #[test]
    fn links_pipes_and_folders_in_the_place_of_files_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "text").unwrap();
        symlink(at("file"), at("link")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe"), rustix::fs::Mode::RUSR).unwrap();
        assert!(open_plain(&at("file")).unwrap().is_some());
        for name in ["link", "pipe", "none", "."] {
            assert!(open_plain(&at(name)).unwrap().is_none(), "{name}");
        }
    }
}
