//! Memory that another process has mapped too, and may write to at any moment.
//!
//! No reference to bytes that a peer may change leaves this file, but for atomics. Bytes that are
//! read are a copy. Only a client lends slices of its own memory, whose other end is the daemon that
//! it trusts ([`PooledBuffer`](crate::PooledBuffer)).

use crate::limits::REGION_BYTES_MAX;
use crate::queue::Words;
use keyway_fork::Generation;
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::any::Any;
use std::ffi::c_void;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::{fmt, io, slice};

/// A sealed memory file of ordinary pages, mapped. It keeps its length: neither side can cut it. Either
/// side can punch holes in it, and the system fills these with zeros when they are touched, for which it
/// needs no more than any page that is touched for the first time. Used by all threads at once; unmapped
/// when it is dropped.
///
/// It may also be a [part](SharedMemory::part) of other memory, or that of a [device](SharedMemory::of_device) in a
/// virtual machine.
///
/// A child that is forked from its process does not have the mapping: for it, nothing lies there.
pub struct SharedMemory {
    start: NonNull<u8>,
    bytes: usize,
    origin: Origin,
    /// The process that has mapped it.
    process: Generation,
}

/// Where memory comes from.
enum Origin {
    /// Mapped from a file, which is closed where there is none.
    File(Option<OwnedFd>),
    /// Mapped from a device, which may go: where a word is that tells it from another one, and the word.
    Device(OnceLock<(usize, u64)>),
    /// A part of other memory, and what is kept as long as it.
    Part { whole: Arc<SharedMemory>, _kept: Option<Box<dyn Any + Send + Sync>> },
}

// SAFETY: the mapping is valid from any thread until it is dropped, and all access to it is either
// atomic or a copy made by instructions that may race.
unsafe impl Send for SharedMemory {}
// SAFETY: as above.
unsafe impl Sync for SharedMemory {}

/// A part of shared memory, to copy bytes from and to. Offsets count from the start of the memory.
#[derive(Clone, Copy, Debug)]
pub struct Window<'m> {
    memory: &'m SharedMemory,
    start: usize,
    end: usize,
}

/// The bytes that were asked for do not all lie in the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfBounds;

impl fmt::Display for OutOfBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it does not lie in the shared memory")
    }
}

impl std::error::Error for OutOfBounds {}

impl fmt::Debug for SharedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedMemory").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// The file system of memory files that have ordinary pages (`TMPFS_MAGIC`).
const ORDINARY_PAGES: u64 = 0x0102_1994;
/// The length of such a file changes no more, and no further seal can be put on it.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

