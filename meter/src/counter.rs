//! Counters and the shards that threads add to.

use crate::layout::{self, Cells, Name, Shard, at};
use crate::limits::{COUNTERS_MAX, SHARDS};
use crate::{EVENTS, Error, Event, page};
use keyway_lock::Unpoisoned;
use std::cell::Cell;
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::{Mutex, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

/// A named number that only grows. Cheap to copy; every method may be called by any thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    index: usize,
}

/// This process's page.
static PAGE: OnceLock<Page> = OnceLock::new();

pub(crate) struct Page {
    /// All of it.
    pub words: &'static [AtomicU64],
    counter_names: Names,
    shards: &'static [Shard],
    /// The shard that threads without one of their own share.
    shared: &'static Shard,
    /// A bit for each shard that no thread owns; the shared one's is never set.
    free: AtomicU64,
    pub histogram_names: Names,
    pub histograms: &'static [Cells],
}

/// A part of the page that gives indexes to names.
pub(crate) struct Names {
    slots: &'static [Name],
    in_use: &'static AtomicU64,
    indexes: Mutex<HashMap<String, usize>>,
}

const _: () = assert!(SHARDS >= 2 && SHARDS <= u64::BITS as usize);

/// Gives this process's counters a page in a file (0600) that [`Reader`](crate::Reader)s of other
/// processes can open; `None` says that the heap will do, as it does without this call.
///
/// Call it before the first counter is made, and while holding whatever lock guards the folder: a
/// page that an earlier process left at `path` is replaced, and removed where there is no room.
///
/// # Errors
/// [`Error::AlreadyOpen`] if this process has its page already, [`Error::System`] if the file cannot be
/// created at its full size of [`PAGE_BYTES`](crate::limits::PAGE_BYTES) or mapped. Then the process
/// counts on the heap, where no other process can look, and this may be called again.
pub fn open(path: Option<&Path>) -> Result<(), Error> {
    if PAGE.get().is_some() {
        return Err(Error::AlreadyOpen);
    }
    let Some(path) = path else {
        return PAGE.set(Page::on_heap()).map_err(|_| Error::AlreadyOpen);
    };
    let system = |what| move |source| Error::System { what, path: path.to_owned(), source };
    let draft = page::Draft::create(path).map_err(system("create the page of counters"))?;
    let words = draft.map().map_err(system("map the page of counters"))?;
    // A page that cannot be put in place is not counted into.
    let page = Page::new(words);
    draft.publish().map_err(system("put in place the page of counters"))?;
    PAGE.set(page).map_err(|_| Error::AlreadyOpen)
}

/// The counter of that name: the one there is, or a new one that starts at 0.
///
/// Takes a lock and may allocate: call it once and keep the handle. Beyond
/// [`COUNTERS_MAX`], and where a name is longer than
/// [`NAME_BYTES_MAX`](crate::limits::NAME_BYTES_MAX) or not printable ASCII without spaces, the
/// counter is one named `overflow`.
///
/// # Panics
/// In debug builds, if the name is not covered by a counter in [`EVENTS`].
pub fn counter(name: &str) -> Counter {
    counter_of(name, |event| !event.is_histogram() && !event.is_gauge())
}

/// The counter of an event of this kind.
pub(crate) fn counter_of(name: &str, is_of_kind: fn(&Event) -> bool) -> Counter {
    debug_assert!(
        EVENTS.iter().filter(|event| is_of_kind(event)).any(|event| event.covers(name)),
        "{name} is not in keyway_meter::EVENTS: add it there"
    );
    Counter { index: page().counter_names.index(name) }
}

impl Counter {
    /// Adds one.
    #[inline]
    pub fn increment(self) {
        self.add(1);
    }

    /// Adds `n`; wraps at 2^64. Never allocates nor waits once the thread has its shard.
    #[inline]
    pub fn add(self, n: u64) {
        match OWN.get() {
            Some(shard) => {
                // No other thread writes here, so this needs no locked instruction.
                let slot = self.slot(shard);
                slot.store(slot.load(Relaxed).wrapping_add(n), Relaxed);
            }
            None => self.add_slowly(n),
        }
    }

    /// The sum over all threads. Additions that happened before are in it, those that happen
    /// meanwhile may be.
    pub fn value(self) -> u64 {
        page().shards.iter().fold(0, |sum, shard| sum.wrapping_add(self.slot(shard).load(Relaxed)))
    }

    #[inline]
    fn slot(self, shard: &Shard) -> &AtomicU64 {
        // An index is always below COUNTERS_MAX; the mask only shows it to the compiler.
        &shard[self.index & (COUNTERS_MAX - 1)]
    }

    #[cold]
    fn add_slowly(self, n: u64) {
        // A thread that is being torn down, or finds no shard free, adds to the shared one.
        let claimed = CLAIM.try_with(Claim::take).unwrap_or(false);
        if claimed {
            self.add(n);
        } else {
            self.slot(page().shared).fetch_add(n, Relaxed);
        }
    }
}

thread_local! {
    /// The shard that this thread owns. Without a destructor, so that access is one load.
    static OWN: Cell<Option<&'static Shard>> = const { Cell::new(None) };
    /// Gives the shard back when the thread ends.
    static CLAIM: Claim = const { Claim { index: Cell::new(None) } };
}

