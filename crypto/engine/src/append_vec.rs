//! A list that only grows, read without a lock.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Places in the list itself. Each chunk after it has twice as many as the one before.
const FIRST: usize = 2;
const CHUNKS: usize = 16;

type Chunks<T> = [OnceLock<Box<[OnceLock<T>]>>; CHUNKS];

/// Holds at most `FIRST * (2^17 - 1)` values. Values never move and are freed with the list. Only
/// one thread may push at a time; the caller sees to it.
pub(crate) struct AppendVec<T> {
    first: [OnceLock<T>; FIRST],
    /// Made when the first is full, which it hardly ever is: lists are to be small and quickly
    /// freed.
    chunks: OnceLock<Box<Chunks<T>>>,
    length: AtomicUsize,
}

impl<T> AppendVec<T> {
    pub fn new() -> Self {
        AppendVec {
            first: [const { OnceLock::new() }; FIRST],
            chunks: OnceLock::new(),
            length: AtomicUsize::new(0),
        }
    }

    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        match self.first.get(index) {
            Some(cell) => cell.get(),
            None => self.beyond(index)?.get(),
        }
    }

    /// The index of the value, or the value again if there is no more room.
    pub fn push(&self, value: T) -> Result<usize, T> {
        let index = self.length.load(Ordering::Acquire);
        let cell = match self.first.get(index) {
            Some(cell) => cell,
            None => {
                let Some((chunk, _)) = Self::place(index) else { return Err(value) };
                let length = FIRST << (chunk + 1);
                let chunks =
                    self.chunks.get_or_init(|| Box::new([const { OnceLock::new() }; CHUNKS]));
                chunks[chunk].get_or_init(|| (0..length).map(|_| OnceLock::new()).collect());
                match self.beyond(index) {
                    Some(cell) => cell,
                    None => return Err(value),
                }
            }
        };
        cell.set(value)?;
        self.length.store(index + 1, Ordering::Release);
        Ok(index)
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.length.load(Ordering::Acquire)).filter_map(|index| self.get(index))
    }

    fn beyond(&self, index: usize) -> Option<&OnceLock<T>> {
        let (chunk, offset) = Self::place(index)?;
        self.chunks.get()?.get(chunk)?.get()?.get(offset)
    }

    /// Chunk and offset of an index that is not in the first places.
    fn place(index: usize) -> Option<(usize, usize)> {
        let chunk = ((index / FIRST) + 1).ilog2() as usize;
        let offset = index - FIRST * ((1 << chunk) - 1);
        (1..=CHUNKS).contains(&chunk).then_some((chunk - 1, offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_everything_where_it_was_put() {
        let list = AppendVec::new();
        for value in 0..5_000 {
            assert_eq!(list.push(value), Ok(value));
        }
        for index in 0..5_000 {
            assert_eq!(list.get(index), Some(&index));
        }
        assert_eq!(list.get(5_000), None);
        assert!(list.iter().copied().eq(0..5_000));
    }
}
