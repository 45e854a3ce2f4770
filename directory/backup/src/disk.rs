//! Files of a repository: read whole and bounded, written for their owner alone and durable.
//!
//! The folder may be one that others can write to, a share in the network for instance. No link in it is
//! followed, no pipe is waited for, and no file is read that is longer than its kind can be.

use crate::error::{Error, Fault};
use keyway_host::failure::plain;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// How every file in the repository is opened.
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options
        .mode(FILE_MODE)
        .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
    options
}

/// Reads a file whole.
pub(crate) fn read(path: &Path, bytes_max: usize) -> Result<Vec<u8>, Fault> {
    let unreadable = |why: io::Error| match why.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Fault::Missing,
        _ if why.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => Fault::Unfit(NO_FILE),
        _ => Fault::Unreadable(format!("it cannot be read: {}", plain(&why))),
    };
    let file = options().read(true).open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(Fault::Unfit(NO_FILE));
    }
    if metadata.len() > bytes_max as u64 {
        return Err(Fault::Unfit("it is longer than any such file can be"));
    }
    let mut bytes = Vec::with_capacity(metadata.len() as usize + 1);
    file.take(bytes_max as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    match bytes.len() <= bytes_max {
        true => Ok(bytes),
        false => Err(Fault::Unfit("it is longer than any such file can be")),
    }
}

const NO_FILE: &str = "it is no plain file";

/// Writes a new file, which is not durable before it is synced.
pub(crate) fn write_new(path: &Path, parts: &[&[u8]]) -> io::Result<File> {
    let mut file = options().write(true).create_new(true).open(path)?;
    for part in parts {
        file.write_all(part)?;
    }
    Ok(file)
}

/// Puts a file in place, durable: whole, or as it was before. `draft` is its name until then.
pub(crate) fn put(draft: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let put = (|| {
        remove_if_there(draft)?;
        write_new(draft, &[bytes])?.sync_all()?;
        fs::rename(draft, path)?;
        sync_folder(path.parent().unwrap_or(Path::new(".")))
    })();
    put.inspect_err(|_| {
        // A draft that could not be written is not worth a second complaint.
        let _ = fs::remove_file(draft);
    })
}

/// Opens a file that is there to be locked, made if there is none.
pub(crate) fn open_lock(path: &Path) -> io::Result<File> {
    options().read(true).write(true).create(true).open(path)
}

/// Makes a folder, if it is not there. Whether it was made.
pub(crate) fn make_folder(path: &Path) -> io::Result<bool> {
    match DirBuilder::new().mode(FOLDER_MODE).create(path) {
        Ok(()) => Ok(true),
        Err(why) if why.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(why) => Err(why),
    }
}

/// Makes the names in a folder durable.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// That it is a folder itself, not a link that leads to one.
pub(crate) fn is_folder(folder: &Path, path: &Path) -> Result<(), Error> {
    let refused = |why| Error::system(folder, "open the folder", path, why);
    match fs::symlink_metadata(path).map_err(refused)?.is_dir() {
        true => Ok(()),
        false => Err(refused(ErrorKind::NotADirectory.into())),
    }
}

/// The names of a folder that are text, sorted. No other name is one of ours.
pub(crate) fn names(path: &Path) -> io::Result<Vec<String>> {
    let names = fs::read_dir(path)?.map(|entry| Ok(entry?.file_name().into_string().ok()));
    let mut names: Vec<String> =
        names.filter_map(io::Result::transpose).collect::<Result<_, _>>()?;
    names.sort_unstable();
    Ok(names)
}

/// Removes a file that may be gone already. Whether it was there.
pub(crate) fn remove_if_there(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(why) if why.kind() == ErrorKind::NotFound => Ok(false),
        Err(why) => Err(why),
    }
}
