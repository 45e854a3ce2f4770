//! The memory that a virtual machine shares with the daemon, shared out in parts.

use crate::SharedMemory;
use keyway_lock::Unpoisoned;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// Memory of which parts are given and taken back, all in pages. Used by all threads at once.
#[derive(Debug)]
pub struct Arena {
    memory: Arc<SharedMemory>,
    /// What is free: where each piece begins, and its bytes. No two touch.
    free: Mutex<BTreeMap<usize, usize>>,
}

impl Arena {
    /// One over memory, all of which is free from there on.
    pub fn new(memory: Arc<SharedMemory>, from: usize) -> Arc<Arena> {
        let from = from.next_multiple_of(rustix::param::page_size()).min(memory.bytes());
        let free = Mutex::new(BTreeMap::from([(from, memory.bytes() - from)]));
        Arc::new(Arena { memory, free })
    }

    /// All of it.
    pub fn memory(&self) -> &Arc<SharedMemory> {
        &self.memory
    }

    /// At least so many bytes, all zero, which come back when they are dropped. `None` if they are not there in one
    /// piece.
    pub fn take(self: &Arc<Self>, bytes: usize) -> Option<SharedMemory> {
        let bytes = whole_pages(bytes)?;
        let start = {
            let mut free = self.free.lock().unpoisoned();
            let start = *free.iter().find(|(_, piece)| **piece >= bytes)?.0;
            cut(&mut free, start..start + bytes);
            start
        };
        self.memory.clear(start..start + bytes);
        self.give(start..start + bytes)
    }

    /// Those bytes, as they are: they were taken when another process had the memory. `None` if they are not free.
    pub fn take_at(self: &Arc<Self>, range: Range<usize>) -> Option<SharedMemory> {
        let bytes = whole_pages(range.end.checked_sub(range.start)?)?;
        let range = range.start..range.start.checked_add(bytes)?;
        {
            let mut free = self.free.lock().unpoisoned();
            let (start, piece) =
                free.range(..=range.start).next_back().map(|(at, it)| (*at, *it))?;
            if range.end > start + piece {
                return None;
            }
            cut(&mut free, range.clone());
        }
        self.give(range)
    }

    fn give(self: &Arc<Self>, range: Range<usize>) -> Option<SharedMemory> {
        let taken = Taken { arena: self.clone(), range: range.clone() };
        self.memory.part(range, Some(Box::new(taken)))
    }
}

/// A part that comes back when it is dropped.
struct Taken {
    arena: Arc<Arena>,
    range: Range<usize>,
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut free = self.arena.free.lock().unpoisoned();
        let Range { mut start, end } = self.range;
        let mut bytes = end - start;
        if let Some(behind) = free.remove(&end) {
            bytes += behind;
        }
        if let Some((before, piece)) = free.range(..start).next_back().map(|(at, it)| (*at, *it))
            && before + piece == start
        {
            start = before;
            bytes += piece;
        }
        free.insert(start, bytes);
    }
}

/// Takes a piece out of the free one that it lies in.
fn cut(free: &mut BTreeMap<usize, usize>, range: Range<usize>) {
    let Some((start, piece)) = free.range(..=range.start).next_back().map(|(at, it)| (*at, *it))
    else {
        return;
    };
    free.remove(&start);
    if start < range.start {
        free.insert(start, range.start - start);
    }
    if range.end < start + piece {
        free.insert(range.end, start + piece - range.end);
    }
}

fn whole_pages(bytes: usize) -> Option<usize> {
    bytes.max(1).checked_next_multiple_of(rustix::param::page_size())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PAGES: usize = 32;

    fn arena() -> (Arc<Arena>, usize) {
        let page = rustix::param::page_size();
        let memory = Arc::new(SharedMemory::create(PAGES * page).unwrap());
        (Arena::new(memory, page), page)
    }

    proptest! {
        #[test]
        fn parts_never_overlap_and_all_come_back(steps in prop::collection::vec((0..8_usize, 1..9_usize), 0..64)) {
            let (arena, page) = arena();
            let mut parts: Vec<SharedMemory> = Vec::new();
            for (which, pages) in steps {
                if which < parts.len() {
                    parts.swap_remove(which);
                } else if let Some(part) = arena.take(pages * page - 1) {
                    let mut bytes = vec![1; part.bytes()];
                    part.read(0, &mut bytes).unwrap();
                    prop_assert!(bytes.iter().all(|byte| *byte == 0));
                    part.write(0, &vec![7; part.bytes()]).unwrap();
                    parts.push(part);
                } else {
                    let used: usize = parts.iter().map(SharedMemory::bytes).sum();
                    prop_assert!(used + pages * page > page * pages || !parts.is_empty());
                }
                let mut all: Vec<_> =
                    parts.iter().map(|part| (part.offset(), part.offset() + part.bytes())).collect();
                all.sort_unstable();
                prop_assert!(all.windows(2).all(|two| two[0].1 <= two[1].0));
                prop_assert!(all.iter().all(|(start, end)| *start >= page && *end <= PAGES * page));
            }
            drop(parts);
            prop_assert_eq!(arena.take((PAGES - 1) * page).map(|all| all.bytes()), Some((PAGES - 1) * page));
        }
    }

    #[test]
    fn what_was_taken_elsewhere_is_taken_as_it_is() {
        let (arena, page) = arena();
        arena.memory().write(3 * page, b"left").unwrap();
        let part = arena.take_at(3 * page..5 * page).unwrap();
        let mut seen = [0; 4];
        part.read(0, &mut seen).unwrap();
        assert_eq!((&seen, part.offset()), (b"left", 3 * page));
        assert!(arena.take_at(4 * page..6 * page).is_none());
        assert!(arena.take_at(0..page).is_none());
        assert!(arena.take_at(31 * page..33 * page).is_none());
        drop(part);
        assert!(arena.take_at(4 * page..6 * page).is_some());
    }
}
