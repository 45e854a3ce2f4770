//! The folder that snapshots are in: whose it is, what they are called, and what was cut off there.

use super::meta::Meta;
use crate::plain_file;
use keyway_folder::data::{self, State, name};
use keyway_host::failure::Failure;
use keyway_host::output;
use keyway_host::timestamp::Timestamp;
use keyway_store::{Options, Store};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The longest name, in bytes.
const NAME_BYTES_MAX: usize = 64;
/// The data file of a snapshot, as of a store.
pub(super) const DATA: &str = "data.mdb";
/// The store in the folder of a rollback: the new one, and once they have changed places the one of before.
pub(super) const STORE: &str = "store";
/// The name of a snapshot that is being made.
pub(super) const MAKING: &str = ".making";
/// The name of one that is being removed.
const DELETING: &str = ".deleting";
/// The folder of a rollback that does not keep the store of before.
pub(super) const DISCARDING: &str = ".discarding";
/// The folder of one that does, with the name behind it under which that is kept.
pub(super) const KEEPING: &str = ".keeping.";
/// The unit in which the system counts a file's room.
const BLOCK_BYTES: u64 = 512;

/// A snapshot as it is listed.
#[derive(Debug)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// What it says of itself, or how it is damaged.
    pub meta: Result<Meta, Failure>,
    /// The bytes that it takes of the disk; those that it shares with the store are counted.
    pub bytes: u64,
}

/// The folder of the snapshots.
pub(super) struct Snapshots {
    path: PathBuf,
    /// Locked while this process changes something there.
    file: File,
}

/// Checks a name that was given.
///
/// # Errors
/// If no snapshot can have it.
pub(super) fn check_name(name: &str) -> Result<(), Failure> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let begins_well = name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    match begins_well && name.len() <= NAME_BYTES_MAX && name.chars().all(is_plain) {
        true => Ok(()),
        false => Err(Failure::usage(format!(
            "{name:?} cannot be a snapshot's name: it should have at most {NAME_BYTES_MAX} letters (a to z), \
             digits, '-', '_' and '.', and begin with a letter, a digit or '_'"
        ))),
    }
}

/// A time as a name has it.
pub(super) fn compact(time: Timestamp) -> String {
    time.to_string().replace(['-', ':'], "")
}

/// Refuses a folder that is no data folder.
fn is_data(folder: &Path) -> Result<(), Failure> {
    match data::look(folder)? {
        State::Ours => Ok(()),
        State::Absent => Err(Failure::new(format!(
            "{} holds no data; name the folder with --data DIR",
            folder.display()
        ))),
    }
}

/// Makes names in a folder durable.
pub(super) fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

impl Snapshots {
    /// The folder for a process that only looks; `None` if there is none. What was cut off there is tidied up if no
    /// other process is at work there.
    ///
    /// # Errors
    /// If it is not the data folder's.
    pub fn look(folder: &Path) -> Result<Option<Snapshots>, Failure> {
        is_data(folder)?;
        let path = folder.join(name::SNAPSHOTS);
        let found = fs::symlink_metadata(&path);
        if found.is_err_and(|why| why.kind() == io::ErrorKind::NotFound) {
            return Ok(None);
        }
        let snapshots = Snapshots::open(path)?;
        if flock(&snapshots.file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            // The disk may be one that is only read.
            let _ = snapshots.tidy();
        }
        Ok(Some(snapshots))
    }

    /// The folder for a process that changes it, made if it is not there. One that does so already is waited for.
    ///
    /// # Errors
    /// If it cannot be made, or is not the data folder's.
    pub fn lock(folder: &Path) -> Result<Snapshots, Failure> {
        is_data(folder)?;
        let path = folder.join(name::SNAPSHOTS);
        let made = match DirBuilder::new().mode(0o700).create(&path) {
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made.and_then(|()| sync(folder)),
        };
        made.map_err(|why| Failure::system("make", &path, &why))?;
        let snapshots = Snapshots::open(path)?;
        let locked = flock(&snapshots.file, FlockOperation::LockExclusive);
        locked.map_err(|why| Failure::system("lock", &snapshots.path, &why.into()))?;
        snapshots.tidy()?;
        Ok(snapshots)
    }

    fn open(path: PathBuf) -> Result<Snapshots, Failure> {
        let system = |why: io::Error| Failure::system("open", &path, &why);
        if let Some(fault) = fault(&path).map_err(system)? {
            let path = path.display();
            return Err(Failure::new(format!(
                "{path}: {fault}, and snapshots are kept in a folder of the data folder's owner alone; move it \
                 away, or change that"
            )));
        }
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW;
        let file = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(&path);
        let file = file.map_err(system)?;
        Ok(Snapshots { path, file })
    }

    /// Where something in it is.
    pub fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Refuses a name that is taken.
    ///
    /// # Errors
    /// If it is.
    pub fn is_free(&self, name: &str) -> Result<(), Failure> {
        match fs::symlink_metadata(self.at(name)) {
            Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(()),
            _ => Err(Failure::new(format!(
                "there is a snapshot {name} already; choose another name, or remove it with keyway snapshot \
                 delete {name}"
            ))),
        }
    }

