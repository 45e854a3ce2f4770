//! Files: read and written whole, secret ones too, wherever they are.

use crate::limits::SCHEMA_FILE_BYTES_MAX;
use keyway_host::failure::{Failure, plain};
use rustix::fs::{FlockOperation, flock};
use rustix::process::geteuid;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// The data folder's group may pass through it, where cryptod is another user and has that group.
pub(super) const PASSED: u32 = 0o010;
pub(super) const SECRET_MODE: u32 = 0o600;
const PUBLIC_MODE: u32 = 0o644;
/// More than any file that is read whole may have, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

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

/// Reads a secret at any path, which no user but its owner may be able to read.
///
/// # Errors
/// As [`Folder::read_secret`](super::Folder::read_secret).
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

/// Reads a password as [`read_secret`] does; line ends at its end do not count.
///
/// # Errors
/// As [`read_secret`].
pub fn read_password(path: &Path) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let text = read_secret(path)?;
    Ok(Zeroizing::new(text.trim_end_matches(['\n', '\r']).as_bytes().to_vec()))
}

/// [`Folder::write_secret`](super::Folder::write_secret) for a data folder that another process may use; every
/// writer of that file has to
/// have [`lock_edits`].
///
/// # Errors
/// As there.
pub fn write_secret(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), Failure> {
    put(folder, name, bytes, SECRET_MODE)
}

/// [`Folder::write`](super::Folder::write) for such a data folder.
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
        // A failed removal after a failed write is not reported too.
        let _ = fs::remove_file(&draft);
        Failure::system("write", &path, &why)
    })
}

/// The folder's owner, if root is at work in another user's: new files in it are given to that user, who could
/// not use it otherwise.
pub(super) fn other_owner(folder: &Path) -> std::io::Result<Option<(u32, u32)>> {
    let owner = fs::metadata(folder)?;
    let is_others = geteuid().is_root() && owner.uid() != 0;
    Ok(is_others.then(|| (owner.uid(), owner.gid())))
}

/// Checks that no user but a folder's owner can look into it.
///
/// # Errors
/// If another user can.
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

pub(super) fn private(path: &Path, mode: u32, wanted: &str) -> Result<(), Failure> {
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
/// As [`Folder::read`](super::Folder::read).
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

/// Waits until no other process edits a file of the folder, and keeps others from it until the file that is
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

pub(super) fn remove_if_there(path: &Path) -> std::io::Result<()> {
    match fs::remove_file(path) {
        Err(why) if why.kind() != ErrorKind::NotFound => Err(why),
        _ => Ok(()),
    }
}
