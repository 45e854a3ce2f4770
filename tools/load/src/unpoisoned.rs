//! Locks that a panic does not close.

use std::sync::{LockResult, PoisonError};

/// The guard of a lock, also if a thread has panicked while it held it.
///
/// Poison warns of a value that was left half changed. Under the locks of this crate no change is:
/// each holder puts or takes one whole value. So one thread's panic does not have to stop the
/// others.
pub(crate) fn unpoisoned<G>(locked: LockResult<G>) -> G {
    locked.unwrap_or_else(PoisonError::into_inner)
}
