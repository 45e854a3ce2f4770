//! Memory for requests that are not finished, those that are still coming in and those that wait
//! for something: one budget for all connections together.

use crate::limits::UNFINISHED_FREE_BYTES;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The memory that all connections hold together, in bytes.
#[derive(Default)]
pub(crate) struct Budget {
    held: AtomicUsize,
}

/// The part of it that one connection holds; dropping it gives it back.
pub(crate) struct Share {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Share {
    pub fn of(budget: &Arc<Budget>) -> Share {
        Share { budget: budget.clone(), bytes: 0 }
    }

    /// Holds as much as so many bytes need, and no more. False, and nothing changes, if all
    /// together would then hold more than `max`. The first few bytes are free.
    pub fn hold(&mut self, bytes: usize, max: usize) -> bool {
        let wanted = bytes.saturating_sub(UNFINISHED_FREE_BYTES);
        let held = &self.budget.held;
        if wanted < self.bytes {
            held.fetch_sub(self.bytes - wanted, Ordering::Relaxed);
        } else if wanted > self.bytes {
            let more = wanted - self.bytes;
            let grown = |held: usize| held.checked_add(more).filter(|grown| *grown <= max);
            if held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown).is_err() {
                return false;
            }
        }
        self.bytes = wanted;
        true
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_bounded_together_and_given_back() {
        let budget = Arc::new(Budget::default());
        let (mut one, mut other) = (Share::of(&budget), Share::of(&budget));
        let bytes = |counted| UNFINISHED_FREE_BYTES + counted;
        assert!(one.hold(bytes(70), 100) && other.hold(bytes(30), 100));
        assert!(other.hold(bytes(0), 0) && other.hold(bytes(30), 100));
        assert!(!other.hold(bytes(31), 100) && other.hold(bytes(30), 30));
        assert!(one.hold(bytes(60), 0) && other.hold(bytes(40), 100));
        drop(one);
        assert!(other.hold(bytes(100), 100) && !other.hold(usize::MAX, 100));
        drop(other);
        assert_eq!(budget.held.load(Ordering::Relaxed), 0);
    }
}
