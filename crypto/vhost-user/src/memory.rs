//! The guest's memory, as the front end describes it: regions of files, mapped here. All unsafe code of this crate is in
//! this file.
//!
//! The guest and the front end may change any of it at any moment, so that nothing here hands out a reference to it:
//! bytes are copied, and indexes are atomics. A file may be cut after it was mapped, since files that cannot be sealed
//! (huge pages, ivshmem) are guests' memory too. A copy then raises SIGBUS, which ends the process. That is why a
//! virtual machine has a process of its own.

use crate::limits::REGIONS_MAX;
use crate::message::RegionDescription;
use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::ffi::c_void;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU16, Ordering};

/// `HUGETLBFS_MAGIC` of `<linux/magic.h>`.
const HUGE_PAGES: u64 = 0x958458f6;

/// The bytes are not in the guest's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutOfMemory;

/// The regions, none of which overlap.
#[derive(Debug, Default)]
pub(crate) struct GuestMemory {
    regions: Vec<Region>,
}

#[derive(Debug)]
struct Region {
    described: RegionDescription,
    mapping: Mapping,
    /// Where the region begins in the mapping, which begins at a page.
    offset: usize,
}

impl GuestMemory {
    /// Maps a table's regions. The files are closed: a mapping needs none.
    ///
    /// # Errors
    /// Why the table is not sound: a region that is empty, wraps, is longer than its file or overlaps another; a file
    /// too few or too many; or one that cannot be mapped.
    pub fn new(table: &[RegionDescription], files: Vec<OwnedFd>) -> Result<Self, &'static str> {
        if table.is_empty() || table.len() > REGIONS_MAX {
            return Err("a memory table has 1 to 32 regions");
        }
        if files.len() != table.len() {
            return Err("a memory table has a file for each region");
        }
        let mut regions: Vec<Region> = Vec::new();
        for (described, file) in table.iter().zip(files) {
            let range = range(described.guest, described.bytes)?;
            self::range(described.user, described.bytes)?;
            let overlaps = |other: &Region| {
                let start = other.described.guest;
                range.start < start + other.described.bytes && start < range.end
            };
            if regions.iter().any(overlaps) {
                return Err("two regions of memory overlap");
            }
            regions.push(Region::map(*described, &file)?);
        }
        Ok(GuestMemory { regions })
    }

    /// Whether all these bytes lie in it.
    pub fn has(&self, guest: u64, bytes: u64) -> bool {
        let (mut at, mut rest) = (guest, bytes);
        while rest > 0 {
            let Some((_, within)) = self.region(at) else { return false };
            let here = rest.min(within);
            rest -= here;
            at = match at.checked_add(here) {
                Some(next) => next,
                None => return rest == 0,
            };
        }
        true
    }

    /// Copies bytes from there, which may lie in several regions.
    ///
    /// # Errors
    /// If they are not all there. Some may have been copied.
    pub fn read(&self, guest: u64, into: &mut [u8]) -> Result<(), OutOfMemory> {
        let mut at = 0;
        while let Some(rest) = into.get_mut(at..).filter(|rest| !rest.is_empty()) {
            let address = guest.checked_add(at as u64).ok_or(OutOfMemory)?;
            let (area, within) = self.region(address).ok_or(OutOfMemory)?;
            let here = rest.len().min(usize::try_from(within).unwrap_or(usize::MAX));
            area.read(0, &mut rest[..here])?;
            at += here;
        }
        Ok(())
    }

    /// Copies bytes there, into several regions perhaps.
    ///
    /// # Errors
    /// If not all of that is there. Some may have been copied.
    pub fn write(&self, guest: u64, from: &[u8]) -> Result<(), OutOfMemory> {
        let mut at = 0;
        while let Some(rest) = from.get(at..).filter(|rest| !rest.is_empty()) {
            let address = guest.checked_add(at as u64).ok_or(OutOfMemory)?;
            let (area, within) = self.region(address).ok_or(OutOfMemory)?;
            let here = rest.len().min(usize::try_from(within).unwrap_or(usize::MAX));
            area.write(0, &rest[..here])?;
            at += here;
        }
        Ok(())
    }

    /// The bytes at an address of the front end's, all in one region and so aligned.
    pub fn area(&self, user: u64, bytes: usize, alignment: usize) -> Option<Area<'_>> {
        let area = self.regions.iter().find_map(|region| {
            let offset = user.checked_sub(region.described.user)?;
            region.area(offset).filter(|area| area.bytes >= bytes)
        })?;
        let aligned = area.start.addr().get().is_multiple_of(alignment);
        aligned.then_some(Area { bytes, ..area })
    }

    /// The rest of the region that this address lies in, and its length.
    fn region(&self, guest: u64) -> Option<(Area<'_>, u64)> {
        self.regions.iter().find_map(|region| {
            let area = region.area(guest.checked_sub(region.described.guest)?)?;
            Some((area, area.bytes as u64))
        })
    }
}

