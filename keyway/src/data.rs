//! The data folder: whose it is, who may use it now, and how files get into it.

use crate::limits::{LOCK_LOOK_EVERY, LOCK_OF_THE_DEAD_WAIT, SCHEMA_FILE_BYTES_MAX};
use keyway_host::failure::{Failure, is_disk_full, plain};
use keyway_host::timestamp::Timestamp;
use keyway_store::Store;
use rustix::fs::{Access, FlockOperation, OFlags, access, flock};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{
    DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown, lchown,
};
use std::path::{Path, PathBuf, absolute};
use std::thread;
use std::time::Instant;
use zeroize::Zeroizing;

/// The form of the data folder that this program makes and reads.
const FORMAT: u32 = 1;
const FOLDER_MODE: u32 = 0o700;
/// The data folder's group may pass through it, where cryptod is another user and has that group.
const PASSED: u32 = 0o010;
const SECRET_MODE: u32 = 0o600;
const PUBLIC_MODE: u32 = 0o644;
/// More than any file that is read whole may have, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The name of everything that Keyway keeps in its data folder.
pub mod name {
    /// The folder itself, where none is named.
    pub const DEFAULT: &str = "keyway-data";
    /// The folder's form, when it was made, and which store it has had since. A folder with it is ours.
    pub const VERSION: &str = "version";
    /// Locked, with the process's id in it, while a process uses the folder.
    pub const LOCK: &str = "lock";
    /// The configuration.
    pub const CONFIGURATION: &str = "keyway.toml";
    /// The text of a configuration that the administrator wants although it looks cut.
    pub const ACCEPTED: &str = "keyway.toml.accepted";
    /// What was imported, exported and checked.
    pub const HISTORY: &str = "history.jsonl";
    /// What a server that runs says of itself.
    pub const RUNNING: &str = "running.json";
    /// The page of counters.
    pub const METER: &str = "meter";
    /// The certificate authority's certificate.
    pub const CA_CERTIFICATE: &str = "ca.pem";
    /// Its key.
    pub const CA_KEY: &str = "ca.key";
    /// The server's certificate.
    pub const SERVER_CERTIFICATE: &str = "server.pem";
    /// Its key.
    pub const SERVER_KEY: &str = "server.key";
    /// The administrator's password.
    pub const ADMIN_PASSWORD: &str = "admin-password";
    /// The password of all sample people.
    pub const SAMPLE_PASSWORD: &str = "sample-password";
    /// The folder of definitions of attributes and classes.
    pub const SCHEMA: &str = "schema";
    /// Asks a server to make indexes anew.
    pub const REINDEX: &str = "reindex";
    /// The folder of the logs.
    pub const LOG: &str = "log";
    /// The store's folder.
    pub const STORE: &str = "store";
    /// The folder of what is cryptod's, which may be here.
    pub const CRYPTOD: &str = "cryptod";
    /// All of them.
    pub const ALL: [&str; 18] = [
        VERSION,
        LOCK,
        CONFIGURATION,
        ACCEPTED,
        HISTORY,
        RUNNING,
        METER,
        CA_CERTIFICATE,
        CA_KEY,
        SERVER_CERTIFICATE,
        SERVER_KEY,
        ADMIN_PASSWORD,
        SAMPLE_PASSWORD,
        SCHEMA,
        REINDEX,
        LOG,
        STORE,
        CRYPTOD,
    ];
}

/// What may be in a folder that nobody has finished making, what a file system puts there, and
/// what somebody may have put there for the first start to find.
const BEFORE_VERSION: [&str; 11] = [
    name::LOCK,
    name::VERSION,
    "version.new",
    "lost+found",
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

/// What is at a path, before anything is done to it.
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
        if !BEFORE_VERSION.iter().any(|name| entry.file_name() == *name) {
            let path = path.display();
            return Err(Failure::new(format!(
                "{path} holds something else than Keyway's data (it is not empty and has no file \
                 `version`); name another folder with --data DIR"
            )));
        }
    }
    Ok(State::Absent)
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
        // What an earlier server said of itself is not true of this process.
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

    /// The same, if there is one.
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
        put(&self.path, name, bytes, PUBLIC_MODE)
    }

    /// The same for a secret (0600).
    ///
    /// # Errors
    /// As [`Folder::write`].
    pub fn write_secret(&self, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        put(&self.path, name, bytes, SECRET_MODE)
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

    /// Reads a secret, which nobody but its owner may be able to read.
    ///
    /// # Errors
    /// As [`Folder::read`], and if others can read it.
    pub fn read_secret(&self, name: &str) -> Result<Zeroizing<String>, Failure> {
        plain_file(&self.file(name))?;
        read_secret(&self.file(name))
    }
}

