//! Memory that two processes see: the crate's only module with unsafe code.
//!
//! It hands out slices of atomics and nothing else, so that whatever the other process does to the
//! page, this one reads numbers and not broken promises. The one thing that cannot be defended
//! against here is a file that shrinks under its mapping; a writer of ours gives the file its full
//! size at creation and never changes it, and a reader checks the size before each look.

use crate::layout::PAGE_WORDS;
use crate::limits::PAGE_BYTES;
use rustix::fs::{self, FallocateFlags, FlockOperation, IFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::AtomicU64;

// The memory of one has all properties of the other's.
const _: () = assert!(align_of::<AtomicU64>() == align_of::<u64>());

/// A page on the heap, for the rest of the process.
pub(crate) fn on_heap() -> &'static [AtomicU64] {
    // Zeros of the system: what is never counted takes no memory, which one atomic at a time would.
    let words: &'static mut [u64] = Vec::leak(vec![0; PAGE_WORDS]);
    // SAFETY: the memory is borrowed for the rest of the process through `words` alone, which is
    // not used again; an atomic has the size, alignment and values of a u64.
    unsafe { std::slice::from_raw_parts(words.as_mut_ptr().cast(), PAGE_WORDS) }
}

/// A page in a file that is not visible at its path yet.
pub(crate) struct Draft {
    file: File,
    temporary: PathBuf,
    path: PathBuf,
}

impl Draft {
    /// Makes the file (0600) beside `path`, at its full size with its blocks reserved, so that a
    /// full disk is an error here and not a signal when a counter is added to.
    ///
    /// On a full disk, the page of an earlier process at `path` goes first: no process counts there.
    pub fn create(path: &Path) -> io::Result<Draft> {
        match Draft::attempt(path) {
            Err(error) if is_disk_full(&error) && std::fs::remove_file(path).is_ok() => {
                Draft::attempt(path)
            }
            made => made,
        }
    }

    fn attempt(path: &Path) -> io::Result<Draft> {
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(".new");
        let temporary = PathBuf::from(temporary);
        match std::fs::remove_file(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary)?;
        let draft = Draft { file, temporary, path: path.to_owned() };
        // The lock says that the writer lives; the system drops it however the process ends.
        fs::flock(&draft.file, FlockOperation::NonBlockingLockExclusive)?;
        draft.reserve()?;
        Ok(draft)
    }

    fn reserve(&self) -> io::Result<()> {
        // Where a file system copies on write, every change would need room again. Others refuse
        // the flag, and need it not.
        if let Ok(flags) = fs::ioctl_getflags(&self.file) {
            let _ = fs::ioctl_setflags(&self.file, flags | IFlags::NOCOW);
        }
        match fs::fallocate(&self.file, FallocateFlags::empty(), 0, PAGE_BYTES as u64) {
            Err(Errno::OPNOTSUPP) => (&self.file).write_all(&vec![0; PAGE_BYTES]),
            other => Ok(other?),
        }
    }

    /// Maps the page for the rest of the process. The file stays open with it, for its lock.
    pub fn map(&self) -> io::Result<&'static [AtomicU64]> {
        let lock = self.file.try_clone()?;
        let at = map(&self.file, PAGE_BYTES, ProtFlags::READ | ProtFlags::WRITE)?;
        std::mem::forget(lock);
        // SAFETY: the mapping is page-aligned, PAGE_BYTES long, backed by a file of that size, and
        // never unmapped; every process accesses it through atomics only.
        Ok(unsafe { std::slice::from_raw_parts(at.cast(), PAGE_WORDS) })
    }

    /// Puts the page in its place, instead of that of an earlier process. A reader that has the old one
    /// mapped keeps it.
    pub fn publish(self) -> io::Result<()> {
        std::fs::rename(&self.temporary, &self.path)
    }
}

fn is_disk_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

impl Drop for Draft {
    fn drop(&mut self) {
        // After `publish` there is nothing of that name any more.
        let _ = std::fs::remove_file(&self.temporary);
    }
}

/// Another process's page, mapped read-only.
pub(crate) struct Mapping {
    at: *mut c_void,
    words: usize,
}

impl Mapping {
    /// Maps at most the first `bytes` of a file that is at least that long; `None` if that is not
    /// even one word.
    pub fn read_only(file: &File, bytes: usize) -> io::Result<Option<Mapping>> {
        let words = bytes.min(PAGE_BYTES) / 8;
        if words == 0 {
            return Ok(None);
        }
        Ok(Some(Mapping { at: map(file, words * 8, ProtFlags::READ)?, words }))
    }

    /// The page's words; others may change them at any time.
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is page-aligned, that many words long and lives as long as `self`;
        // this crate only loads from it, relaxed or with acquire, which read-only memory allows.
        unsafe { std::slice::from_raw_parts(self.at.cast(), self.words) }
    }
}

// SAFETY: a mapping belongs to the process, not to a thread, and gives access to atomics only.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this is the range that `map` returned, and no borrow of it outlives `self`.
        // Unmapping a range that was mapped cannot fail.
        let _ = unsafe { munmap(self.at, self.words * 8) };
    }
}

fn map(file: &File, bytes: usize, protection: ProtFlags) -> io::Result<*mut c_void> {
    // SAFETY: the system picks a free range of addresses, so no existing memory is affected.
    Ok(unsafe { mmap(ptr::null_mut(), bytes, protection, MapFlags::SHARED, file, 0) }?)
}
