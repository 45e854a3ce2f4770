//! systemd's journal as the place of the logs: a datagram for each line (its native protocol).

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

/// The end of an entry: fields are lines, and none is empty.
const END: &[u8] = b"\n\n";

/// A journal that can be written to.
pub struct Journal {
    path: PathBuf,
    socket: UnixDatagram,
}

impl Journal {
    /// Checks whether a process listens there.
    ///
    /// # Errors
    /// The system's; `NotFound` and `ConnectionRefused` if none does.
    pub fn open(path: &Path) -> io::Result<Journal> {
        let socket = UnixDatagram::unbound()?;
        socket.connect(path)?;
        Ok(Journal { path: path.to_owned(), socket })
    }

    /// Sends entries. Those that could not be are given back with the reason.
    pub fn put<'a>(&mut self, mut entries: &'a [u8]) -> Result<(), (&'a [u8], io::Error)> {
        while !entries.is_empty() {
            let length = end_of_first(entries);
            match self.send(&entries[..length]) {
                Ok(()) => entries = &entries[length..],
                Err(why) => return Err((entries, why)),
            }
        }
        Ok(())
    }

    /// A journal that was started again has another socket at the same place.
    fn send(&mut self, entry: &[u8]) -> io::Result<()> {
        if self.socket.send(entry).is_ok() {
            return Ok(());
        }
        *self = Journal::open(&self.path)?;
        self.socket.send(entry).map(drop)
    }
}

fn end_of_first(entries: &[u8]) -> usize {
    let end = entries.windows(END.len()).position(|bytes| bytes == END);
    end.map_or(entries.len(), |at| at + END.len())
}

/// How many entries there are.
pub fn count(mut entries: &[u8]) -> u64 {
    let mut count = 0;
    while !entries.is_empty() {
        entries = &entries[end_of_first(entries)..];
        count += 1;
    }
    count
}