    /// A name that is not taken: this one, or it and a number.
    pub fn free_name(&self, wanted: &str) -> String {
        let numbered = (2_u64..).map(|number| format!("{wanted}-{number}"));
        let mut names = std::iter::once(wanted.to_owned()).chain(numbered);
        names.find(|name| self.is_free(name).is_ok()).unwrap_or_default()
    }

    /// A snapshot by its name.
    ///
    /// # Errors
    /// If there is none.
    pub fn find(&self, name: &str) -> Result<Listed, Failure> {
        check_name(name)?;
        let path = self.at(name);
        match fs::symlink_metadata(&path) {
            Err(why) if why.kind() == io::ErrorKind::NotFound => Err(Failure::new(format!(
                "there is no snapshot {name} in {}; keyway snapshot list shows those that there are",
                self.path.display()
            ))),
            Err(why) => Err(Failure::system("look at", &path, &why)),
            Ok(_) => Ok(self.listed(name)),
        }
    }

    /// All of them, the oldest first, and behind them those that are damaged.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn all(&self) -> Result<Vec<Listed>, Failure> {
        let visible = self.names()?.into_iter().filter(|name| !name.starts_with('.'));
        let mut all: Vec<Listed> = visible.map(|name| self.listed(&name)).collect();
        let time = |one: &Listed| one.meta.as_ref().ok().map(|meta| meta.time.clone());
        all.sort_by_cached_key(|one| (one.meta.is_err(), time(one), one.name.clone()));
        Ok(all)
    }

    fn names(&self) -> Result<Vec<String>, Failure> {
        let system = |why: io::Error| Failure::system("read", &self.path, &why);
        let mut names = Vec::new();
        for found in fs::read_dir(&self.path).map_err(system)? {
            // No snapshot has another name.
            names.extend(found.map_err(system)?.file_name().into_string());
        }
        Ok(names)
    }

    fn listed(&self, name: &str) -> Listed {
        let path = self.at(name);
        let mut bytes = 0;
        let meta = (|| {
            let system = |why: io::Error| Failure::system("read", &path, &why);
            if let Some(fault) = fault(&path).map_err(system)? {
                return Err(Failure::new(fault));
            }
            let missing = |what: &str| Failure::new(format!("it has no file {what}"));
            let (file, _) = plain_file::open(&path.join(DATA))?.ok_or_else(|| missing(DATA))?;
            let metadata = file.metadata().map_err(system)?;
            bytes = metadata.blocks() * BLOCK_BYTES;
            let meta = Meta::read(&path)?.ok_or_else(|| missing("meta.json"))?;
            match metadata.len() == meta.length {
                true => Ok(meta),
                false => Err(Failure::new(format!(
                    "{DATA} has {} bytes, and had {}",
                    metadata.len(),
                    meta.length
                ))),
            }
        })();
        Listed { name: name.to_owned(), meta, bytes }
    }

    /// An empty folder of this name, which begins with a dot.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn draft(&self, name: &str) -> Result<PathBuf, Failure> {
        let path = self.at(name);
        // What comes into it is to last: its own name, too.
        let made = DirBuilder::new().mode(0o700).create(&path).and_then(|()| sync(&self.path));
        made.map_err(|why| Failure::system("make", &path, &why))?;
        Ok(path)
    }

    /// Gives a draft that is whole its name.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn put(&self, draft: &Path, name: &str) -> Result<(), Failure> {
        let put = fs::rename(draft, self.at(name)).and_then(|()| sync(&self.path));
        put.map_err(|why| Failure::system("put in place", &self.at(name), &why))
    }

    /// Removes a snapshot. It is gone at once, and one that is half removed is no snapshot.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn delete(&self, name: &str) -> Result<(), Failure> {
        let doomed = self.at(DELETING);
        self.put(&self.at(name), DELETING)?;
        remove(&doomed).map_err(|why| Failure::system("remove", &doomed, &why))
    }

    /// Removes what was cut off, and gives the store its name that a rollback has kept and not named yet.
    fn tidy(&self) -> Result<(), Failure> {
        for name in self.names()?.into_iter().filter(|name| name.starts_with('.')) {
            let path = self.at(&name);
            let system = |why: io::Error| Failure::system("remove", &path, &why);
            let is_folder = fs::symlink_metadata(&path).map_err(system)?.is_dir();
            match name.strip_prefix(KEEPING).filter(|_| is_folder) {
                Some(kept) => match has_kept(&path) {
                    Ok(true) => self.keep(&path, kept)?,
                    Ok(false) => remove(&path).map_err(system)?,
                    Err(why) => output::note(format_args!(
                        "what a rollback that was cut off has left in {} cannot be read ({why}); look at it, \
                         and remove it",
                        path.display()
                    )),
                },
                None => remove(&path).map_err(system)?,
            }
        }
        Ok(())
    }

    /// Makes a snapshot of the store in the folder of a rollback, in which that lies once it is not the data folder's
    /// any more.
    ///
    /// # Errors
    /// If the system refuses; [`Snapshots::lock`] does it again.
    pub fn keep(&self, draft: &Path, name: &str) -> Result<(), Failure> {
        let (store, data) = (draft.join(STORE), draft.join(DATA));
        let kept = (|| {
            if store.join(DATA).exists() {
                fs::rename(store.join(DATA), &data)?;
                // The file has its second name before its first one goes.
                sync(draft)?;
            }
            remove(&store)?;
            sync(draft)
        })();
        kept.map_err(|why| Failure::system("keep", &store, &why))?;
        self.put(draft, &self.free_name(name))
    }
}

