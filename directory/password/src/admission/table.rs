//! A table of a fixed size: what is remembered of many, by keys that no client can choose.

use super::limits::WAYS;

/// A set-associative table. A key is a keyed hash, so that no client can aim at a set.
pub struct Table<R> {
    slots: Box<[Slot<R>]>,
    sets: usize,
}

#[derive(Clone, Copy, Default)]
struct Slot<R> {
    /// 0: free.
    key: u64,
    record: R,
}

impl<R: Copy + Default> Table<R> {
    /// Room for `sets` times [`WAYS`] records; `sets` is a power of two.
    pub fn new(sets: usize) -> Self {
        Table { slots: vec![Slot::default(); sets * WAYS].into(), sets }
    }

    pub fn get(&self, key: u64) -> Option<&R> {
        let slots = self.slots.get(self.set(key))?;
        slots.iter().find(|slot| slot.key == key).map(|slot| &slot.record)
    }

    pub fn get_mut(&mut self, key: u64) -> Option<&mut R> {
        let set = self.set(key);
        let slots = self.slots.get_mut(set)?;
        slots.iter_mut().find(|slot| slot.key == key).map(|slot| &mut slot.record)
    }

    /// The record of a key. A new one takes the place of the one that is worth least.
    pub fn take<W: Ord>(&mut self, key: u64, worth: impl Fn(&R) -> W) -> Option<&mut R> {
        let set = self.set(key);
        let slots = self.slots.get_mut(set)?;
        let at = match slots.iter().position(|slot| slot.key == key) {
            Some(at) => at,
            None => {
                let rank = |slot: &Slot<R>| (slot.key != 0).then(|| worth(&slot.record));
                let (at, _) = slots.iter().enumerate().min_by_key(|(_, slot)| rank(slot))?;
                *slots.get_mut(at)? = Slot { key, record: R::default() };
                at
            }
        };
        slots.get_mut(at).map(|slot| &mut slot.record)
    }

    fn set(&self, key: u64) -> std::ops::Range<usize> {
        let set = (key as usize) & (self.sets - 1);
        set * WAYS..(set + 1) * WAYS
    }
}