impl SharedMemory {
    /// Makes new memory of at least so many bytes, all zero, and seals it.
    ///
    /// It has ordinary pages: a hole in a file of huge ones can be filled again only if the system has
    /// one to spare, and a thread that touches it otherwise gets a signal.
    ///
    /// # Errors
    /// The system's; `InvalidInput` for no bytes or more than [`REGION_BYTES_MAX`].
    pub fn create(bytes: usize) -> io::Result<Self> {
        if bytes == 0 || bytes > REGION_BYTES_MAX {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "shared memory has between 1 byte and 2 GiB",
            ));
        }
        let bytes = bytes.next_multiple_of(rustix::param::page_size());
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("keyway", flags)?;
        rustix::fs::ftruncate(&file, bytes as u64)?;
        rustix::fs::fcntl_add_seals(&file, SEALS)?;
        Self::map(file, bytes)
    }

    /// Takes memory that another process has made, if its length can change no more.
    ///
    /// To close a file that is none can take as long as a hostile process likes: a daemon takes memory
    /// of another daemon only, and makes that of its clients itself.
    ///
    /// # Errors
    /// `InvalidInput` if it is not a memory file of ordinary pages, is not sealed against being cut or
    /// grown, or has not between 1 and `bytes_max` bytes; else the system's.
    pub fn adopt(file: OwnedFd, bytes_max: usize) -> io::Result<Self> {
        let refused = |why| io::Error::new(io::ErrorKind::InvalidInput, why);
        let seals = rustix::fs::fcntl_get_seals(&file);
        let seals = seals.map_err(|_| refused("it is not a memory file"))?;
        if !seals.contains(SealFlags::SHRINK | SealFlags::GROW) {
            return Err(refused("it is not sealed against being cut and grown"));
        }
        // Only memory files have such seals, so no file system of a peer's is asked here and below.
        if rustix::fs::fstatfs(&file)?.f_type as u64 != ORDINARY_PAGES {
            return Err(refused("it has huge pages, and holes in it could not be filled again"));
        }
        // After the seals were seen: from now on its length stays.
        let bytes = rustix::fs::fstat(&file)?.st_size;
        match usize::try_from(bytes) {
            Ok(bytes) if (1..=bytes_max.min(REGION_BYTES_MAX)).contains(&bytes) => {
                Self::map(file, bytes)
            }
            _ => Err(refused("it has no bytes, or more than it may have")),
        }
    }

    fn map(file: OwnedFd, bytes: usize) -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, at a place that the system chooses, is used by no other code.
        let start = unsafe {
            rustix::mm::mmap(ptr::null_mut(), bytes, access, MapFlags::SHARED, &file, 0)?
        };
        // Neither a core file nor a forked child has any of it: a child would write to its parent's rings,
        // and read what its parent has sealed there.
        for advice in [Advice::LinuxDontDump, Advice::LinuxDontFork] {
            // SAFETY: the advice is on the whole of this mapping, and changes no content of it.
            let taken = unsafe { rustix::mm::madvise(start, bytes, advice) };
            if let Err(why) = taken {
                // SAFETY: the mapping was made above and no other code knows of it.
                let _ = unsafe { rustix::mm::munmap(start, bytes) };
                return Err(why.into());
            }
        }
        let start = NonNull::new(start.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        let origin = Origin::File(Some(file));
        Ok(SharedMemory { start, bytes, origin, process: Generation::current() })
    }

    /// Takes the memory of a PCI device, which a virtual machine shares with its host.
    ///
    /// The mapping outlives the device. Then nothing that is written there is read again; and when another device comes to
    /// the same address, the mapping is that one's memory. So its owner [looks](SharedMemory::is_lost) before it writes.
    ///
    /// # Errors
    /// The system's; `InvalidInput` for no bytes or more than [`REGION_BYTES_MAX`].
    pub fn of_device(file: &OwnedFd, bytes: usize) -> io::Result<Self> {
        if bytes == 0 || bytes > REGION_BYTES_MAX {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it has no bytes, or too many",
            ));
        }
        let mut memory = Self::map(file.try_clone()?, bytes)?;
        memory.origin = Origin::Device(OnceLock::new());
        Ok(memory)
    }

    /// Has it count as lost from now on once the word there is another than it is now.
    pub fn know_by(&self, offset: usize) {
        if let (Origin::Device(known), Some(word)) = (&self.origin, self.word(offset)) {
            let _ = known.set((offset, word.load(Ordering::Acquire)));
        }
    }

    /// A part of it, which begins at a page, with something that is to be dropped with it. `None` if it does not lie
    /// there.
    pub fn part(
        self: &Arc<Self>,
        range: Range<usize>,
        kept: Option<Box<dyn Any + Send + Sync>>,
    ) -> Option<SharedMemory> {
        let bytes = range.end.checked_sub(range.start).filter(|bytes| *bytes > 0)?;
        self.check(range.start, bytes).ok()?;
        if !range.start.is_multiple_of(rustix::param::page_size()) {
            return None;
        }
        // SAFETY: `check` has seen that the offset is within the mapping.
        let start = unsafe { self.start.add(range.start) };
        let origin = Origin::Part { whole: self.clone(), _kept: kept };
        Some(SharedMemory { start, bytes, origin, process: self.process })
    }

    /// Makes zeros of a part, and gives its pages back to the system.
    pub fn clear(&self, range: Range<usize>) {
        let end = range.end.min(self.bytes);
        let bytes = end.saturating_sub(range.start);
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let punched = self.file().is_ok_and(|file| {
            let (start, bytes) = (range.start as u64, bytes as u64);
            bytes == 0 || rustix::fs::fallocate(file, punch, start, bytes).is_ok()
        });
        if !punched {
            const ZEROS: [u8; 4096] = [0; 4096];
            for start in (range.start..end).step_by(ZEROS.len()) {
                let _ = self.write(start, &ZEROS[..ZEROS.len().min(end - start)]);
            }
        }
    }

    /// Whether it was that of a device which has gone, or is another's by now.
    #[inline]
    pub fn is_lost(&self) -> bool {
        match &self.origin {
            Origin::File(_) => false,
            Origin::Device(known) => known.get().is_some_and(|(offset, value)| {
                self.word(*offset).is_none_or(|word| word.load(Ordering::Acquire) != *value)
            }),
            Origin::Part { whole, .. } => whole.is_lost(),
        }
    }

    /// Whether a thread of the other side can be woken by a futex in it: the same system has it.
    pub fn has_futexes(&self) -> bool {
        match &self.origin {
            Origin::File(_) => true,
            Origin::Device(_) => false,
            Origin::Part { whole, .. } => whole.has_futexes(),
        }
    }

    /// It without its file, which is closed: for a client in a program that closes descriptors that it does not know,
    /// and has files of its own under their numbers then.
    #[must_use]
    pub fn without_file(mut self) -> Self {
        if let Origin::File(file) = &mut self.origin {
            *file = None;
        }
        self
    }

    /// Its file, to be handed to another process.
    ///
    /// # Errors
    /// If it has none of its own, or that is closed ([`SharedMemory::without_file`]).
    pub fn file(&self) -> io::Result<BorrowedFd<'_>> {
        match &self.origin {
            Origin::File(Some(file)) => Ok(file.as_fd()),
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the memory has no file of its own",
            )),
        }
    }

    /// Where it begins in the memory that it is a part of.
    pub fn offset(&self) -> usize {
        match &self.origin {
            Origin::Part { whole, .. } => self.start.as_ptr().addr() - whole.start.as_ptr().addr(),
            _ => 0,
        }
    }

    /// How long it is, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether this process has mapped it, and not one that it was forked from. A forked child has none of
    /// the memory: for it, nothing lies there.
    #[inline]
    pub fn is_here(&self) -> bool {
        self.process.is_current()
    }

    /// Copies bytes from there.
    ///
    /// # Errors
    /// If they do not all lie in the memory. Then nothing was copied.
    #[inline]
    pub fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), OutOfBounds> {
        self.check(offset, into.len())?;
        // SAFETY: `check` has seen that the offset is within the mapping, and that this process has it.
        let from = unsafe { self.start.as_ptr().add(offset) };
        // SAFETY: so many bytes are readable there, `into` is as long and borrowed by no other code, and
        // the two cannot overlap.
        unsafe { copy(from, into.as_mut_ptr(), into.len()) };
        Ok(())
    }

    /// Copies many bytes from there, out of the file. A part that its owner has never touched reads
    /// as zeros, where a mapping would make pages of it, and keep them.
    ///
    /// # Errors
    /// As [`SharedMemory::read`].
    pub fn read_many(&self, offset: usize, into: &mut [u8]) -> Result<(), OutOfBounds> {
        self.check(offset, into.len())?;
        let Ok(file) = self.file() else { return self.read(offset, into) };
        let mut done = 0;
        while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match rustix::io::pread(file, &mut *rest, (offset + done) as u64) {
                Ok(0) | Err(_) => return self.read(offset + done, rest),
                Ok(read) => done += read,
            }
        }
        Ok(())
    }

    /// Copies bytes there.
    ///
    /// # Errors
    /// If they would not all lie in the memory. Then nothing was copied.
    #[inline]
    pub fn write(&self, offset: usize, from: &[u8]) -> Result<(), OutOfBounds> {
        self.check(offset, from.len())?;
        // SAFETY: `check` has seen that the offset is within the mapping, and that this process has it.
        let into = unsafe { self.start.as_ptr().add(offset) };
        // SAFETY: so many bytes are writable there, `from` is as long, and the two cannot overlap.
        unsafe { copy(from.as_ptr(), into, from.len()) };
        Ok(())
    }

    /// All of it.
    pub fn whole(&self) -> Window<'_> {
        self.window(0..self.bytes)
    }

    /// Those of these bytes that lie in the memory.
    #[inline]
    pub fn window(&self, range: Range<usize>) -> Window<'_> {
        let end = range.end.min(self.bytes);
        Window { memory: self, start: range.start.min(end), end }
    }

    /// Where so many bytes lie, in this process.
    pub(crate) fn place(&self, offset: usize, bytes: usize) -> Option<*mut u8> {
        self.check(offset, bytes).ok()?;
        Some(self.start.as_ptr().wrapping_add(offset))
    }

    /// Whether so many bytes lie there, in this process.
    #[inline]
    fn check(&self, offset: usize, bytes: usize) -> Result<(), OutOfBounds> {
        match offset.checked_add(bytes) {
            Some(end) if end <= self.bytes && self.is_here() => Ok(()),
            _ => Err(OutOfBounds),
        }
    }

    /// A word of 32 bits, for a flag that threads of both sides sleep on. `None` where none lies.
    pub fn flag(&self, offset: usize) -> Option<&AtomicU32> {
        self.check(offset, size_of::<AtomicU32>()).ok()?;
        if !offset.is_multiple_of(align_of::<AtomicU32>()) {
            return None;
        }
        // SAFETY: `check` has seen that the offset is within the mapping, and that this process has it.
        let flag = unsafe { self.start.as_ptr().add(offset) };
        // SAFETY: it is mapped as long as `self` is, aligned, and an atomic may change at any
        // moment.
        Some(unsafe { AtomicU32::from_ptr(flag.cast()) })
    }
}