/// Refuses anything there but a plain file: to open a FIFO would wait for a process at its other end.
///
/// # Errors
/// If something else is there.
pub fn plain_file(path: &Path) -> Result<(), Failure> {
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => Err(Failure::new(format!(
            "{} is no plain file; put a file in its place",
            path.display()
        ))),
        _ => Ok(()),
    }
}

/// Reads a secret, wherever it is, which nobody but its owner may be able to read.
///
/// # Errors
/// As [`Folder::read_secret`].
pub fn read_secret(path: &Path) -> Result<Zeroizing<String>, Failure> {
    let system = |why| Failure::system("read", path, &why);
    let file = File::open(path).map_err(system)?;
    let metadata = file.metadata().map_err(system)?;
    if metadata.is_file() {
        private(path, metadata.mode(), "600")?;
    }
    // With room for all of it no copy is left behind where it outgrew its place.
    let capacity = metadata.len().min(FILE_BYTES_MAX) as usize + 1;
    let mut text = Zeroizing::new(String::with_capacity(capacity));
    read_open(file, path, &mut text)?;
    Ok(text)
}

/// [`Folder::write_secret`] for a data folder that another process may use; whoever may write the same has to
/// have [`lock_edits`].
///
/// # Errors
/// As there.
pub fn write_secret(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), Failure> {
    put(folder, name, bytes, SECRET_MODE)
}

/// [`Folder::write`] for such a data folder.
///
/// # Errors
/// As there.
pub fn write(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), Failure> {
    put(folder, name, bytes, PUBLIC_MODE)
}

fn put(folder: &Path, name: &str, bytes: &[u8], mode: u32) -> Result<(), Failure> {
    let (path, draft) = (folder.join(name), folder.join(format!("{name}.new")));
    let written = (|| {
        remove_if_there(&draft)?;
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(SECRET_MODE).open(&draft)?;
        file.write_all(bytes)?;
        if let Some((user, group)) = other_owner(folder)? {
            fchown(&file, Some(user), Some(group))?;
        }
        // Whatever the umask is.
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        file.sync_all()?;
        fs::rename(&draft, &path)?;
        File::open(path.parent().unwrap_or(folder))?.sync_all()
    })();
    written.map_err(|why| {
        // What could not be written is not worth a second complaint.
        let _ = fs::remove_file(&draft);
        Failure::system("write", &path, &why)
    })
}

/// The folder's owner, if root is at work in another user's: what is made in it is to be his, who could
/// not use it otherwise.
fn other_owner(folder: &Path) -> std::io::Result<Option<(u32, u32)>> {
    let owner = fs::metadata(folder)?;
    let is_others = geteuid().is_root() && owner.uid() != 0;
    Ok(is_others.then(|| (owner.uid(), owner.gid())))
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

/// Takes the folder for this process, until the file that is returned is closed.
fn lock(folder: &Path) -> Result<File, Failure> {
    let path = folder.join(name::LOCK);
    let refused = |why| Failure::system("write to the data folder", folder, &why);
    let mut file = open_lock(folder, &path).map_err(refused)?;
    let begun = Instant::now();
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => break,
            // Who was killed is not gone at once, and his children have the lock a little longer.
            Err(Errno::WOULDBLOCK)
                if begun.elapsed() < LOCK_OF_THE_DEAD_WAIT && is_dead(holder(&mut file)) =>
            {
                thread::sleep(LOCK_LOOK_EVERY);
            }
            Err(Errno::WOULDBLOCK) => return Err(in_use(folder, &mut file)),
            Err(why) => return Err(Failure::system("lock", &path, &why.into())),
        }
    }
    file.rewind().map_err(refused)?;
    // The id is for people. A full disk, which may have no room for it, is no reason not to start.
    let id = std::process::id().to_string();
    match file.write_all(id.as_bytes()).and_then(|()| file.set_len(id.len() as u64)) {
        Err(why) if !is_disk_full(&why) => Err(refused(why)),
        _ => Ok(file),
    }
}

