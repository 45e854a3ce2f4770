//! A ring of fixed entries from one producer to one consumer, without shared indices.
//!
//! The last word of an entry has the stamp of its lap in its upper half: how often the ring has
//! gone round, from 1. The producer writes the other words and then, releasing, the last one. The
//! consumer knows which stamp comes next, and takes the entry when it is there. So an entry crosses
//! from one processor to the other in the one cache line that it lies in, and there is no index
//! that the other side could lie about.
//!
//! The producer may overwrite an entry only after it was taken. A ring does not know when that is:
//! its two owners do, since no more requests are under way than the ring has entries. The consumer
//! takes entries in order, and each completion is of a request that was taken before. So of the
//! last `n` entries that were pushed, at least one for each completion was taken, and a client that
//! has fewer than `n` requests under way overwrites none that was not. The same holds for
//! completions. A client that does not keep to this spoils its own rings and nothing else.

use crate::sync::{AtomicU64, Ordering};

/// Words that both sides may write to.
pub trait Words {
    /// All of them.
    fn words(&self) -> &[AtomicU64];
}

/// Where a ring lies in its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    /// Its first word.
    first: usize,
    /// The binary logarithm of its entries.
    shift: u32,
}

impl Place {
    /// `None` if it does not lie in so many words.
    fn new(first: usize, entries: u32, words_an_entry: usize, words: usize) -> Option<Place> {
        let bytes = words_an_entry.checked_mul(entries as usize)?;
        let fits = entries.is_power_of_two() && first.checked_add(bytes)? <= words;
        fits.then_some(Place { first, shift: entries.trailing_zeros() })
    }

    /// The first entry has stamp 1: an entry that was never written has 0.
    fn begin(self) -> u64 {
        1 << self.shift
    }

    #[inline]
    fn stamp(self, next: u64) -> u32 {
        // Only the lap before can be there, so it may wrap.
        (next >> self.shift) as u32
    }

    #[inline]
    fn entry<const WORDS: usize>(self, words: &[AtomicU64], next: u64) -> Option<&[AtomicU64]> {
        let slot = (next & ((1 << self.shift) - 1)) as usize;
        words.get(self.first + slot * WORDS..)?.get(..WORDS)
    }
}

/// The end that entries of `WORDS` words go in at. Used by one thread at a time.
#[derive(Debug)]
pub struct Producer<W, const WORDS: usize> {
    words: W,
    place: Place,
    next: u64,
}

/// The end that they come out at. Used by one thread at a time.
#[derive(Debug)]
pub struct Consumer<W, const WORDS: usize> {
    words: W,
    place: Place,
    next: u64,
}

impl<W: Words, const WORDS: usize> Producer<W, WORDS> {
    /// The producer of a ring of so many entries, a power of two, that begins at that word and that
    /// `position` entries have gone through. `None` if the ring does not lie in the memory.
    pub fn new(words: W, first: usize, entries: u32, position: u64) -> Option<Self> {
        let place = Place::new(first, entries, WORDS, words.words().len())?;
        Some(Producer { words, place, next: place.begin().wrapping_add(position) })
    }

    /// Writes an entry, of whose last word the lower half counts, and publishes it.
    ///
    /// The caller knows that the entry that was there has been taken.
    #[inline]
    pub fn push(&mut self, entry: [u64; WORDS]) {
        let Some(place) = self.place.entry::<WORDS>(self.words.words(), self.next) else { return };
        let (Some((last, others)), Some((value, values))) =
            (place.split_last(), entry.split_last())
        else {
            return;
        };
        for (word, value) in others.iter().zip(values) {
            word.store(*value, Ordering::Relaxed);
        }
        let stamp = u64::from(self.place.stamp(self.next));
        last.store(stamp << 32 | (value & 0xffff_ffff), Ordering::Release);
        self.next = self.next.wrapping_add(1);
    }

    /// How many entries have gone through.
    pub fn position(&self) -> u64 {
        self.next.wrapping_sub(self.place.begin())
    }
}

