//! Locks that a panic does not close.
//!
//! The standard library's locks are poisoned by a thread that panics while it holds one: a warning that the value
//! may be half changed. In this workspace a holder puts or takes whole values, and runs no code of others that
//! could panic between two steps that belong together. So a panic ends the work of its own thread, and not that of
//! all threads which come for the lock later. A lock for which this does not hold uses `expect`.

#![forbid(unsafe_code)]

use std::sync::{LockResult, PoisonError};

/// The result of a lock, poisoned or not.
pub trait Unpoisoned {
    /// The guard, or the value that the lock gives up.
    type Inner;

    /// The guard also if a thread has panicked while it held the lock. Never panics.
    fn unpoisoned(self) -> Self::Inner;
}

impl<T> Unpoisoned for LockResult<T> {
    type Inner = T;

    #[inline]
    fn unpoisoned(self) -> T {
        self.unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn a_panic_does_not_close_a_lock() {
        let lock = Mutex::new(1);
        let panicked = std::thread::scope(|scope| {
            let holder = scope.spawn(|| {
                let _guard = lock.lock().unpoisoned();
                panic!("on purpose");
            });
            holder.join().is_err()
        });
        assert!(panicked && lock.is_poisoned());
        *lock.lock().unpoisoned() += 1;
        assert_eq!(lock.into_inner().unpoisoned(), 2);
    }
}