/// Opens the lock's file, made if there is none. No link is followed: root would write to what a folder's
/// owner has it lead to.
fn open_lock(folder: &Path, path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(SECRET_MODE).custom_flags(OFlags::NOFOLLOW.bits() as i32);
    match options.clone().create_new(true).open(path) {
        Ok(file) => {
            if let Some((user, group)) = other_owner(folder)? {
                fchown(&file, Some(user), Some(group))?;
            }
            Ok(file)
        }
        Err(why) if why.kind() == ErrorKind::AlreadyExists => options.open(path),
        Err(why) => Err(why),
    }
}

/// The process that uses the folder, if one does and it is known.
pub fn user_id(folder: &Path) -> Option<u32> {
    let mut file = File::open(folder.join(name::LOCK)).ok()?;
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Err(Errno::WOULDBLOCK) => holder(&mut file),
        _ => None,
    }
}

/// Which process uses the folder, in words; `None` if none does.
pub fn user(folder: &Path) -> Option<String> {
    let mut file = File::open(folder.join(name::LOCK)).ok()?;
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Err(Errno::WOULDBLOCK) => Some(called(holder(&mut file))),
        _ => None,
    }
}

/// The process that uses the folder, if it has got to writing its id.
pub fn holder_of(folder: &Path) -> Option<u32> {
    holder(&mut File::open(folder.join(name::LOCK)).ok()?)
}

/// The process that has the lock; it may not have got to writing its id yet.
fn holder(lock: &mut File) -> Option<u32> {
    let mut id = String::new();
    lock.rewind().ok()?;
    lock.take(20).read_to_string(&mut id).ok()?;
    id.trim().parse().ok()
}

fn called(process: Option<u32>) -> String {
    process.map_or_else(|| "another process".to_owned(), |id| format!("process {id}"))
}

/// Whether a process has ended, even if nobody has asked how.
fn is_dead(process: Option<u32>) -> bool {
    let Some(id) = process else { return false };
    match fs::read_to_string(format!("/proc/{id}/stat")) {
        // The state is behind the name, which is in brackets.
        Ok(stat) => {
            let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
            matches!(state, Some('Z' | 'X'))
        }
        Err(why) => why.kind() == ErrorKind::NotFound,
    }
}

fn in_use(folder: &Path, lock: &mut File) -> Failure {
    let (folder, process) = (folder.display(), called(holder(lock)));
    Failure::new(format!("{folder} is in use by {process}; stop it first, or name another folder"))
}

/// Whether nobody else can look into the folder, and we can write to it.
fn check(folder: &Path) -> Result<(), Failure> {
    is_private(folder)?;
    access(folder, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK)
        .map_err(|why| Failure::system("write to the data folder", folder, &why.into()))
}

/// That nobody but a folder's owner can look into it.
///
/// # Errors
/// If somebody can.
pub fn is_private(folder: &Path) -> Result<(), Failure> {
    let metadata = fs::metadata(folder)
        .map_err(|why| Failure::system("look at the data folder", folder, &why))?;
    match metadata.mode() & 0o077 & !PASSED {
        0 => Ok(()),
        _ => private(folder, metadata.mode(), "700"),
    }
}

/// Refuses a file with passwords in it that others than its owner may read.
///
/// # Errors
/// If they may, or the system does not say.
pub fn is_secret(path: &Path, file: &File) -> Result<(), Failure> {
    let metadata = file.metadata().map_err(|why| Failure::system("read", path, &why))?;
    if metadata.is_file() { private(path, metadata.mode(), "600") } else { Ok(()) }
}

fn private(path: &Path, mode: u32, wanted: &str) -> Result<(), Failure> {
    if mode & 0o077 == 0 {
        return Ok(());
    }
    let (path, mode) = (path.display(), mode & 0o777);
    Err(Failure::new(format!(
        "{path} is open to others than its owner (mode {mode:o}); close it with chmod {wanted}, \
         and think about who has seen what is in it"
    )))
}

