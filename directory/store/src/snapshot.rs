//! The data file in one state, page for page, while others go on writing.
//!
//! Pages keep their places, so that a copy has the same bytes as an earlier one wherever nothing was changed. Pages of
//! this state are not used again while its read transaction lives. Those that were free in it may be written meanwhile,
//! and hold what was deleted before: they are zeros in the copy. Nothing in it leads to them, and LMDB writes a free page
//! before it reads it.
//!
//! LMDB writes pages to the file before the head that leads to them, and reads them by a map that shares the system's
//! pages with `read`. It guards its lock file with POSIX locks, which go when a process closes any descriptor of it,
//! and has none on the data file (`me_lfd` in `mdb.c`), so that this may be opened and closed again.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use crate::copy::copy_range;
use crate::disk::DATA;
use crate::limits::SNAPSHOT_TRIES_MAX;
use crate::pages::{Bits, Pages};
use crate::shared::Shared;
use crate::{Error, FeedHead, Read, header};

/// One committed state, to be read from its first byte to its last. It holds a read transaction: see
/// [`Read`].
pub struct Snapshot {
    read: Read,
    incarnation: [u8; 16],
    file: File,
    /// The meta pages, one after the other.
    head: Vec<u8>,
    page_bytes: u64,
    free: Bits,
    bytes: u64,
    at: u64,
}

impl Snapshot {
    pub(crate) fn begin(shared: &Arc<Shared>) -> Result<Snapshot, Error> {
        let reading = |e| Error::system("reading the data file", e);
        let file = File::open(shared.dir().join(DATA)).map_err(reading)?;
        // Behind the opening: another file may have been put there just before.
        shared.is_in_place()?;
        for _ in 0..SNAPSHOT_TRIES_MAX {
            let read = Read::begin_anew(shared)?;
            let found = header::of_transaction(&file, read.version()).map_err(reading)?;
            // The next but one commit overwrites the head, and begins only when the next one is done.
            if Read::begin_anew(shared)?.version() != read.version() {
                continue;
            }
            let no_head = || Error::damaged("the data file has no head of its last state");
            let (meta, pages) = found.ok_or_else(no_head)?;
            let too_long = || Error::damaged("the head of the data file contradicts itself");
            let bytes = meta.file_bytes().ok_or_else(too_long)?;
            let file_bytes = file.metadata().map_err(reading)?.len();
            let clone = file.try_clone().map_err(reading)?;
            let free = Pages::free(clone, &meta, file_bytes)
                .ok_or_else(|| Error::damaged("the list of free pages is none"))?;
            let (incarnation, head, page_bytes) =
                (shared.incarnation, pages.concat(), meta.page_bytes);
            return Ok(Snapshot { read, incarnation, file, head, page_bytes, free, bytes, at: 0 });
        }
        let overtaken = "changes come too fast for it; try again";
        Err(Error::system("copying a state of the store", io::Error::other(overtaken)))
    }

    /// Its length in bytes.
    pub fn length(&self) -> u64 {
        self.bytes
    }

    /// Which store it is of: see [`Store::incarnation`](crate::Store::incarnation).
    pub fn incarnation(&self) -> [u8; 16] {
        self.incarnation
    }

    /// How often that was restored: see [`Store::epoch`](crate::Store::epoch).
    ///
    /// # Errors
    /// The store's.
    pub fn epoch(&self) -> Result<u64, Error> {
        self.read.view().epoch()
    }

    /// How far the feed has come in it: see [`View::feed_head`](crate::View::feed_head).
    ///
    /// # Errors
    /// The store's.
    pub fn feed_head(&self) -> Result<Option<FeedHead>, Error> {
        self.read.view().feed_head()
    }

    /// How many entries it has.
    ///
    /// # Errors
    /// The store's.
    pub fn entries(&self) -> Result<u64, Error> {
        self.read.view().entry_count()
    }
}

impl Snapshot {
    /// Writes it into an empty file, which has the bytes then that it would be read as. Free pages are holes there, and
    /// pages in use share their blocks with the store's where the file system can do that: no page of this state is
    /// written while this lives, and the heads, which are, have blocks of their own. `progress` hears up to which byte
    /// it is done.
    ///
    /// # Errors
    /// The system's, for either file.
    pub fn write_to(&self, to: &File, progress: &mut dyn FnMut(u64)) -> io::Result<()> {
        to.write_all_at(&self.head, 0)?;
        let first = self.head.len() as u64 / self.page_bytes;
        let end = (self.bytes / self.page_bytes).min(self.free.len());
        let next = |from: u64, is_free: bool| {
            (from..end).find(|&page| self.free.has(page) == is_free).unwrap_or(end)
        };
        let mut page = next(first, false);
        while page < end {
            let behind = next(page, true);
            let (at, until) = (page * self.page_bytes, behind * self.page_bytes);
            copy_range(&self.file, to, at, until, progress)?;
            page = next(behind, false);
        }
        to.set_len(self.bytes)?;
        progress(self.bytes);
        Ok(())
    }

    /// Fills the parts of these bytes, which come next, with zeros that lie in free pages.
    fn blank(&self, bytes: &mut [u8]) {
        let mut at = self.at;
        let mut rest = bytes;
        while !rest.is_empty() {
            let (page, begun) = (at / self.page_bytes, at % self.page_bytes);
            let left = usize::try_from(self.page_bytes - begun).unwrap_or(usize::MAX);
            let (part, more) = rest.split_at_mut(left.min(rest.len()));
            // The last pages may be free and never written; another state may have written them since.
            if self.free.has(page) || page >= self.free.len() {
                part.fill(0);
            }
            at += part.len() as u64;
            rest = more;
        }
    }
}

impl io::Read for Snapshot {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.bytes - self.at).unwrap_or(usize::MAX);
        let room = buffer.len().min(left);
        let buffer = &mut buffer[..room];
        let head = usize::try_from(self.at).ok().and_then(|at| self.head.get(at..));
        let read = match head {
            Some(mut head) if !head.is_empty() => io::Read::read(&mut head, buffer)?,
            _ => match self.file.read_at(buffer, self.at)? {
                // The last pages may be free and never written.
                0 => {
                    buffer.fill(0);
                    room
                }
                read => {
                    self.blank(&mut buffer[..read]);
                    read
                }
            },
        };
        self.at += read as u64;
        Ok(read)
    }
}
