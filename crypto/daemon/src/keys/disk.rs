//! Files that are there whole and durable, or not at all, and for their owner alone.

use super::error::Error;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io::{ErrorKind, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;
use zeroize::Zeroizing;

/// The mode of folders.
const FOLDER_MODE: u32 = 0o700;
/// The mode of files.
pub(crate) const FILE_MODE: u32 = 0o600;
/// The file whose lock keeps a second process out.
const LOCK: &str = "lock";
/// The suffix of a file's name while it is written.
pub(crate) const DRAFT: &str = ".new";

/// Makes a folder for the owner alone, if it is not there. Those above it must be.
pub(crate) fn make_folder(path: &Path) -> Result<(), Error> {
    match DirBuilder::new().mode(FOLDER_MODE).create(path) {
        Err(why) if why.kind() != ErrorKind::AlreadyExists => {
            Err(Error::system("make the folder", path)(why))
        }
        Err(_) => private_folder(path),
        Ok(()) => sync_folder(parent(path)),
    }
}

/// That it is a folder that is the owner's alone.
pub(crate) fn private_folder(path: &Path) -> Result<(), Error> {
    let metadata = fs::metadata(path).map_err(Error::system("open the folder", path))?;
    if !metadata.is_dir() {
        return Err(Error::system("open the folder", path)(ErrorKind::NotADirectory.into()));
    }
    private(path, &metadata)
}

fn private(path: &Path, metadata: &Metadata) -> Result<(), Error> {
    let owned = metadata.uid() == rustix::process::geteuid().as_raw();
    let exposed = metadata.mode() & 0o077 != 0;
    if owned && !exposed { Ok(()) } else { Err(Error::Exposed(path.to_owned())) }
}

/// Checks that only this user and root can get at an open file, if the file is one that stays. A
/// terminal or a socket does not stay, and passes.
///
/// # Errors
/// [`Error::Exposed`], [`Error::System`].
pub fn is_private(file: &File, path: &Path) -> Result<(), Error> {
    let metadata = file.metadata().map_err(Error::system("open", path))?;
    let stays = metadata.is_file() || metadata.file_type().is_fifo();
    match stays {
        true => private_or_roots(path, &metadata),
        false => Ok(()),
    }
}

fn private_or_roots(path: &Path, metadata: &Metadata) -> Result<(), Error> {
    match metadata.uid() {
        0 if metadata.mode() & 0o077 == 0 => Ok(()),
        _ => private(path, metadata),
    }
}

/// Takes the folder for this process, until the file that is returned is closed.
pub(crate) fn lock(folder: &Path) -> Result<File, Error> {
    let path = folder.join(LOCK);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(FILE_MODE);
    let file = options.open(&path).map_err(Error::system("lock", &path))?;
    for again in (0..LOCK_TRIES).rev() {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            // A child that is just being started has the lock of its parent until it runs its
            // program.
            Err(TryLockError::WouldBlock) if again > 0 => thread::sleep(LOCK_PAUSE),
            Err(TryLockError::WouldBlock) => break,
            Err(TryLockError::Error(why)) => return Err(Error::system("lock", &path)(why)),
        }
    }
    Err(Error::InUse(folder.to_owned()))
}

/// How often and after what pause a lock is asked for.
const LOCK_TRIES: u32 = 200;
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// Reads a file whole, if it is there; only its owner may be able to read it.
pub(crate) fn read(path: &Path, bytes_max: usize) -> Result<Option<Zeroizing<Vec<u8>>>, Error> {
    read_checked(path, bytes_max, private)
}

/// Reads a file whole, if it is there, whichever users may read it.
pub(crate) fn read_any(path: &Path, bytes_max: usize) -> Result<Option<Zeroizing<Vec<u8>>>, Error> {
    read_checked(path, bytes_max, |_, _| Ok(()))
}

/// Reads an open file whole; it has to belong to this user or to root, and only its owner may be able to
/// read it.
pub(crate) fn read_open(
    mut file: &File,
    path: &Path,
    bytes_max: usize,
) -> Result<Zeroizing<Vec<u8>>, Error> {
    file.rewind().map_err(Error::system("read", path))?;
    read_whole(file, path, bytes_max, private_or_roots)
}

fn read_checked(
    path: &Path,
    bytes_max: usize,
    check: impl Fn(&Path, &Metadata) -> Result<(), Error>,
) -> Result<Option<Zeroizing<Vec<u8>>>, Error> {
    // To open a FIFO would otherwise wait until another process opens its other end.
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    let file = match options.open(path) {
        Err(why) if why.kind() == ErrorKind::NotFound => return Ok(None),
        other => other.map_err(Error::system("open", path))?,
    };
    read_whole(&file, path, bytes_max, check).map(Some)
}

fn read_whole(
    file: &File,
    path: &Path,
    bytes_max: usize,
    check: impl Fn(&Path, &Metadata) -> Result<(), Error>,
) -> Result<Zeroizing<Vec<u8>>, Error> {
    let metadata = file.metadata().map_err(Error::system("open", path))?;
    if !metadata.is_file() {
        return Err(Error::damaged(path, "it is no plain file"));
    }
    check(path, &metadata)?;
    let most = bytes_max as u64;
    // With room for all of it no copy is left behind where it outgrew its place.
    let mut bytes = Zeroizing::new(Vec::with_capacity(metadata.len().min(most) as usize + 2));
    file.take(most + 1).read_to_end(&mut bytes).map_err(Error::system("read", path))?;
    if bytes.len() > bytes_max {
        return Err(Error::damaged(path, "it is longer than any such file can be"));
    }
    Ok(bytes)
}

/// Puts a file in place. An earlier file stays there if that fails.
pub(crate) fn put(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    written(path, bytes, |draft| fs::rename(draft, path))
}

/// Puts a file in place where none was before.
pub(crate) fn put_new(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    written(path, bytes, |draft| {
        fs::hard_link(draft, path)?;
        fs::remove_file(draft)
    })
}

fn written(
    path: &Path,
    bytes: &[u8],
    place: impl FnOnce(&Path) -> std::io::Result<()>,
) -> Result<(), Error> {
    let draft = draft(path);
    let done = (|| {
        remove_if_there(&draft)?;
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(FILE_MODE).open(&draft)?;
        file.write_all(bytes)?;
        // Whatever the umask is.
        file.set_permissions(Permissions::from_mode(FILE_MODE))?;
        file.sync_all()?;
        place(&draft)?;
        File::open(parent(path))?.sync_all()
    })();
    done.map_err(|why| {
        // A draft that could not be written is not worth a second complaint.
        let _ = fs::remove_file(&draft);
        Error::system("write", path)(why)
    })
}

/// Removes a file, for good.
pub(crate) fn remove(path: &Path) -> Result<(), Error> {
    fs::remove_file(path).map_err(Error::system("remove", path))?;
    sync_folder(parent(path))
}

/// Removes a file that may be gone already.
pub(crate) fn remove_any(path: &Path) -> Result<(), Error> {
    remove_if_there(path).map_err(Error::system("remove", path))?;
    sync_folder(parent(path))
}

fn draft(path: &Path) -> PathBuf {
    let mut draft = path.as_os_str().to_owned();
    draft.push(DRAFT);
    PathBuf::from(draft)
}

fn remove_if_there(path: &Path) -> std::io::Result<()> {
    match fs::remove_file(path) {
        Err(why) if why.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn sync_folder(path: &Path) -> Result<(), Error> {
    File::open(path).and_then(|it| it.sync_all()).map_err(Error::system("sync the folder", path))
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