/// Reads a file whole, wherever it is.
///
/// # Errors
/// As [`Folder::read`].
pub fn read(path: &Path) -> Result<String, Failure> {
    plain_file(path)?;
    let mut text = String::new();
    let file = File::open(path).map_err(|why| Failure::system("read", path, &why))?;
    read_open(file, path, &mut text)?;
    Ok(text)
}

/// Reads a file of definitions whole, wherever it is.
///
/// # Errors
/// If it is not there, too long, or cannot be read.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    let system = |why| Failure::system("read", path, &why);
    plain_file(path)?;
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(system)?;
    file.take(SCHEMA_FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(system)?;
    if bytes.len() as u64 > SCHEMA_FILE_BYTES_MAX {
        return Err(Failure::new(format!("{} is too long", path.display())));
    }
    Ok(bytes)
}

/// Waits until nobody else edits a file of the folder, and keeps others from it until the file that is
/// returned is closed.
///
/// # Errors
/// If the folder cannot be opened.
pub fn lock_edits(folder: &Path) -> Result<File, Failure> {
    let opened = File::open(folder).map_err(|why| Failure::system("open", folder, &why))?;
    flock(&opened, FlockOperation::LockExclusive)
        .map_err(|why| Failure::system("lock", folder, &why.into()))?;
    Ok(opened)
}

/// Puts other text into a file that is there, whole and durable, or not at all. Mode and owner stay as
/// they are, and a link goes on to lead to it.
///
/// # Errors
/// If it could not be read again, being too long, or the system refuses; then what was there before is
/// still there.
pub fn replace(path: &Path, text: &str) -> Result<(), Failure> {
    let system = |why: std::io::Error| Failure::system("write", path, &why);
    if text.len() as u64 > FILE_BYTES_MAX {
        let path = path.display();
        return Err(Failure::new(format!("{path} would be longer than {FILE_BYTES_MAX} bytes")));
    }
    // A device, or a link to one, would be a file afterwards.
    plain_file(path)?;
    let path = fs::canonicalize(path).map_err(system)?;
    let mut draft = path.clone().into_os_string();
    draft.push(".new");
    let draft = PathBuf::from(draft);
    let written = (|| {
        let old = fs::metadata(&path)?;
        remove_if_there(&draft)?;
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(SECRET_MODE).open(&draft)?;
        file.write_all(text.as_bytes())?;
        if (file.metadata()?.uid(), file.metadata()?.gid()) != (old.uid(), old.gid()) {
            fchown(&file, Some(old.uid()), Some(old.gid()))?;
        }
        file.set_permissions(fs::Permissions::from_mode(old.mode() & 0o7777))?;
        file.sync_all()?;
        fs::rename(&draft, &path)?;
        File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
    })();
    written.map_err(|why| {
        let _ = fs::remove_file(&draft);
        Failure::system("write", &path, &why)
    })
}

/// A file in a folder that has no name, so that it goes when it is closed.
///
/// # Errors
/// The system's.
pub fn scratch(folder: &Path) -> std::io::Result<File> {
    let path = folder.join("scratch");
    remove_if_there(&path)?;
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create_new(true).mode(SECRET_MODE).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

fn read_open(file: File, path: &Path, text: &mut String) -> Result<(), Failure> {
    match file.take(FILE_BYTES_MAX + 1).read_to_string(text) {
        Ok(bytes) if bytes as u64 <= FILE_BYTES_MAX => Ok(()),
        Ok(_) => Err(Failure::new(format!("{} is too long", path.display()))),
        Err(why) if why.kind() == ErrorKind::InvalidData => {
            Err(Failure::new(format!("{} is not text: {}", path.display(), plain(&why))))
        }
        Err(why) => Err(Failure::system("read", path, &why)),
    }
}

fn remove_if_there(path: &Path) -> std::io::Result<()> {
    match fs::remove_file(path) {
        Err(why) if why.kind() != ErrorKind::NotFound => Err(why),
        _ => Ok(()),
    }
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
        // The same beside what is not ours.
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
