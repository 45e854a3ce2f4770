//! Looking at a page from another process.

use crate::layout::{self, at};
use crate::limits::{COUNTERS_MAX, PAGE_BYTES, SHARDS};
use crate::page::Mapping;
use crate::{Error, Fault};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

/// Another process's page, mapped read-only: looking costs the process that counts nothing.
pub struct Reader {
    path: PathBuf,
    file: File,
    mapping: Mapping,
}

/// What a page showed at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The process that counts.
    pub pid: u32,
    /// When it opened the page, in milliseconds since 1970 (UTC).
    pub started_unix_ms: u64,
    /// Names and values, in the order in which the counters were made.
    pub counters: Vec<(String, u64)>,
}

impl Reader {
    /// Opens the page at `path` and checks that it is one.
    ///
    /// # Errors
    /// [`Error::Page`] if the file is something else, another version's or damaged,
    /// [`Error::System`] if it cannot be opened or mapped.
    pub fn open(path: &Path) -> Result<Reader, Error> {
        let system = |what| move |source| Error::System { what, path: path.to_owned(), source };
        let file = OpenOptions::new()
            .read(true)
            // A pipe of that name must not hold us up.
            .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32)
            .open(path)
            .map_err(system("open the page of counters"))?;
        let metadata = file.metadata().map_err(system("look at the page of counters"))?;
        let bytes = usize::try_from(metadata.len()).unwrap_or(usize::MAX);
        let not_a_page = || Error::Page { path: path.to_owned(), fault: Fault::NotAPage };
        if !metadata.is_file() {
            return Err(not_a_page());
        }
        let mapping = Mapping::read_only(&file, bytes)
            .map_err(system("map the page of counters"))?
            .ok_or_else(not_a_page)?;
        let reader = Reader { path: path.to_owned(), file, mapping };
        reader.snapshot()?;
        Ok(reader)
    }

    /// Reads all counters. Each value is exact; they are not all of the same instant.
    ///
    /// # Errors
    /// [`Error::Page`] if the page is not what it was when it was opened.
    pub fn snapshot(&self) -> Result<Snapshot, Error> {
        let fault = |fault| Error::Page { path: self.path.clone(), fault };
        let words = self.mapping.words();
        let metadata = self.file.metadata().map_err(|source| Error::System {
            what: "look at the page of counters",
            path: self.path.clone(),
            source,
        })?;
        if metadata.len() < words.len() as u64 * 8 {
            return Err(fault(Fault::Damaged("the file has shrunk")));
        }
        Snapshot::read(words).map_err(fault)
    }

    /// Whether the process that counts still runs.
    ///
    /// It holds a lock on the file that the system drops however it ends; a process id that was
    /// given to another process, or that means nothing in this container, misleads nobody.
    pub fn alive(&self) -> bool {
        match flock(&self.file, FlockOperation::NonBlockingLockShared) {
            Err(Errno::WOULDBLOCK) => true,
            Err(_) => false,
            Ok(()) => {
                let _ = flock(&self.file, FlockOperation::Unlock);
                false
            }
        }
    }
}

impl Snapshot {
    /// Reads a copy of a page's file.
    ///
    /// # Errors
    /// The [`Fault`] that makes it unreadable. No input makes it panic.
    pub fn from_bytes(bytes: &[u8]) -> Result<Snapshot, Fault> {
        let bytes = bytes.get(..PAGE_BYTES).unwrap_or(bytes);
        let word = |chunk: &[u8; 8]| AtomicU64::new(u64::from_ne_bytes(*chunk));
        let words: Vec<_> = bytes.as_chunks().0.iter().map(word).collect();
        Snapshot::read(&words)
    }

    /// The value of the counter of that name, if there is one.
    pub fn value(&self, name: &str) -> Option<u64> {
        self.counters.iter().find(|(other, _)| other == name).map(|(_, value)| *value)
    }

    fn read(words: &[AtomicU64]) -> Result<Snapshot, Fault> {
        let word = |index| words.get(index).map(|word: &AtomicU64| word.load(Relaxed));
        if word(at::MAGIC) != Some(layout::MAGIC) {
            return Err(Fault::NotAPage);
        }
        match word(at::VERSION) {
            Some(layout::VERSION) => {}
            Some(found) => return Err(Fault::OtherVersion { found, ours: layout::VERSION }),
            None => return Err(Fault::Damaged("it is too short")),
        }
        let Some((header, directory, shards)) = layout::parts(words) else {
            return Err(Fault::Damaged("it is too short"));
        };
        if word(at::COUNTERS) != Some(COUNTERS_MAX as u64)
            || word(at::SHARDS) != Some(SHARDS as u64)
        {
            return Err(Fault::Damaged("its version has other dimensions"));
        }
        let pid = u32::try_from(header[at::PID].load(Relaxed));
        // Acquire: the names that the count covers were written before it.
        let used = usize::try_from(header[at::NAMES_IN_USE].load(Acquire));
        let (Ok(pid), Ok(used @ 1..=COUNTERS_MAX)) = (pid, used) else {
            return Err(Fault::Damaged("a number in its header is out of range"));
        };
        let mut counters = Vec::with_capacity(used);
        for (index, slot) in directory.iter().take(used).enumerate() {
            let name = layout::read_name(slot).ok_or(Fault::Damaged("a counter has no name"))?;
            let add = |sum: u64, shard: &layout::Shard| {
                sum.wrapping_add(shard.get(index).map_or(0, |slot| slot.load(Relaxed)))
            };
            counters.push((name, shards.iter().fold(0, add)));
        }
        Ok(Snapshot { pid, started_unix_ms: header[at::STARTED_UNIX_MS].load(Relaxed), counters })
    }
}