fn range(start: u64, bytes: u64) -> Result<Range<u64>, &'static str> {
    match start.checked_add(bytes) {
        Some(end) if bytes > 0 => Ok(start..end),
        _ => Err("a region of memory is empty, or wraps"),
    }
}

impl Region {
    fn map(described: RegionDescription, file: &OwnedFd) -> Result<Region, &'static str> {
        let RegionDescription { bytes, offset, .. } = described;
        let end = range(offset, bytes)?.end;
        let unreadable = |_| "a region's file cannot be asked for its length";
        let length = rustix::fs::fstat(file).map_err(unreadable)?.st_size;
        if u64::try_from(length).map_or(true, |length| end > length) {
            return Err("a region of memory is longer than its file");
        }
        let kind = rustix::fs::fstatfs(file).map_err(unreadable)?;
        let page = match u64::try_from(kind.f_bsize) {
            Ok(page) if kind.f_type as u64 == HUGE_PAGES && page.is_power_of_two() => page,
            _ => rustix::param::page_size() as u64,
        };
        let start = offset - offset % page;
        let mapped = (end - start).checked_next_multiple_of(page).map(usize::try_from);
        let Some(Ok(mapped)) = mapped else { return Err("a region of memory is too long") };
        let mapping = Mapping::new(file, start, mapped)?;
        Ok(Region { described, mapping, offset: (offset - start) as usize })
    }

    /// From this offset to the end of the region.
    fn area(&self, offset: u64) -> Option<Area<'_>> {
        let bytes = self.described.bytes.checked_sub(offset).filter(|bytes| *bytes > 0)?;
        let start = self.mapping.place(self.offset + offset as usize, bytes as usize)?;
        Some(Area { start, bytes: bytes as usize, _memory: self })
    }
}

/// Some of the guest's memory, in one region.
#[derive(Clone, Copy)]
pub(crate) struct Area<'a> {
    start: NonNull<u8>,
    bytes: usize,
    /// Keeps the region mapped.
    _memory: &'a Region,
}

impl Area<'_> {
    /// Copies bytes from there.
    pub fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), OutOfMemory> {
        let from = self.place(offset, into.len())?;
        // SAFETY: so many bytes are mapped there; `into` is as long, and is not in the mapping, of which there are
        // no references.
        unsafe { copy(from.as_ptr(), into.as_mut_ptr(), into.len()) };
        Ok(())
    }

    /// Copies bytes there.
    pub fn write(&self, offset: usize, from: &[u8]) -> Result<(), OutOfMemory> {
        let into = self.place(offset, from.len())?;
        // SAFETY: so many bytes are mapped and writable there; `from` is as long, and is not in the mapping, of
        // which there are no references.
        unsafe { copy(from.as_ptr(), into.as_ptr(), from.len()) };
        Ok(())
    }

    /// The number there, in the order of the guest, read at once and before all that is read later.
    pub fn load(&self, offset: usize) -> Result<u16, OutOfMemory> {
        Ok(u16::from_le(self.word(offset)?.load(Ordering::Acquire)))
    }

    /// Writes that number there at once, and after all that was written before.
    pub fn store(&self, offset: usize, value: u16) -> Result<(), OutOfMemory> {
        self.word(offset)?.store(value.to_le(), Ordering::Release);
        Ok(())
    }

    fn word(&self, offset: usize) -> Result<&AtomicU16, OutOfMemory> {
        let word = self.place(offset, size_of::<AtomicU16>())?.cast::<u16>();
        if !word.is_aligned() {
            return Err(OutOfMemory);
        }
        // SAFETY: it is aligned, it is mapped as long as the region is borrowed, and an atomic may change at any
        // moment.
        Ok(unsafe { AtomicU16::from_ptr(word.as_ptr()) })
    }

    fn place(&self, offset: usize, bytes: usize) -> Result<NonNull<u8>, OutOfMemory> {
        match offset.checked_add(bytes) {
            Some(end) if end <= self.bytes => {}
            _ => return Err(OutOfMemory),
        }
        // SAFETY: the offset is within the area, which is within its mapping.
        Ok(unsafe { self.start.add(offset) })
    }
}

