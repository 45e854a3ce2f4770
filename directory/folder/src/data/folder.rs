//! The data folder: whose it is, and how files get into it.

use super::files::{
    PASSED, is_private, other_owner, plain_file, read, read_secret, remove_if_there, write,
    write_secret,
};
use super::lock::lock;
use super::name;
use keyway_host::failure::Failure;
use keyway_host::timestamp::Timestamp;
use keyway_store::Store;
use rustix::fs::{Access, access};
use std::fs::{self, DirBuilder, File};
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, lchown};
use std::path::{Path, PathBuf, absolute};
use zeroize::Zeroizing;

/// The form of the data folder that this program makes and reads.
const FORMAT: u32 = 1;
const FOLDER_MODE: u32 = 0o700;

/// The folder at the top of some file systems.
const LOST_AND_FOUND: &str = "lost+found";
/// Files that may be in a folder whose creation was not finished, those of a file system, and
/// those that a user may have put there for the first start to find.
const BEFORE_VERSION: [&str; 11] = [
    name::LOCK,
    name::VERSION,
    "version.new",
    LOST_AND_FOUND,
    name::CRYPTOD,
    name::CONFIGURATION,
    name::SCHEMA,
    name::SERVER_CERTIFICATE,
    name::SERVER_KEY,
    name::CA_CERTIFICATE,
    name::CA_KEY,
];
/// When a folder was made whose version file does not say it.
const UNKNOWN_TIME: &str = "at an unknown time";

/// The kind of a path, before anything is done to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing, or an empty folder.
    Absent,
    /// A data folder of this version.
    Ours,
}

/// Looks at what is at `path`, and changes nothing.
///
/// # Errors
/// If it is not a folder, not ours, another version's, or cannot be looked at.
pub fn look(path: &Path) -> Result<State, Failure> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(why) if why.kind() == ErrorKind::NotFound => return Ok(State::Absent),
        Err(why) if why.kind() == ErrorKind::NotADirectory => {
            let path = path.display();
            return Err(Failure::new(format!(
                "{path} is not a folder; name another with --data DIR"
            )));
        }
        Err(why) => return Err(Failure::system("read the data folder", path, &why)),
    };
    if read_version(path)?.is_some() || Store::is_at(&path.join(name::STORE)) {
        return Ok(State::Ours);
    }
    for entry in entries {
        let entry = entry.map_err(|why| Failure::system("read the data folder", path, &why))?;
        let is_known = BEFORE_VERSION.iter().any(|name| entry.file_name() == *name);
        let is_disk = entry.file_name() == name::STORE && is_new_disk(&entry.path());
        if !is_known && !is_disk {
            let path = path.display();
            return Err(Failure::new(format!(
                "{path} holds something else than Keyway's data (it is not empty and has no file \
                 `version`); name another folder with --data DIR"
            )));
        }
    }
    Ok(State::Absent)
}

/// Whether a folder is empty, but for that of an empty disk which is mounted there.
fn is_new_disk(path: &Path) -> bool {
    let only_its_own = |mut entries: fs::ReadDir| {
        entries.all(|entry| entry.is_ok_and(|entry| entry.file_name() == LOST_AND_FOUND))
    };
    fs::read_dir(path).is_ok_and(only_its_own)
}

/// The lines of the version file beside the form.
struct Version {
    /// When the folder was made.
    made: String,
    /// The identity of the store that it has had since.
    store: Option<StoreId>,
}

/// The random identity of a store.
pub type StoreId = [u8; 16];

/// How an identity is written.
pub fn shown(store: StoreId) -> String {
    format!("{:032x}", u128::from_be_bytes(store))
}

impl Version {
    fn text(&self) -> String {
        let mut text = format!("keyway-data {FORMAT}\n");
        if self.made != UNKNOWN_TIME || self.store.is_some() {
            text += &format!("made {}\n", self.made);
        }
        if let Some(store) = self.store {
            text += &format!("store {}\n", shown(store));
        }
        text
    }
}

/// The identity of the store that a data folder has had, as its version file says.
///
/// # Errors
/// As [`look`].
pub fn store_of(folder: &Path) -> Result<Option<StoreId>, Failure> {
    Ok(read_version(folder)?.and_then(|version| version.store))
}