impl SharedMemory {
    /// A word of 64 bits that both sides change. `None` where none lies.
    pub fn word(&self, offset: usize) -> Option<&AtomicU64> {
        self.check(offset, size_of::<AtomicU64>()).ok()?;
        if !offset.is_multiple_of(align_of::<AtomicU64>()) {
            return None;
        }
        // SAFETY: `check` has seen that the offset is within the mapping, and that this process has it.
        let word = unsafe { self.start.as_ptr().add(offset) };
        // SAFETY: it is mapped as long as `self` is, aligned, and an atomic may change at any
        // moment.
        Some(unsafe { AtomicU64::from_ptr(word.cast()) })
    }
}

impl Window<'_> {
    /// Where it begins.
    #[inline]
    pub fn start(&self) -> usize {
        self.start
    }

    /// Where it ends.
    #[inline]
    pub fn end(&self) -> usize {
        self.end
    }

    /// Copies bytes from there.
    ///
    /// # Errors
    /// If they do not all lie in it. Then nothing was copied.
    #[inline]
    pub fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), OutOfBounds> {
        self.check(offset, into.len())?;
        self.memory.read(offset, into)
    }

    /// Copies bytes there.
    ///
    /// # Errors
    /// If they would not all lie in it. Then nothing was copied.
    #[inline]
    pub fn write(&self, offset: usize, from: &[u8]) -> Result<(), OutOfBounds> {
        self.check(offset, from.len())?;
        self.memory.write(offset, from)
    }

    #[inline]
    fn check(&self, offset: usize, bytes: usize) -> Result<(), OutOfBounds> {
        match offset.checked_add(bytes) {
            Some(end) if self.start <= offset && end <= self.end => Ok(()),
            _ => Err(OutOfBounds),
        }
    }
}