/// Pages of a file.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

impl Mapping {
    fn new(file: &OwnedFd, offset: u64, bytes: usize) -> Result<Mapping, &'static str> {
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping, at a place that the system chooses, is used by no other code.
        let start =
            unsafe { rustix::mm::mmap(ptr::null_mut(), bytes, access, flags, file, offset) };
        let start = start.ok().and_then(|start| NonNull::new(start.cast::<u8>()));
        let mapping = Mapping { start: start.ok_or("a region's file cannot be mapped")?, bytes };
        for advice in [Advice::LinuxDontDump, Advice::LinuxDontFork] {
            // Neither a core file nor a child has a use for a guest's memory. Not all files take such advice.
            // SAFETY: the advice is on the whole of this mapping, and changes no content of it.
            let _ = unsafe { rustix::mm::madvise(mapping.start.as_ptr().cast(), bytes, advice) };
        }
        Ok(mapping)
    }

    /// Where so many bytes lie.
    fn place(&self, offset: usize, bytes: usize) -> Option<NonNull<u8>> {
        offset.checked_add(bytes).filter(|end| *end <= self.bytes)?;
        // SAFETY: the offset is within the mapping.
        Some(unsafe { self.start.add(offset) })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let start = self.start.as_ptr().cast::<c_void>();
        // SAFETY: the mapping is this value's own, and no area of it outlives it.
        let _ = unsafe { rustix::mm::munmap(start, self.bytes) };
    }
}

