//! The head of the last state that is on the disk as a whole, in a file beside the data, for as long as changes are
//! answered before they are on the disk.
//!
//! Heads that such changes write reach the disk before, after or without the pages that they lead to. What a cut of power
//! leaves is that state, by this head, as long as none of its pages was written over.
//!
//! Two places take turns, so that a cut while one is written leaves the other:
//! `"kwsynced" | CRC-32 of the rest (4 B) | boot (16 B, not in the sum) | number (8 B) | bytes of the page (4 B) | page`,
//! in the machine's byte order, as LMDB's own pages are.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::disk::{self, KEPT, KEPT_DRAFT};
use crate::header::{long, word};
use crate::{OpenError, header};

const MAGIC: &[u8; 8] = b"kwsynced";
const SUM_AT: usize = 8;
const BOOT_AT: usize = 12;
const NUMBER_AT: usize = 28;
const LENGTH_AT: usize = 36;
const PAGE_AT: usize = 40;
/// LMDB's largest page.
const PAGE_BYTES_MAX: usize = 64 << 10;
/// From the one place to the other.
const PLACE_BYTES: u64 = 128 << 10;

/// The identity of the system's present run; `None` if the system does not say.
type Boot = Option<[u8; 16]>;

/// The open file.
pub(crate) struct Kept {
    file: File,
    boot: Boot,
    /// Of the last head that was written.
    number: u64,
}

/// A head that was kept.
pub(crate) struct Found {
    /// The meta page, as it was at the first of its two places.
    pub page: Vec<u8>,
    /// The system has not been started since: all that was written is there.
    pub is_of_this_boot: bool,
}

impl Kept {
    /// Makes the file, with a first head.
    pub fn create(dir: &Path, page: &[u8]) -> Result<Kept, OpenError> {
        let attempt = |e| OpenError::system("keeping the store's head", e);
        let draft = dir.join(KEPT_DRAFT);
        disk::remove(&draft).map_err(attempt)?;
        let file = disk::create(&draft).map_err(attempt)?;
        // What is written later needs no room.
        file.write_all_at(&vec![0; 2 * PLACE_BYTES as usize], 0).map_err(attempt)?;
        file.sync_all().map_err(attempt)?;
        let mut kept = Kept { file, boot: this_boot(), number: 0 };
        kept.put(page).map_err(attempt)?;
        fs::rename(&draft, dir.join(KEPT)).map_err(attempt)?;
        disk::sync_folder(dir)?;
        Ok(kept)
    }

    /// Keeps a head from now on; the state that it leads to is on the disk.
    pub fn put(&mut self, page: &[u8]) -> io::Result<()> {
        self.number += 1;
        let place = written(self.boot, self.number, page);
        self.file.write_all_at(&place, self.number % 2 * PLACE_BYTES)?;
        self.file.sync_data()
    }

    /// Has the next process go back to this head also without a cut of power.
    pub fn distrust(&self) -> io::Result<()> {
        // The system's memory has it, and is all that such a process looks at.
        self.file.write_all_at(&[0; 16], self.number % 2 * PLACE_BYTES + BOOT_AT as u64)
    }
}

fn written(boot: Boot, number: u64, page: &[u8]) -> Vec<u8> {
    let mut place = Vec::with_capacity(PAGE_AT + page.len());
    place.extend_from_slice(MAGIC);
    place.extend_from_slice(&[0; 4]);
    place.extend_from_slice(&boot.unwrap_or_default());
    place.extend_from_slice(&number.to_ne_bytes());
    place.extend_from_slice(&(page.len() as u32).to_ne_bytes());
    place.extend_from_slice(page);
    let sum = sum(&place);
    if let Some(at) = place.get_mut(SUM_AT..BOOT_AT) {
        at.copy_from_slice(&sum.to_ne_bytes());
    }
    place
}

fn sum(place: &[u8]) -> u32 {
    crc32fast::hash(place.get(NUMBER_AT..).unwrap_or_default())
}