impl<W: Words, const WORDS: usize> Consumer<W, WORDS> {
    /// The consumer; see [`Producer::new`].
    pub fn new(words: W, first: usize, entries: u32, position: u64) -> Option<Self> {
        let place = Place::new(first, entries, WORDS, words.words().len())?;
        Some(Consumer { words, place, next: place.begin().wrapping_add(position) })
    }

    /// Takes the next entry, if it is there. It is a copy, made by one load of each word. The upper
    /// half of its last word is the ring's.
    #[inline]
    pub fn pop(&mut self) -> Option<[u64; WORDS]> {
        let place = self.place.entry::<WORDS>(self.words.words(), self.next)?;
        let (last, others) = place.split_last()?;
        let value = last.load(Ordering::Acquire);
        if (value >> 32) as u32 != self.place.stamp(self.next) {
            return None;
        }
        let mut entry = [0; WORDS];
        for (value, word) in entry.iter_mut().zip(others) {
            *value = word.load(Ordering::Relaxed);
        }
        entry[WORDS - 1] = value & 0xffff_ffff;
        self.next = self.next.wrapping_add(1);
        Some(entry)
    }

    /// Whether there is an entry to take.
    #[inline]
    pub fn is_ready(&self) -> bool {
        let place = self.place.entry::<WORDS>(self.words.words(), self.next);
        let last = place.and_then(|place| place.last());
        let stamp = self.place.stamp(self.next);
        last.is_some_and(|last| (last.load(Ordering::Acquire) >> 32) as u32 == stamp)
    }

    /// How many entries have gone through.
    pub fn position(&self) -> u64 {
        self.next.wrapping_sub(self.place.begin())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;

    impl Words for Arc<Vec<AtomicU64>> {
        fn words(&self) -> &[AtomicU64] {
            self
        }
    }

    fn memory(words: usize) -> Arc<Vec<AtomicU64>> {
        Arc::new((0..words).map(|_| AtomicU64::new(0)).collect())
    }

    #[test]
    fn entries_come_out_once_and_in_order_over_many_laps() {
        let memory = memory(3 + 4 * 2);
        let mut producer = Producer::<_, 2>::new(memory.clone(), 3, 4, 0).unwrap();
        let mut consumer = Consumer::<_, 2>::new(memory, 3, 4, 0).unwrap();
        let mut taken = 0;
        for pushed in 0..1_000_u64 {
            producer.push([pushed, u64::MAX]);
            if pushed % 4 == 3 {
                while let Some(entry) = consumer.pop() {
                    assert_eq!(entry, [taken, 0xffff_ffff]);
                    taken += 1;
                }
                assert_eq!((taken, consumer.position()), (pushed + 1, producer.position()));
            }
        }
    }

    /// The stamp of a lap wraps around, and so does the position.
    #[test]
    fn a_ring_goes_on_where_another_pair_of_ends_stopped() {
        for position in [5, (1 << 34) - 3] {
            let memory = memory(8);
            // The words that an earlier lap left there.
            memory.iter().for_each(|word| word.store(0xabcd << 32, Ordering::Relaxed));
            let mut producer = Producer::<_, 2>::new(memory.clone(), 0, 4, position).unwrap();
            let mut consumer = Consumer::<_, 2>::new(memory, 0, 4, position).unwrap();
            for value in 0..20 {
                assert!(!consumer.is_ready());
                producer.push([value, 0]);
                assert!(consumer.is_ready());
                assert_eq!(consumer.pop(), Some([value, 0]));
            }
            assert_eq!(consumer.position(), position.wrapping_add(20));
        }
    }

    #[test]
    fn a_ring_lies_in_its_memory_or_is_none() {
        let memory = memory(16);
        let make = |first, entries| Producer::<_, 4>::new(memory.clone(), first, entries, 0);
        assert!(make(0, 4).is_some() && make(8, 2).is_some());
        assert!(make(1, 4).is_none() && make(0, 8).is_none() && make(0, 3).is_none());
        assert!(make(usize::MAX, 4).is_none() && make(0, 0).is_none());
    }
}