/// That this process may look into a data folder, if there is one: to one that may not it looks empty.
///
/// # Errors
/// If it may not.
pub fn may_look(folder: &Path) -> Result<(), Failure> {
    match folder.join(name::VERSION).try_exists() {
        Ok(_) => Ok(()),
        Err(why) => Err(Failure::system("look into", folder, &why)),
    }
}

/// Refuses to write over what is a data folder's own, by whatever way a path leads there.
///
/// # Errors
/// If it does.
pub fn is_not_own(folder: &Path, path: &Path) -> Result<(), Failure> {
    let (Ok(folder), Some(name)) = (fs::canonicalize(folder), path.file_name()) else {
        return Ok(());
    };
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    let above = fs::canonicalize(above.unwrap_or(Path::new(".")));
    let full = fs::canonicalize(path).or(above.map(|above| above.join(name)));
    let first = full.ok().and_then(|full| {
        let below = full.strip_prefix(&folder).ok()?;
        below.iter().next().map(ToOwned::to_owned)
    });
    match first.filter(|first| name::ALL.iter().any(|own| first == own)) {
        None => Ok(()),
        Some(_) => Err(Failure::new(format!(
            "{} is the data folder's own; name a file elsewhere",
            path.display()
        ))),
    }
}

/// Whether a data folder has had a store, which may be gone.
///
/// # Errors
/// As [`look`].
pub fn has_had_store(folder: &Path) -> Result<bool, Failure> {
    Ok(store_of(folder)?.is_some() || Store::is_at(&folder.join(name::STORE)))
}

/// Checks the version file and reads it; `None` if there is no such file, or nothing in it but the zeros that
/// a cut of power can leave.
fn read_version(folder: &Path) -> Result<Option<Version>, Failure> {
    let path = folder.join(name::VERSION);
    may_look(folder)?;
    if !path.exists() {
        return Ok(None);
    }
    let text = read(&path)?;
    if text.bytes().all(|byte| byte == 0) {
        return Ok(None);
    }
    let mut lines = text.lines();
    let format = lines.next().and_then(|line| line.strip_prefix("keyway-data "));
    let Some(format) = format.and_then(|format| format.trim().parse::<u32>().ok()) else {
        let advice = match Store::is_at(&folder.join(name::STORE)) {
            true => "it is damaged, and a store is beside it: remove this file and start again",
            false => "name another folder with --data DIR",
        };
        let path = path.display();
        return Err(Failure::new(format!("{path} is not Keyway's; {advice}")));
    };
    if format != FORMAT {
        let folder = folder.display();
        return Err(Failure::new(format!(
            "{folder} is of data format {format}, and this version of Keyway reads {FORMAT}; \
             export it with the version that made it (`keyway directory export`) and import \
             that into a new folder"
        )));
    }
    let mut version = Version { made: UNKNOWN_TIME.to_owned(), store: None };
    for line in lines {
        if let Some(made) = line.strip_prefix("made ") {
            version.made = made.trim().to_owned();
        } else if let Some(store) = line.strip_prefix("store ") {
            let store = u128::from_str_radix(store.trim(), 16).map_err(|_| {
                let path = path.display();
                Failure::new(format!("{path}: \"{line}\" names no store; take the line out"))
            })?;
            version.store = Some(store.to_be_bytes());
        }
    }
    Ok(Some(version))
}

/// A data folder that this process has to itself.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    made: String,
    /// Holds the lock.
    lock: File,
}

impl Folder {
    /// Opens the data folder at `path`, made if there is none, for this process alone.
    ///
    /// # Errors
    /// As [`look`]; if another process uses it, if others can look into it, if it cannot be
    /// written to.
    pub fn open(path: &Path, now: Timestamp) -> Result<Folder, Failure> {
        let path =
            absolute(path).map_err(|why| Failure::system("find the data folder", path, &why))?;
        if look(&path)? == State::Absent {
            create(&path)?;
        }
        let lock = lock(&path)?;
        // The report of an earlier server does not describe this process.
        let _ = remove_if_there(&path.join(name::RUNNING));
        // Another process may have made it while we came to the lock.
        let fresh = look(&path)? == State::Absent;
        check(&path)?;
        let mut folder = Folder { path, made: now.to_string(), lock };
        match read_version(&folder.path)? {
            Some(version) => folder.made = version.made,
            None => {
                if !fresh {
                    folder.made = UNKNOWN_TIME.to_owned();
                }
                folder.write_version(None)?;
            }
        }
        Ok(folder)
    }