/// Whether the folder of a rollback has the store in it that was the data folder's: it is described there before the two
/// change places.
fn has_kept(draft: &Path) -> Result<bool, Failure> {
    let Ok(Some(meta)) = Meta::read(draft) else { return Ok(false) };
    let store = draft.join(STORE);
    if draft.join(DATA).exists() {
        return Ok(true);
    }
    if !store.join(DATA).exists() {
        return Ok(false);
    }
    let opened = Store::open_to_read(&store, &Options::default()).map_err(Failure::new)?;
    Ok(data::shown(opened.incarnation()) == meta.incarnation)
}

/// Why a folder is none of this user's alone; `None` if it is.
fn fault(path: &Path) -> io::Result<Option<&'static str>> {
    let found = fs::symlink_metadata(path)?;
    Ok(match () {
        () if !found.is_dir() => Some("it is no folder"),
        () if found.uid() != geteuid().as_raw() => Some("it is another user's"),
        () if found.mode() & 0o077 != 0 => Some("others than its owner may look into it"),
        () => None,
    })
}

/// Removes a folder and what is in it, or a file or a link by itself.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(why) if why.raw_os_error() == Some(Errno::NOTDIR.raw_os_error()) => {
            fs::remove_file(path)
        }
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use keyway_folder::data::Folder;
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    fn data_folder() -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        Folder::open(folder.path(), Timestamp::now()).unwrap();
        folder
    }

    #[test]
    fn names() {
        for name in ["a", "_x", "20261124T083000Z", "before-1.2", &"n".repeat(64)] {
            check_name(name).unwrap();
        }
        let long = "n".repeat(65);
        for name in ["", ".", "..", ".a", "-a", "a/b", "a b", "a\n", "ä", "\0", &long] {
            assert_eq!(check_name(name).unwrap_err().status(), 2, "{name:?}");
        }
        let time = Timestamp::from_unix_s(1_800_000_000);
        assert_eq!(compact(time), "20270115T080000Z");
    }

    #[test]
    fn what_was_cut_off_goes_and_links_are_not_followed() {
        let folder = data_folder();
        let elsewhere = tempfile::tempdir().unwrap();
        fs::write(elsewhere.path().join("file"), "x").unwrap();
        assert!(Snapshots::look(folder.path()).unwrap().is_none());
        let snapshots = Snapshots::lock(folder.path()).unwrap();
        fs::create_dir_all(snapshots.at(MAKING).join("below")).unwrap();
        symlink(elsewhere.path(), snapshots.at(MAKING).join("below/link")).unwrap();
        symlink(elsewhere.path(), snapshots.at(DELETING)).unwrap();
        symlink(elsewhere.path(), snapshots.at(&format!("{KEEPING}x"))).unwrap();
        fs::create_dir(snapshots.at(&format!("{KEEPING}y"))).unwrap();
        symlink(elsewhere.path(), snapshots.at("link")).unwrap();
        drop(snapshots);
        let snapshots = Snapshots::lock(folder.path()).unwrap();
        assert_eq!(snapshots.names().unwrap(), ["link"]);
        let why = snapshots.find("link").unwrap().meta.unwrap_err();
        assert_eq!(why.to_string(), "it is no folder");
        snapshots.delete("link").unwrap();
        assert_eq!(snapshots.names().unwrap(), [""; 0]);
        assert!(elsewhere.path().join("file").exists());
        assert_eq!(snapshots.free_name("a"), "a");
        fs::create_dir(snapshots.at("a")).unwrap();
        assert_eq!(snapshots.free_name("a"), "a-2");
        assert!(snapshots.is_free("a").is_err());
    }

    #[test]
    fn a_folder_of_others_or_a_link_is_refused() {
        let folder = data_folder();
        let path = folder.path().join(name::SNAPSHOTS);
        symlink("/", &path).unwrap();
        for refused in
            [Snapshots::lock(folder.path()), Snapshots::look(folder.path()).map(Option::unwrap)]
        {
            let why = refused.err().unwrap().to_string();
            assert!(why.contains("it is no folder"), "{why}");
        }
        fs::remove_file(&path).unwrap();
        DirBuilder::new().mode(0o755).create(&path).unwrap();
        assert!(Snapshots::lock(folder.path()).is_err());
        let none = tempfile::tempdir().unwrap();
        assert!(Snapshots::lock(none.path()).is_err() && Snapshots::look(none.path()).is_err());
        assert!(!none.path().join(name::SNAPSHOTS).exists());
    }
}