impl Words for Arc<SharedMemory> {
    #[inline]
    fn words(&self) -> &[AtomicU64] {
        if !self.is_here() {
            return &[];
        }
        let words = self.bytes / size_of::<AtomicU64>();
        // SAFETY: a mapping and a part begin at a page, so it is aligned; it lives as long as `self` in the process that
        // made it, which is this one, and atomics may change at any moment.
        unsafe { slice::from_raw_parts(self.start.as_ptr().cast(), words) }
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // In a forked child something else may be there by now.
        if !self.is_here() || matches!(self.origin, Origin::Part { .. }) {
            return;
        }
        let start = self.start.as_ptr().cast::<c_void>();
        // SAFETY: the mapping is this value's own and this process's, and no reference into it outlives it.
        let _ = unsafe { rustix::mm::munmap(start, self.bytes) };
    }
}

/// Copies bytes of which one side may change meanwhile. The result of such a race is some mixture
/// of what was there; the compiler must not think that it knows more, so that it is instructions
/// and not a call.
///
/// # Safety
/// `from` is readable and `into` writable for so many bytes, and they do not overlap.
#[cfg(target_arch = "x86_64")]
#[inline]
unsafe fn copy(from: *const u8, into: *mut u8, bytes: usize) {
    use std::arch::asm;
    if (16..=256).contains(&bytes) {
        // Steps of 16 bytes, the last of them ending where the bytes end. `rep movsb` takes longer
        // to begin than such a copy takes.
        // SAFETY: each step lies within the bytes, since there are 16 at least.
        unsafe {
            asm!(
                "2:",
                "movdqu {x}, [{from} + {at}]",
                "movdqu [{into} + {at}], {x}",
                "add {at}, 16",
                "cmp {at}, {last}",
                "jb 2b",
                "movdqu {x}, [{from} + {last}]",
                "movdqu [{into} + {last}], {x}",
                from = in(reg) from,
                into = in(reg) into,
                last = in(reg) bytes - 16,
                at = inout(reg) 0_usize => _,
                x = out(xmm_reg) _,
                options(nostack),
            );
        }
        return;
    }
    // SAFETY: the direction flag is clear on entry, and both sides are there for so many bytes.
    unsafe {
        asm!(
            "rep movsb",
            inout("rsi") from => _,
            inout("rdi") into => _,
            inout("rcx") bytes => _,
            options(nostack, preserves_flags),
        );
    }
}

