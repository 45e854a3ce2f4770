//! Requests to the file system beside LMDB: folders that last, marks, room in reserve.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown, lchown};
use std::path::{Path, PathBuf};

use rustix::fs::{
    FallocateFlags, IFlags, fallocate, fstatfs, ioctl_getflags, ioctl_setflags, statfs,
};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::OpenError;
use crate::error::is_disk_full;
use crate::limits::RESERVE_BYTES;

/// Every name that this crate, LMDB and the lock give to a file of a store.
pub(crate) const NAMES: [&str; 7] = [LOCK, DATA, LMDB_LOCK, UNFINISHED, DRAFT, RESERVE, PROBE];

/// The lock that keeps a second process out, and the mark of the folder's owner.
pub(crate) const LOCK: &str = "lock";
/// LMDB's data.
pub(crate) const DATA: &str = "data.mdb";
/// The folder that some file systems have at their top.
pub(crate) const LOST_AND_FOUND: &str = "lost+found";
/// LMDB's mutexes and readers.
pub(crate) const LMDB_LOCK: &str = "lock.mdb";

const UNFINISHED: &str = "unfinished";
const DRAFT: &str = "unfinished.draft";
const RESERVE: &str = "reserve";
const PROBE: &str = "probe";

/// The unit in which `stat` counts a file's room, whatever the file system's own blocks are.
const BLOCK_BYTES: u64 = 512;

/// Why a store is not whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mark {
    /// Its first files are being made.
    Creating,
    /// It is being loaded without syncs.
    Loading,
}

impl Mark {
    fn text(self) -> &'static [u8] {
        match self {
            Mark::Creating => b"creating\n",
            Mark::Loading => b"loading\n",
        }
    }
}

/// Leaves a durable mark that the store in `dir` is not whole yet. It is there whole or not at all,
/// since what lies beside a mark of creation may be deleted.
pub(crate) fn mark(dir: &Path, mark: Mark) -> Result<(), OpenError> {
    let attempt = |e| OpenError::system("marking the store as unfinished", e);
    let draft = dir.join(DRAFT);
    let mut file = create(&draft).map_err(attempt)?;
    file.set_len(0).map_err(attempt)?;
    file.write_all(mark.text()).map_err(attempt)?;
    file.sync_all().map_err(attempt)?;
    fs::rename(&draft, dir.join(UNFINISHED)).map_err(attempt)?;
    sync_folder(dir)
}

/// The mark in `dir`.
pub(crate) fn marked(dir: &Path) -> Result<Option<Mark>, OpenError> {
    let attempt = |e| OpenError::system("opening the store", e);
    let text = match fs::read(dir.join(UNFINISHED)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(attempt)?,
    };
    match [Mark::Creating, Mark::Loading].into_iter().find(|mark| mark.text() == text) {
        Some(mark) => Ok(Some(mark)),
        None => Err(OpenError::Damaged { what: format!("{UNFINISHED} says nothing known") }),
    }
}

/// Whether a mark was being left in `dir`, or is there.
pub(crate) fn has_mark(dir: &Path) -> bool {
    dir.join(DRAFT).exists() || matches!(marked(dir), Ok(Some(_)))
}

/// Takes the mark away, after the names of all files have reached the disk.
pub(crate) fn unmark(dir: &Path) -> Result<(), OpenError> {
    sync_folder(dir)?;
    remove(&dir.join(UNFINISHED))
        .map_err(|e| OpenError::system("taking the store's mark away", e))?;
    sync_folder(dir)
}

/// Makes the names in a folder durable. LMDB never does, and a cut may then take the file itself.
pub(crate) fn sync_folder(dir: &Path) -> Result<(), OpenError> {
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    File::open(dir)
        .and_then(|folder| folder.sync_all())
        .map_err(|e| OpenError::system("syncing a folder", e))
}

/// Creates a file if there is none and gives it real room for its first `bytes`, or for its whole
/// length if that is more. Writing to a mapped file that has none would kill the process. Not for a
/// file that LMDB has open.
pub(crate) fn allocate(path: &Path, bytes: u64) -> io::Result<()> {
    let mut file = create(path)?;
    if copies_on_write(&file)? {
        // Every change would need room again. That can be switched off while a file is empty: one
        // that is not was made by an earlier version, and holds nothing that outlives its users.
        if file.metadata()?.len() > 0 {
            fs::remove_file(path)?;
            file = create(path)?;
        }
        ioctl_setflags(&file, ioctl_getflags(&file)? | IFlags::NOCOW)?;
        if copies_on_write(&file)? {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "copy-on-write cannot be switched off for it, and on a full disk its next change \
                 would kill the process; keep the data on another file system",
            ));
        }
    }
    let bytes = file.metadata()?.len().max(bytes);
    match make_room(&file, bytes) {
        // A file system that cannot promise room; all that is lost is the promise.
        Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(()),
        other => other,
    }
}

