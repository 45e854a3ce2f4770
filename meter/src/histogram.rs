//! Histograms: how a value is distributed, known to an eighth.

use crate::buckets::{GREATEST, LEAST_COMPLEMENT, SUM, bucket};
use crate::counter::page;
use crate::layout::{Cells, EXTREMES_WORDS};
use crate::limits::{HISTOGRAM_STRIPES, HISTOGRAMS_MAX};
use crate::{Distribution, EVENTS};
use std::cell::Cell;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, AtomicUsize};

/// A named distribution of values. Cheap to copy; every method may be called by any thread.
///
/// All threads write to the same words: it is for what is sampled, not for every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Histogram {
    index: usize,
}

/// The histogram of that name: the one there is, or a new one that is empty.
///
/// Takes a lock and may allocate: call it once and keep the handle. Beyond [`HISTOGRAMS_MAX`], and
/// where a name is not fit for a page (see [`counter`](crate::counter)), the histogram is one named
/// `overflow`.
///
/// # Panics
/// In debug builds, if the name is not covered by a histogram in [`EVENTS`].
pub fn histogram(name: &str) -> Histogram {
    assert_known(name);
    Histogram { index: page().histogram_names.index(name) }
}

fn assert_known(name: &str) {
    debug_assert!(
        EVENTS.iter().filter(|event| event.is_histogram()).any(|event| event.covers(name)),
        "histogram {name} is not in keyway_meter::EVENTS: add it there"
    );
}

/// A distribution for every request: it has several places in the page, so that threads rarely write to
/// the same. A reader of the page sees one histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Striped {
    first: usize,
    stripes: usize,
}

/// The striped histogram of that name; as [`histogram`].
///
/// # Panics
/// As [`histogram`].
pub fn striped(name: &str) -> Striped {
    assert_known(name);
    match page().histogram_names.indexes(name, HISTOGRAM_STRIPES) {
        // It shares the overflow's one place.
        0 => Striped { first: 0, stripes: 1 },
        first => Striped { first, stripes: HISTOGRAM_STRIPES },
    }
}

thread_local! {
    /// Which stripe this thread writes to; none before the first.
    static STRIPE: Cell<Option<usize>> = const { Cell::new(None) };
}

/// How many threads have a stripe.
static THREADS: AtomicUsize = AtomicUsize::new(0);

impl Striped {
    /// Takes one value in. Never allocates nor waits.
    #[inline]
    pub fn record(self, value: u64) {
        let stripe = STRIPE.get().unwrap_or_else(|| {
            let next = THREADS.fetch_add(1, Relaxed);
            STRIPE.set(Some(next));
            next
        });
        Histogram { index: self.first + stripe % self.stripes }.record(value);
    }

    /// The values recorded so far, by all threads.
    pub fn read(self) -> Distribution {
        let stripes = self.first..self.first + self.stripes;
        stripes.fold(Distribution::default(), |all, index| all.and(&Histogram { index }.read()))
    }
}

impl Histogram {
    /// Takes one value in. Never allocates nor waits.
    #[inline]
    pub fn record(self, value: u64) {
        let cells = self.cells();
        cells[SUM].fetch_add(value, Relaxed);
        raise(&cells[LEAST_COMPLEMENT], !value);
        raise(&cells[GREATEST], value);
        // Release: a reader that sees this value counted sees it in the words above too.
        cells[EXTREMES_WORDS + bucket(value)].fetch_add(1, Release);
    }

    /// The values recorded so far. Values recorded meanwhile may be in it.
    pub fn read(self) -> Distribution {
        let cells = self.cells();
        Distribution::read(|index| cells.get(index).map_or(0, |cell| cell.load(Acquire)))
    }

    #[inline]
    fn cells(self) -> &'static Cells {
        // An index is always below HISTOGRAMS_MAX; the mask only shows it to the compiler.
        &page().histograms[self.index & (HISTOGRAMS_MAX - 1)]
    }
}

/// Raises a word to a value; mostly it is there already, and a load is cheap.
#[inline]
fn raise(word: &AtomicU64, value: u64) {
    if word.load(Relaxed) < value {
        word.fetch_max(value, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stripes_are_one_histogram() {
        let all = striped("ldap.time.test-stripes");
        let threads: Vec<_> = (0..2 * HISTOGRAM_STRIPES as u64)
            .map(|value| std::thread::spawn(move || all.record(value)))
            .collect();
        assert!(threads.into_iter().all(|thread| thread.join().is_ok()));
        let read = all.read();
        assert_eq!((read.count, read.min, read.max, read.sum), (16, 0, 15, 120));
        let seen = crate::Snapshot::own().unwrap();
        assert_eq!(seen.histogram("ldap.time.test-stripes"), Some(&read));
        assert_eq!(striped("ldap.time.test-stripes"), all);
    }
}