/// That copy, a byte at a time where the ends are not aligned, else a word at a time.
///
/// # Safety
/// As above.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
unsafe fn copy(from: *const u8, into: *mut u8, bytes: usize) {
    let word = size_of::<u64>();
    let words = match from.addr() % word == 0 && into.addr() % word == 0 {
        true => bytes / word,
        false => 0,
    };
    for index in 0..words {
        // SAFETY: the word lies within the bytes.
        let (from, into) =
            unsafe { (from.cast::<u64>().add(index), into.cast::<u64>().add(index)) };
        // SAFETY: it is there and aligned.
        let value = unsafe { from.read_volatile() };
        // SAFETY: as above.
        unsafe { into.write_volatile(value) };
    }
    for index in words * word..bytes {
        // SAFETY: the byte lies within the bytes.
        let (from, into) = unsafe { (from.add(index), into.add(index)) };
        // SAFETY: it is there.
        let value = unsafe { from.read_volatile() };
        // SAFETY: as above.
        unsafe { into.write_volatile(value) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_go_in_and_come_out_whatever_their_length_and_place() {
        let memory = SharedMemory::create(3 * 4096).unwrap();
        let bytes: Vec<u8> = (0..2_000).map(|i| (i * 7 + 1) as u8).collect();
        for length in (0..300).chain([511, 512, 1_504, 2_000]) {
            for offset in [0, 1, 15, 64, 1_001] {
                let before = [0xee; 4];
                memory.write(offset + length, &before).unwrap();
                memory.write(offset, &bytes[..length]).unwrap();
                let mut out = vec![0; length + 4];
                memory.read(offset, &mut out).unwrap();
                assert_eq!(out[..length], bytes[..length], "{length} bytes at {offset}");
                assert_eq!(out[length..], before, "behind {length} bytes at {offset}");
                let mut out = vec![0; length + 4];
                memory.read_many(offset, &mut out).unwrap();
                assert_eq!(out[..length], bytes[..length], "{length} bytes at {offset}");
            }
        }
    }

    #[test]
    fn nothing_is_read_or_written_outside() {
        let memory = SharedMemory::create(4096).unwrap();
        let end = memory.bytes();
        assert_eq!(memory.write(end - 1, &[1, 2]), Err(OutOfBounds));
        assert_eq!(memory.read(usize::MAX, &mut [0; 2]), Err(OutOfBounds));
        assert_eq!(memory.read(end, &mut []), Ok(()));
        assert_eq!(memory.read_many(end - 1, &mut [0; 2]), Err(OutOfBounds));
        assert!(memory.flag(end - 4).is_some() && memory.flag(end - 3).is_none());
        assert!(memory.flag(2).is_none());
    }

    #[test]
    fn a_peers_memory_is_taken_only_if_it_can_not_be_cut() {
        let file = |flags| rustix::fs::memfd_create("test", flags | MemfdFlags::CLOEXEC).unwrap();
        let sealable = || {
            let file = file(MemfdFlags::ALLOW_SEALING);
            rustix::fs::ftruncate(&file, 8192).unwrap();
            file
        };
        let adopt = |file| SharedMemory::adopt(file, 8192).map_err(|why| why.kind());
        assert_eq!(adopt(sealable()).err(), Some(io::ErrorKind::InvalidInput));
        let half = sealable();
        rustix::fs::fcntl_add_seals(&half, SealFlags::SHRINK).unwrap();
        assert_eq!(adopt(half).err(), Some(io::ErrorKind::InvalidInput));
        let empty = file(MemfdFlags::ALLOW_SEALING);
        rustix::fs::fcntl_add_seals(&empty, SEALS).unwrap();
        assert_eq!(adopt(empty).err(), Some(io::ErrorKind::InvalidInput));
        let whole = sealable();
        rustix::fs::fcntl_add_seals(&whole, SEALS).unwrap();
        let other = rustix::io::dup(&whole).unwrap();
        assert_eq!(adopt(whole).unwrap().bytes(), 8192);
        assert!(SharedMemory::adopt(other, 4096).is_err());
        let ordinary = std::fs::File::open("/proc/self/exe").unwrap();
        assert!(SharedMemory::adopt(ordinary.into(), usize::MAX).is_err());
    }

    #[test]
    fn both_ends_see_the_same_bytes() {
        let memory = SharedMemory::create(1).unwrap();
        let other = rustix::io::dup(memory.file().unwrap()).unwrap();
        let other = SharedMemory::adopt(other, 1 << 20).unwrap();
        memory.write(100, b"across").unwrap();
        let mut out = [0; 6];
        other.read(100, &mut out).unwrap();
        assert_eq!(&out, b"across");
    }
}