/// Real room for a file's first `bytes`.
fn make_room(file: &File, bytes: u64) -> io::Result<()> {
    match fallocate(file, FallocateFlags::empty(), 0, bytes) {
        // A full XFS asks for room before it looks at what the file has already.
        Err(Errno::NOSPC) if file.metadata()?.blocks() >= bytes.div_ceil(BLOCK_BYTES) => Ok(()),
        other => Ok(other?),
    }
}

/// The file systems of other machines, by the numbers that Linux gives them (`magic.h`, statfs(2)). Those that are
/// programs cannot be told from local ones (`FUSE_SUPER_MAGIC`).
const NETWORK: [(i64, &str); 11] = [
    (0x6969, "NFS"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB"),
    (0x517b, "SMB"),
    (0x0102_1997, "9P"),
    (0x00c3_6400, "Ceph"),
    (0x5346_414f, "AFS"),
    (0x6b41_4653, "AFS"),
    (0x7375_7245, "Coda"),
    (0x0bd0_0bd0, "Lustre"),
    (0x786f_4256, "vboxsf"),
];

/// The name of the file system that `path` is on, if its disk is another machine's: there neither locks nor mapped
/// memory hold what LMDB needs of them.
///
/// # Errors
/// The system's.
pub fn network_file_system(path: &Path) -> io::Result<Option<&'static str>> {
    // The numbers have 32 bits, in a field that may be wider and signed.
    Ok(network(statfs(path)?.f_type as i64 & 0xffff_ffff))
}

fn network(number: i64) -> Option<&'static str> {
    NETWORK.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}

/// Whether a change of the file's bytes takes new blocks, so that reserved ones are of no use.
fn copies_on_write(file: &File) -> io::Result<bool> {
    /// `BTRFS_SUPER_MAGIC` of Linux' `magic.h`.
    const BTRFS: i64 = 0x9123_683e;
    Ok(fstatfs(file)?.f_type as i64 == BTRFS && !ioctl_getflags(file)?.contains(IFlags::NOCOW))
}

/// Opens a file to be read and written. One that is not there is created, for its owner alone, who is that
/// of the folder.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).mode(0o600);
    match options.clone().create_new(true).open(path) {
        Ok(file) => {
            if let Some((user, group)) = other_owner(path)? {
                fchown(&file, Some(user), Some(group))?;
            }
            Ok(file)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => options.open(path),
        Err(error) => Err(error),
    }
}

/// Gives a folder that was just made to the owner of the one that it is in.
pub(crate) fn keep_owner(folder: &Path) -> io::Result<()> {
    match other_owner(folder)? {
        Some((user, group)) => lchown(folder, Some(user), Some(group)),
        None => Ok(()),
    }
}

/// The owner of the folder that a file is in, if root is at work in another user's: the owner could not
/// use files that belong to root there.
fn other_owner(path: &Path) -> io::Result<Option<(u32, u32)>> {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let owner = fs::metadata(folder)?;
    let is_others = geteuid().is_root() && owner.uid() != 0;
    Ok(is_others.then(|| (owner.uid(), owner.gid())))
}

/// Removes a file; one that is not there is removed already.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Whether a file of `data_bytes` in `dir` could have `bytes` more.
pub(crate) fn has_space(dir: &Path, data_bytes: u64, bytes: u64) -> bool {
    let path = dir.join(PROBE);
    let grown = create(&path).and_then(|file| {
        let wanted = bytes.max(RESERVE_BYTES);
        Ok(fallocate(&file, FallocateFlags::empty(), data_bytes, wanted)?)
    });
    // It is overwritten the next time; nothing depends on its going.
    let _ = remove(&path);
    !matches!(grown, Err(error) if is_disk_full(&error))
}

/// A file that takes up room, so that there is some for deletions when the disk is full.
pub(crate) struct Reserve {
    path: PathBuf,
    held: bool,
}

impl Reserve {
    /// Takes the reserve in `dir` if there is room for it.
    pub(crate) fn hold(dir: &Path) -> Reserve {
        let mut reserve = Reserve { path: dir.join(RESERVE), held: false };
        reserve.renew();
        reserve
    }

    /// Takes it again if it was used and there is room now.
    pub(crate) fn renew(&mut self) {
        if self.held {
            return;
        }
        let taken = create(&self.path).and_then(|file| make_room(&file, RESERVE_BYTES));
        self.held = taken.is_ok();
        if !self.held {
            // Less than the whole of it would only make the disk fuller.
            let _ = remove(&self.path);
        }
    }

    /// Gives its room back to the disk; false if there was none.
    pub(crate) fn release(&mut self) -> bool {
        std::mem::take(&mut self.held) && remove(&self.path).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_of_other_machines_are_told_from_local_ones() {
        assert_eq!(network(0x6969), Some("NFS"));
        assert_eq!(network(0xff53_4d42), Some("CIFS"));
        // ext4, and a number of more than 31 bits.
        assert_eq!((network(0xef53), network(0x9123_683e)), (None, None));
        assert_eq!(network_file_system(&std::env::temp_dir()).unwrap(), None);
    }
}