struct Claim {
    index: Cell<Option<usize>>,
}

impl Claim {
    /// Makes a free shard this thread's own; says whether there was one.
    fn take(&self) -> bool {
        let page = page();
        let Some(index) = page.take_shard() else { return false };
        self.index.set(Some(index));
        OWN.set(page.shards.get(index));
        true
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        OWN.set(None);
        if let Some(index) = self.index.take() {
            page().return_shard(index);
        }
    }
}

pub(crate) fn page() -> &'static Page {
    PAGE.get_or_init(Page::on_heap)
}

impl Page {
    fn on_heap() -> Page {
        Page::new(page::on_heap())
    }

    /// Makes a page of words that are all zero.
    fn new(words: &'static [AtomicU64]) -> Page {
        let Some(parts) = layout::parts(words) else {
            unreachable!("a page is made at its full size")
        };
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        layout::stamp(parts.header, std::process::id(), started.as_millis() as u64);
        let names = |slots, in_use: usize| {
            let names = Names { slots, in_use: &parts.header[in_use], indexes: Mutex::default() };
            names.index(layout::OVERFLOW);
            names
        };
        Page {
            words,
            counter_names: names(parts.counter_names, at::COUNTERS_IN_USE),
            shards: parts.shards,
            shared: &parts.shards[SHARDS - 1],
            free: AtomicU64::new((1 << (SHARDS - 1)) - 1),
            histogram_names: names(parts.histogram_names, at::HISTOGRAMS_IN_USE),
            histograms: parts.histograms,
        }
    }

    fn take_shard(&self) -> Option<usize> {
        let without_lowest = |free: u64| (free != 0).then(|| free & (free - 1));
        // Acquire: what the last owner stored there is to be added to, not lost.
        let free = self.free.try_update(Acquire, Relaxed, without_lowest).ok()?;
        Some(free.trailing_zeros() as usize)
    }

    fn return_shard(&self, index: usize) {
        self.free.fetch_or(1 << index, AcqRel);
    }
}

impl Names {
    /// The index of that name, given to it if need be; 0, which is the overflow's, if it cannot be.
    pub fn index(&self, name: &str) -> usize {
        self.indexes(name, 1)
    }

    /// The first of so many indexes of that name, one after the other.
    pub fn indexes(&self, name: &str, count: usize) -> usize {
        // Poison does no harm: a panic below costs at most a slot, which no name has then.
        let mut indexes = self.indexes.lock().unpoisoned();
        if let Some(index) = indexes.get(name) {
            return *index;
        }
        // No other thread writes it.
        let first = self.in_use.load(Relaxed) as usize;
        let Some(slots) = self.slots.get(first..first + count) else { return 0 };
        if !layout::is_name(name.as_bytes()) {
            return 0;
        }
        slots.iter().for_each(|slot| layout::write_name(slot, name));
        self.in_use.store((first + count) as u64, Release);
        indexes.insert(name.to_owned(), first);
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread;

    /// Held by a test while its threads take shards, which another's would be mistaken for.
    static SHARDS_ARE_MINE: Mutex<()> = Mutex::new(());

    #[test]
    fn a_thread_takes_one_shard_and_returns_it() {
        let _mine = SHARDS_ARE_MINE.lock();
        let counter = counter("engine.test.shard.operations");
        let own = || OWN.get().map(std::ptr::from_ref);
        // Threads of other tests take some as well: so many one after the other show that each is returned.
        for before in 0..4 * SHARDS as u64 {
            let thread = thread::spawn(move || {
                counter.increment();
                let first = own();
                counter.increment();
                first.is_some() && own() == first
            });
            assert_eq!(thread.join().ok(), Some(true));
            assert_eq!(counter.value(), 2 * (before + 1));
        }
    }
    #[test]
    fn a_thread_does_not_touch_a_shard_that_it_returned() {
        let _mine = SHARDS_ARE_MINE.lock();
        /// Says, when its thread ends, whether the claim is gone and whether a shard is still used.
        struct Last(mpsc::Sender<(bool, bool)>);
        impl Drop for Last {
            fn drop(&mut self) {
                let _ = self.0.send((CLAIM.try_with(|_| ()).is_err(), OWN.get().is_some()));
            }
        }
        thread_local!(static LAST: Cell<Option<Last>> = const { Cell::new(None) });
        let counter = counter("engine.test.last.operations");
        let (sender, ends) = mpsc::channel();
        // Whichever is made first is destroyed last, or first: try both.
        let other = sender.clone();
        let made_last = thread::spawn(move || {
            counter.increment();
            LAST.set(Some(Last(other)));
        });
        let made_first = thread::spawn(move || {
            LAST.set(Some(Last(sender)));
            counter.increment();
        });
        assert!(made_last.join().is_ok() && made_first.join().is_ok());
        let ends: Vec<_> = ends.iter().collect();
        assert!(ends.contains(&(true, false)), "{ends:?}");
        assert!(!ends.contains(&(true, true)), "{ends:?}");
    }
}