/// Copies bytes of which the guest may change one side meanwhile. The result of such a race is some mixture of what was
/// there. It is an instruction and no call, so that the compiler does not think that it knows more.
///
/// # Safety
/// `from` is readable and `into` writable for so many bytes, and they do not overlap.
#[cfg(target_arch = "x86_64")]
unsafe fn copy(from: *const u8, into: *mut u8, bytes: usize) {
    // SAFETY: the direction flag is clear on entry, and both sides are there for so many bytes.
    unsafe {
        std::arch::asm!(
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
unsafe fn copy(from: *const u8, into: *mut u8, bytes: usize) {
    let word = size_of::<u64>();
    let words = match from.addr() % word == 0 && into.addr() % word == 0 {
        true => bytes / word,
        false => 0,
    };
    for index in 0..words {
        // SAFETY: the word lies within the bytes.
        let from = unsafe { from.cast::<u64>().add(index) };
        // SAFETY: as above.
        let into = unsafe { into.cast::<u64>().add(index) };
        // SAFETY: it is there and aligned.
        let value = unsafe { from.read_volatile() };
        // SAFETY: as above.
        unsafe { into.write_volatile(value) };
    }
    for index in words * word..bytes {
        // SAFETY: the byte lies within the bytes.
        let from = unsafe { from.add(index) };
        // SAFETY: as above.
        let into = unsafe { into.add(index) };
        // SAFETY: it is there.
        let value = unsafe { from.read_volatile() };
        // SAFETY: as above.
        unsafe { into.write_volatile(value) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::MemfdFlags;

    fn file(bytes: u64) -> OwnedFd {
        let file = rustix::fs::memfd_create("test", MemfdFlags::CLOEXEC).unwrap();
        rustix::fs::ftruncate(&file, bytes).unwrap();
        file
    }

    fn region(guest: u64, bytes: u64, user: u64, offset: u64) -> RegionDescription {
        RegionDescription { guest, bytes, user, offset }
    }

    fn table(regions: &[RegionDescription]) -> Result<GuestMemory, &'static str> {
        GuestMemory::new(regions, regions.iter().map(|_| file(0x4000)).collect())
    }

    #[test]
    fn tables_that_are_not_sound_are_refused() {
        assert!(table(&[region(0, 0x4000, 0x10000, 0)]).is_ok());
        for regions in [
            &[][..],
            &[region(0, 0, 0, 0)],
            &[region(0, 0x4001, 0, 0)],
            &[region(0, 0x4000, 0, 1)],
            &[region(0, u64::MAX, 0, 0)],
            &[region(0, 0x1000, 0, u64::MAX)],
            &[region(u64::MAX - 0xffe, 0x1000, 0, 0)],
            &[region(0, 0x1000, u64::MAX - 0xffe, 0)],
            &[region(0, 0x2000, 0, 0), region(0x1fff, 1, 0x10000, 0)],
            &[region(0x1000, 1, 0, 0), region(0, 0x2000, 0x10000, 0)],
            &[region(0, 1, 0, 0); 33],
        ] {
            assert!(table(regions).is_err(), "{regions:?}");
        }
        assert!(GuestMemory::new(&[region(0, 1, 0, 0)], Vec::new()).is_err());
        assert!(GuestMemory::new(&[region(0, 1, 0, 0)], vec![file(1), file(1)]).is_err());
        let read_only = std::fs::File::open("/proc/self/exe").unwrap();
        assert!(GuestMemory::new(&[region(0, 1, 0, 0)], vec![read_only.into()]).is_err());
    }

    #[test]
    fn bytes_are_found_across_regions_and_nowhere_else() {
        let memory = table(&[
            region(0x8000, 0x1234, 0x70_0000, 0x10),
            region(0x9234, 0x100, 0x10_0000, 0x3001),
        ])
        .unwrap();
        assert!(memory.has(0x8000, 0x1334) && memory.has(0x9233, 2) && memory.has(0, 0));
        for (guest, bytes) in [(0x7fff, 2), (0x8000, 0x1335), (0x9334, 1), (u64::MAX, 2)] {
            assert!(!memory.has(guest, bytes), "{guest:x}");
            assert_eq!(memory.write(guest, &vec![1; bytes as usize]), Err(OutOfMemory));
            assert_eq!(memory.read(guest, &mut vec![1; bytes as usize]), Err(OutOfMemory));
        }
        let bytes: Vec<u8> = (0..100).collect();
        memory.write(0x9234 - 50, &bytes).unwrap();
        let mut read = [0; 100];
        memory.read(0x9234 - 50, &mut read).unwrap();
        assert_eq!(read[..], bytes[..]);
        let behind = memory.area(0x10_0000, 50, 1).unwrap();
        let mut half = [0; 50];
        behind.read(0, &mut half).unwrap();
        assert_eq!(half[..], bytes[50..]);
        assert_eq!(behind.read(1, &mut half), Err(OutOfMemory));
    }

    #[test]
    fn an_area_is_in_one_region_and_aligned() {
        let memory =
            table(&[region(0, 0x1000, 0x10_0000, 0), region(0x1000, 0x1000, 0x10_1000, 0)]);
        let memory = memory.unwrap();
        assert!(memory.area(0x10_0ff0, 16, 16).is_some());
        assert!(memory.area(0x10_0ff8, 16, 8).is_none(), "it is in two");
        assert!(memory.area(0x10_0ff8, 8, 16).is_none());
        assert!(memory.area(0x10_2000, 1, 1).is_none() && memory.area(0, 1, 1).is_none());
        let area = memory.area(0x10_0000, 6, 2).unwrap();
        area.store(2, 0x1234).unwrap();
        assert_eq!(area.load(2), Ok(0x1234));
        let mut bytes = [0; 2];
        area.read(2, &mut bytes).unwrap();
        assert_eq!(bytes, [0x34, 0x12]);
        assert!(area.load(1).is_err() && area.load(5).is_err() && area.store(6, 0).is_err());
    }

    #[test]
    fn a_table_that_is_replaced_leaves_no_mapping_and_no_file() {
        let mapped = || std::fs::read_to_string("/proc/self/maps").unwrap().matches("leak").count();
        for _ in 0..100 {
            let file = rustix::fs::memfd_create("leak", MemfdFlags::CLOEXEC).unwrap();
            rustix::fs::ftruncate(&file, 0x1000).unwrap();
            let memory = GuestMemory::new(&[region(0, 0x1000, 0, 0)], vec![file]).unwrap();
            assert_eq!(mapped(), 1);
            drop(memory);
        }
        assert_eq!(mapped(), 0);
    }
}
