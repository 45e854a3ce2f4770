//! A value that each process has of its own, although it was forked from another. What a child may not lose is a
//! [`Whole`](crate::Whole).

use keyway_fork::Generation;
use keyway_lock::Unpoisoned;
use once_cell::race::OnceBox;
use std::sync::{Mutex, MutexGuard, TryLockError};

/// A value behind a lock. A child that is forked has a copy, and waits for no thread of its parent.
#[derive(Debug)]
pub struct PerProcess<T> {
    process: Generation,
    value: Mutex<T>,
    /// That of a process that was forked from this one. Setting it takes no lock.
    next: OnceBox<PerProcess<T>>,
}

impl<T: Clone + Default> PerProcess<T> {
    /// With this value in the process that makes it.
    pub fn new(value: T) -> PerProcess<T> {
        let process = Generation::current();
        PerProcess { process, value: Mutex::new(value), next: OnceBox::new() }
    }

    /// This process' value.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.era().value.lock().unpoisoned()
    }

    fn era(&self) -> &PerProcess<T> {
        let mut era = self;
        while !era.process.is_current() {
            era = era.next.get_or_init(|| Box::new(PerProcess::new(era.inherited())));
        }
        era
    }

    /// The parent's value when it forked; the default if one of its threads was changing it.
    fn inherited(&self) -> T {
        match self.value.try_lock() {
            Ok(value) => value.clone(),
            Err(TryLockError::Poisoned(value)) => value.into_inner().clone(),
            Err(TryLockError::WouldBlock) => T::default(),
        }
    }
}
