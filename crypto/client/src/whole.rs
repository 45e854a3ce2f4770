//! A value that a forked child always has as its parent had it, in the midst of a change too.

use keyway_fork::Generation;
use keyway_lock::Unpoisoned;
use once_cell::race::OnceBox;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, RwLock, TryLockError};

/// A value that is whole at every instant: a change is made on a copy, which then takes the value's place. A child that
/// is forked meanwhile has the value of before or of after, waits for no thread of its parent, and changes its own
/// from then on.
#[derive(Debug)]
pub struct Whole<T> {
    process: Generation,
    /// Held by a thread that reads or changes the value. Its process' own: a child has it in whatever state.
    turn: Mutex<()>,
    /// The place of the value. Only the other place is ever locked for writing, so a child finds this one open,
    /// although a thread of its parent may have been reading.
    current: AtomicUsize,
    places: [RwLock<T>; 2],
    /// That of a process that was forked from this one. Setting it takes no lock.
    next: OnceBox<Whole<T>>,
}

impl<T: Clone + Default> Whole<T> {
    /// With this value in the process that makes it.
    pub fn new(value: T) -> Whole<T> {
        Whole {
            process: Generation::current(),
            turn: Mutex::new(()),
            current: AtomicUsize::new(0),
            places: [RwLock::new(value), RwLock::default()],
            next: OnceBox::new(),
        }
    }

    /// Looks at this process' value. Waits for a change that is under way in another thread of it.
    pub fn read<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        let era = self.era();
        let _turn = era.turn.lock().unpoisoned();
        look(&era.place().read().unpoisoned())
    }

    /// A copy of this process' value, which takes its place when it is dropped. Until then other threads of the process
    /// wait.
    pub fn change(&self) -> Change<'_, T> {
        let era = self.era();
        let turn = era.turn.lock().unpoisoned();
        let copy = era.place().read().unpoisoned().clone();
        Change { era, copy, _turn: turn }
    }

    fn place(&self) -> &RwLock<T> {
        &self.places[self.current.load(Ordering::Acquire)]
    }

    /// Only in its turn.
    fn put(&self, value: T) {
        let before = self.current.load(Ordering::Acquire);
        let next = 1 - before;
        *self.places[next].write().unpoisoned() = value;
        self.current.store(next, Ordering::Release);
        *self.places[before].write().unpoisoned() = T::default();
    }

    fn era(&self) -> &Whole<T> {
        let mut era = self;
        while !era.process.is_current() {
            era = era.next.get_or_init(|| Box::new(Whole::new(era.inherited())));
        }
        era
    }

    /// The parent's value when it forked.
    fn inherited(&self) -> T {
        match self.place().try_read() {
            Ok(value) => value.clone(),
            Err(TryLockError::Poisoned(value)) => value.into_inner().clone(),
            // Only if it was read by more threads than there can be.
            Err(TryLockError::WouldBlock) => T::default(),
        }
    }
}

/// A change of a [`Whole`] value that is under way.
#[derive(Debug)]
pub struct Change<'a, T: Clone + Default> {
    era: &'a Whole<T>,
    copy: T,
    _turn: MutexGuard<'a, ()>,
}

impl<T: Clone + Default> Deref for Change<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.copy
    }
}

impl<T: Clone + Default> DerefMut for Change<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.copy
    }
}

impl<T: Clone + Default> Drop for Change<'_, T> {
    fn drop(&mut self) {
        self.era.put(std::mem::take(&mut self.copy));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_all_threads_are_kept() {
        let whole = Whole::new(vec![0]);
        std::thread::scope(|scope| {
            for thread in 1..5 {
                let whole = &whole;
                scope.spawn(move || (0..100).for_each(|_| whole.change().push(thread)));
            }
        });
        let counted = |wanted| whole.read(|all| all.iter().filter(|it| **it == wanted).count());
        assert_eq!([0, 1, 2, 3, 4].map(counted), [1, 100, 100, 100, 100]);
    }

    /// A child finds the value without a lock, however far a thread of its parent is.
    #[test]
    fn the_value_is_there_while_it_is_read_and_changed() {
        let whole = Whole::new(1);
        whole.read(|_| assert_eq!(whole.inherited(), 1));
        let mut change = whole.change();
        *change = 2;
        assert_eq!(whole.inherited(), 1);
        drop(change);
        assert_eq!(whole.inherited(), 2);
    }
}
