//! Locks, whose holder may have panicked.

use keyway_lock::Unpoisoned;
use std::sync::{Mutex, MutexGuard};

/// Locks it. A lock that a panic has poisoned is used all the same: none is held while a value is half changed.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unpoisoned()
}