    fn write_version(&self, store: Option<StoreId>) -> Result<(), Failure> {
        let version = Version { made: self.made.clone(), store };
        self.write(name::VERSION, version.text().as_bytes())
    }

    /// Notes which store is in the folder, so that no other one is taken for it, nor made if it is gone.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn note_store(&self, store: StoreId) -> Result<(), Failure> {
        match store_of(&self.path)? {
            Some(noted) if noted == store => Ok(()),
            _ => self.write_version(Some(store)),
        }
    }

    /// Forgets which store is in the folder, so that one which takes its place is not refused at whatever moment this
    /// process ends; the next one that opens the store notes it.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn forget_store(&self) -> Result<(), Failure> {
        self.write_version(None)
    }

    /// The data folder whose lock another process holds, and has left to this one as well.
    ///
    /// # Errors
    /// If its version cannot be read.
    pub fn inherited(path: &Path, lock: File) -> Result<Folder, Failure> {
        let path =
            absolute(path).map_err(|why| Failure::system("find the data folder", path, &why))?;
        let made = read_version(&path)?.map_or_else(|| UNKNOWN_TIME.to_owned(), |it| it.made);
        Ok(Folder { path, made, lock })
    }

    /// The lock's file, for a process that is to hold it with this one.
    pub fn lock(&self) -> BorrowedFd<'_> {
        self.lock.as_fd()
    }

    /// Opens a folder that exists already.
    ///
    /// # Errors
    /// As [`Folder::open`], and if there is none.
    pub fn open_existing(path: &Path, now: Timestamp) -> Result<Folder, Failure> {
        match look(path)? {
            State::Ours => Folder::open(path, now),
            State::Absent => {
                let path = path.display();
                Err(Failure::new(format!("{path} holds no data; name the folder with --data DIR")))
            }
        }
    }

    /// Where it is, from the root.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// When it was made (RFC 3339, UTC).
    pub fn made(&self) -> &str {
        &self.made
    }

    /// Where a file of it is.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Where a file is that the configuration names: from here, if not from the root.
    pub fn file_at(&self, path: &Path) -> PathBuf {
        self.path.join(path)
    }

    /// Whether it has this file.
    pub fn has(&self, name: &str) -> bool {
        self.file(name).exists()
    }

    /// Puts a file that others may read in place, whole and durable, or not at all.
    ///
    /// # Errors
    /// If the system refuses; then what was there before is still there.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        write(&self.path, name, bytes)
    }

    /// Writes a secret (0600) in that way.
    ///
    /// # Errors
    /// As [`Folder::write`].
    pub fn write_secret(&self, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        write_secret(&self.path, name, bytes)
    }

    /// Makes a folder in it, if it is not there.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn make_folder(&self, name: &str) -> Result<(), Failure> {
        let path = self.file(name);
        let made = match DirBuilder::new().mode(FOLDER_MODE).create(&path) {
            Err(why) if why.kind() == ErrorKind::AlreadyExists => return Ok(()),
            made => made,
        };
        made.and_then(|()| {
            if let Some((user, group)) = other_owner(&self.path)? {
                lchown(&path, Some(user), Some(group))?;
            }
            File::open(&self.path)?.sync_all()
        })
        .map_err(|why| Failure::system("make", &path, &why))
    }

    /// Removes a file, for good; says whether it was there.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn remove(&self, name: &str) -> Result<bool, Failure> {
        let path = self.file(name);
        let removed = (|| {
            let there = self.has(name);
            remove_if_there(&path)?;
            File::open(&self.path)?.sync_all()?;
            Ok(there)
        })();
        removed.map_err(|why| Failure::system("remove", &path, &why))
    }

    /// Reads a file whole.
    ///
    /// # Errors
    /// If it is not there, too long, not text, or cannot be read.
    pub fn read(&self, name: &str) -> Result<String, Failure> {
        read(&self.file(name))
    }

    /// Reads a secret, which no user but its owner may be able to read.
    ///
    /// # Errors
    /// As [`Folder::read`], and if others can read it.
    pub fn read_secret(&self, name: &str) -> Result<Zeroizing<String>, Failure> {
        plain_file(&self.file(name))?;
        read_secret(&self.file(name))
    }
}

