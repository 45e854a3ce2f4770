//! The data file in one state, page for page, while others go on writing.
//!
//! Pages keep their places, so that a copy has the same bytes as an earlier one wherever nothing was changed. Pages of
//! this state are not used again while its read transaction lives. Those that were free in it may be written meanwhile:
//! nothing in the copy leads to them.
//!
//! LMDB writes pages to the file before the head that leads to them, and reads them by a map that shares the system's
//! pages with `read`. It guards its lock file with POSIX locks, which go when a process closes any descriptor of it,
//! and has none on the data file (`me_lfd` in `mdb.c`), so that this may be opened and closed again.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use crate::disk::DATA;
use crate::limits::SNAPSHOT_TRIES_MAX;
use crate::shared::Shared;
use crate::{Error, FeedHead, Read, header};

/// One committed state, to be read from its first byte to its last. It holds a read transaction: see
/// [`Read`](crate::Read).
pub struct Snapshot {
    read: Read,
    incarnation: [u8; 16],
    file: File,
    /// The meta pages, one after the other.
    head: Vec<u8>,
    bytes: u64,
    at: u64,
}

impl Snapshot {
    pub(crate) fn begin(shared: &Arc<Shared>) -> Result<Snapshot, Error> {
        let reading = |e| Error::system("reading the data file", e);
        shared.is_in_place()?;
        let file = File::open(shared.dir().join(DATA)).map_err(reading)?;
        for _ in 0..SNAPSHOT_TRIES_MAX {
            let read = Read::begin_anew(shared)?;
            // Two commits between the two overwrite the head of the first.
            let found = header::of_transaction(&file, read.version()).map_err(reading)?;
            let Some((meta, pages)) = found else { continue };
            let too_long = || Error::damaged("the head of the data file contradicts itself");
            let bytes = meta.file_bytes().ok_or_else(too_long)?;
            let (incarnation, head) = (shared.incarnation, pages.concat());
            return Ok(Snapshot { read, incarnation, file, head, bytes, at: 0 });
        }
        Err(Error::damaged("the data file has no head of its last state"))
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
                read => read,
            },
        };
        self.at += read as u64;
        Ok(read)
    }
}