/// The head that is kept in `dir`.
///
/// # Errors
/// [`OpenError::Damaged`] if none of the two places has one.
pub(crate) fn look(dir: &Path) -> Result<Option<Found>, OpenError> {
    let attempt = |e| OpenError::system("looking for the store's head", e);
    let damaged = || OpenError::Damaged { what: format!("{KEPT} has no head") };
    // No link is followed, and no pipe waited for.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = match File::options().read(true).custom_flags(flags).open(dir.join(KEPT)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
            return Err(damaged());
        }
        other => other.map_err(attempt)?,
    };
    if !file.metadata().map_err(attempt)?.is_file() {
        return Err(damaged());
    }
    let places = [read(&file, 0).map_err(attempt)?, read(&file, PLACE_BYTES).map_err(attempt)?];
    let last = places.into_iter().flatten().max_by_key(|(number, ..)| *number);
    let (_, boot, page) = last.ok_or_else(damaged)?;
    let page = header::at_first_place(page).ok_or_else(damaged)?;
    let is_of_this_boot = this_boot().is_some_and(|this| this == boot);
    Ok(Some(Found { page, is_of_this_boot }))
}

/// Number, boot and page of a place.
type Place = (u64, [u8; 16], Vec<u8>);

fn read(file: &File, at: u64) -> io::Result<Option<Place>> {
    let mut head = [0; PAGE_AT];
    match file.read_exact_at(&mut head, at) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let length = word(&head, LENGTH_AT).map_or(0, |length| length as usize);
    if !head.starts_with(MAGIC) || !(1..=PAGE_BYTES_MAX).contains(&length) {
        return Ok(None);
    }
    let mut place = vec![0; PAGE_AT + length];
    match file.read_exact_at(&mut place, at) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let found = || {
        let boot = *place.get(BOOT_AT..)?.first_chunk()?;
        let is_right = word(&place, SUM_AT)? == sum(&place);
        is_right.then_some((long(&place, NUMBER_AT)?, boot, place.get(PAGE_AT..)?.to_vec()))
    };
    Ok(found())
}

/// Takes the file away: all of the store is on the disk.
pub(crate) fn forget(dir: &Path) -> Result<(), OpenError> {
    let attempt = |e| OpenError::system("taking the store's kept head away", e);
    disk::remove(&dir.join(KEPT)).map_err(attempt)?;
    disk::sync_folder(dir)
}

fn this_boot() -> Boot {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let digits: String = text.trim().chars().filter(|c| *c != '-').collect();
    u128::from_str_radix(&digits, 16).ok().map(u128::to_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_whole_head_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let page = |number| header::made_up(4096, number);
        let found = || look(dir.path()).map(|found| found.map(|it| (it.page, it.is_of_this_boot)));
        assert!(found().unwrap().is_none());
        let mut kept = Kept::create(dir.path(), &page(1)).unwrap();
        assert!(found().unwrap() == Some((page(1), true)));
        kept.put(&page(2)).unwrap();
        kept.put(&page(3)).unwrap();
        assert!(found().unwrap() == Some((page(3), true)));
        // A cut while the next one is written.
        let path = dir.path().join(KEPT);
        let whole = fs::read(&path).unwrap();
        for torn in [0, 5, 13, 29, 100, 184] {
            let mut bytes = whole.clone();
            let next = written(this_boot(), 4, &page(4));
            bytes[..torn].copy_from_slice(&next[..torn]);
            fs::write(&path, &bytes).unwrap();
            assert!(found().unwrap().map(|it| it.0) == Some(page(3)), "{torn}");
        }
        fs::write(&path, &whole).unwrap();
        kept.distrust().unwrap();
        assert!(found().unwrap() == Some((page(3), false)));
        fs::write(&path, vec![0; whole.len()]).unwrap();
        assert!(matches!(found(), Err(OpenError::Damaged { .. })));
        forget(dir.path()).unwrap();
        assert!(found().unwrap().is_none());
    }
}
