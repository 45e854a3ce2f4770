//! Looking at a page from another process.

use crate::counter::page;
use crate::layout::{self, at};
use crate::limits::{COUNTERS_MAX, HISTOGRAMS_MAX, SHARDS};
use crate::page::Mapping;
use crate::{Distribution, Error, Fault};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Acquire;

/// Another process's page, mapped read-only: looking costs the process that counts nothing.
pub struct Reader {
    path: PathBuf,
    file: File,
    mapping: Mapping,
}

/// The contents of a page at one moment, or the counts between two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The process that counts.
    pub pid: u32,
    /// When it opened the page, in milliseconds since 1970 (UTC).
    pub started_unix_ms: u64,
    /// Names and values, in the order in which the counters were made.
    pub counters: Vec<(String, u64)>,
    /// Names and values, in the order in which the histograms were made.
    pub histograms: Vec<(String, Distribution)>,
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

    /// Reads all counters and histograms. Each value is exact; they are not all of the same
    /// instant, nor are a histogram's count and sum.
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
        // Acquire: what a number counts (names, recorded values) was written before it.
        Snapshot::read(|index| Some(words.get(index)?.load(Acquire))).map_err(fault)
    }

    /// Whether the process that counts still runs.
    ///
    /// It holds a lock on the file that the system drops however it ends; a process id that was given to
    /// another process, or that means nothing in this container, does not mislead.
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
    /// Reads all counters and histograms of this process, as [`Reader::snapshot`] does of another's.
    pub fn own() -> Option<Snapshot> {
        let words = page().words;
        Snapshot::read(|index| Some(words.get(index)?.load(Acquire))).ok()
    }

    /// Reads a copy of a page's file.
    ///
    /// # Errors
    /// The [`Fault`] that makes it unreadable. No input makes it panic.
    pub fn from_bytes(bytes: &[u8]) -> Result<Snapshot, Fault> {
        Snapshot::read(|index| {
            let word = bytes.get(8 * index..)?.first_chunk()?;
            Some(u64::from_ne_bytes(*word))
        })
    }

    /// The value of the counter of that name, if there is one.
    pub fn value(&self, name: &str) -> Option<u64> {
        find(&self.counters, name).copied()
    }

    /// The value of the gauge of that name, if there is one; 0 where threads that move it were caught in
    /// the middle.
    pub fn gauge(&self, name: &str) -> Option<u64> {
        self.value(name).map(|value| if value > u64::MAX / 2 { 0 } else { value })
    }

    /// The values of the histogram of that name, if there is one.
    pub fn histogram(&self, name: &str) -> Option<&Distribution> {
        find(&self.histograms, name)
    }

    /// The counts since an earlier look at the same page: the counters' differences, and the values
    /// recorded.
    pub fn since(&self, earlier: &Snapshot) -> Snapshot {
        // Names are only ever added, so a name stays where it is; but a look from afar may have left some
        // out.
        fn pairs<'a, T>(
            now: &'a [(String, T)],
            before: &'a [(String, T)],
        ) -> impl Iterator<Item = (&'a String, &'a T, Option<&'a T>)> {
            now.iter().enumerate().map(|(index, (name, value))| {
                let there = before.get(index).filter(|(other, _)| other == name);
                let before = there.map(|(_, value)| value).or_else(|| find(before, name));
                (name, value, before)
            })
        }
        let counters = pairs(&self.counters, &earlier.counters)
            .map(|(name, now, before)| (name.clone(), now.saturating_sub(*before.unwrap_or(&0))));
        let histograms = pairs(&self.histograms, &earlier.histograms).map(|(name, now, before)| {
            (name.clone(), before.map_or_else(|| now.clone(), |before| now.since(before)))
        });
        Snapshot {
            pid: self.pid,
            started_unix_ms: self.started_unix_ms,
            counters: counters.collect(),
            histograms: histograms.collect(),
        }
    }

    /// Reads a page, given its words: those that there are.
    fn read(word: impl Fn(usize) -> Option<u64>) -> Result<Snapshot, Fault> {
        if word(at::MAGIC) != Some(layout::MAGIC) {
            return Err(Fault::NotAPage);
        }
        let too_short = Fault::Damaged("it is too short");
        match word(at::VERSION) {
            Some(layout::VERSION) => {}
            Some(found) => return Err(Fault::OtherVersion { found, ours: layout::VERSION }),
            None => return Err(too_short),
        }
        if word(layout::PAGE_WORDS - 1).is_none() {
            return Err(too_short);
        }
        // From here on every word is there.
        let word = |index| word(index).unwrap_or_default();
        if layout::DIMENSIONS.iter().any(|(at, dimension)| word(*at) != *dimension as u64) {
            return Err(Fault::Damaged("its version has other dimensions"));
        }
        let pid = u32::try_from(word(at::PID));
        let counters = usize::try_from(word(at::COUNTERS_IN_USE));
        let histograms = usize::try_from(word(at::HISTOGRAMS_IN_USE));
        let (Ok(pid), Ok(counters @ 1..=COUNTERS_MAX), Ok(histograms @ 1..=HISTOGRAMS_MAX)) =
            (pid, counters, histograms)
        else {
            return Err(Fault::Damaged("a number in its header is out of range"));
        };
        let name = |part: usize, index: usize| {
            let slot = part + index * layout::NAME_WORDS;
            layout::read_name(std::array::from_fn(|at| word(slot + at)))
                .ok_or(Fault::Damaged("a counter or histogram has no name"))
        };
        let counter = |index: usize| {
            let add = |sum: u64, shard: usize| {
                sum.wrapping_add(word(layout::SHARDS_AT + shard * COUNTERS_MAX + index))
            };
            Ok((name(layout::COUNTER_NAMES, index)?, (0..SHARDS).fold(0, add)))
        };
        let histogram = |index: usize| {
            let cells = layout::HISTOGRAMS_AT + index * layout::HISTOGRAM_WORDS;
            let values = Distribution::read(|at| word(cells + at));
            Ok((name(layout::HISTOGRAM_NAMES, index)?, values))
        };
        Ok(Snapshot {
            pid,
            started_unix_ms: word(at::STARTED_UNIX_MS),
            counters: (0..counters).map(counter).collect::<Result<_, _>>()?,
            histograms: added((0..histograms).map(histogram).collect::<Result<_, _>>()?),
        })
    }
}

/// One of each name: the places of a striped histogram stand side by side.
fn added(all: Vec<(String, Distribution)>) -> Vec<(String, Distribution)> {
    let mut one_each: Vec<(String, Distribution)> = Vec::with_capacity(all.len());
    for (name, values) in all {
        match one_each.last_mut() {
            Some((last, sum)) if *last == name => *sum = sum.and(&values),
            _ => one_each.push((name, values)),
        }
    }
    one_each
}

fn find<'a, T>(named: &'a [(String, T)], name: &str) -> Option<&'a T> {
    named.iter().find(|(other, _)| other == name).map(|(_, value)| value)
}