/// Makes the folder and those above it, or takes over an empty one. A cut of power takes none of
/// them away after that.
fn create(path: &Path) -> Result<(), Failure> {
    let above = || path.ancestors().skip(1);
    let first_kept = above().position(|folder| folder.exists()).unwrap_or(0);
    let made = match DirBuilder::new().mode(FOLDER_MODE).create(path) {
        Err(why) if why.kind() == ErrorKind::NotFound => {
            DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path)
        }
        Err(why) if why.kind() == ErrorKind::AlreadyExists => {
            let mode = fs::metadata(path).map_or(0, |it| it.mode() & PASSED) | FOLDER_MODE;
            fs::set_permissions(path, fs::Permissions::from_mode(mode))
        }
        other => other,
    };
    made.and_then(|()| above().take(first_kept + 1).try_for_each(|it| File::open(it)?.sync_all()))
        .map_err(|why| Failure::system("make the data folder", path, &why))
}

/// Whether no other user can look into the folder, and this process can write to it.
fn check(folder: &Path) -> Result<(), Failure> {
    is_private(folder)?;
    access(folder, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK)
        .map_err(|why| Failure::system("write to the data folder", folder, &why.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_unix_s(1_800_000_000);

    #[test]
    fn a_folder_is_made_once() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a/b");
        assert_eq!(look(&path).unwrap(), State::Absent);
        Folder::open(&path, NOW).unwrap();
        assert_eq!(look(&path).unwrap(), State::Ours);
        let folder = Folder::open(&path, Timestamp::from_unix_s(0)).unwrap();
        assert_eq!(folder.made(), "2027-01-15T08:00:00Z");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_version_that_a_power_cut_took_is_written_again() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("data");
        drop(Folder::open(&path, NOW).unwrap());
        drop(Store::open(&path.join(name::STORE), keyway_store::Options::default()).unwrap());
        let version = path.join(name::VERSION);
        for damage in ["", "\0\0\0"] {
            fs::write(&version, damage).unwrap();
            assert_eq!(look(&path).unwrap(), State::Ours);
            assert_eq!(Folder::open(&path, NOW).unwrap().made(), UNKNOWN_TIME);
            assert!(fs::read(&version).unwrap().starts_with(b"keyway-data 1\n"));
        }
        fs::write(&version, "?").unwrap();
        let why = look(&path).unwrap_err().to_string();
        assert!(why.contains("remove this file"), "{why}");
        fs::remove_file(&version).unwrap();
        assert_eq!(look(&path).unwrap(), State::Ours);
        // It is refused as well beside files that are not ours.
        fs::remove_dir_all(path.join(name::STORE)).unwrap();
        fs::write(path.join("letter"), "dear").unwrap();
        look(&path).unwrap_err();
    }

    #[test]
    fn a_folder_knows_the_store_that_it_has_had() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path(), NOW).unwrap();
        assert!(!has_had_store(place.path()).unwrap());
        folder.note_store([7; 16]).unwrap();
        drop(folder);
        assert_eq!(store_of(place.path()).unwrap(), Some([7; 16]));
        assert!(has_had_store(place.path()).unwrap());
        assert_eq!(Folder::open(place.path(), NOW).unwrap().made(), NOW.to_string());
        let version = place.path().join(name::VERSION);
        assert!(fs::read_to_string(&version).unwrap().starts_with("keyway-data 1\nmade 2027"));
        fs::write(&version, "keyway-data 1\nstore x\n").unwrap();
        assert!(look(place.path()).unwrap_err().to_string().contains("take the line out"));
    }

    #[test]
    fn a_file_is_replaced_whole() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path(), NOW).unwrap();
        folder.write_secret("s", b"one").unwrap();
        folder.write_secret("s", b"two").unwrap();
        assert_eq!(*folder.read_secret("s").unwrap(), "two");
        assert_eq!(fs::metadata(folder.file("s")).unwrap().mode() & 0o777, 0o600);
        assert!(!folder.has("s.new"));
    }

    #[test]
    fn a_first_start_that_was_cut_short_is_started_again() {
        let place = tempfile::tempdir().unwrap();
        for name in BEFORE_VERSION {
            fs::write(place.path().join(name), "").unwrap();
        }
        assert_eq!(look(place.path()).unwrap(), State::Absent);
        Folder::open(place.path(), NOW).unwrap();
        assert_eq!(look(place.path()).unwrap(), State::Ours);
    }
}
