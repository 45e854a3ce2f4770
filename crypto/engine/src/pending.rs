//! How many requests are under way, and how many there were at most.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Requests that were handed over and are not done, of all threads together.
#[derive(Default)]
pub(crate) struct Pending {
    now: AtomicU64,
    most: AtomicU64,
}

impl Pending {
    pub fn add(&self, requests: u64) {
        let now = self.now.fetch_add(requests, Relaxed) + requests;
        // A high-water mark rises seldom: mostly this is a load.
        if now > self.most.load(Relaxed) {
            self.most.fetch_max(now, Relaxed);
        }
    }

    pub fn take(&self, requests: u64) {
        self.now.fetch_sub(requests, Relaxed);
    }

    /// The high-water mark.
    pub fn most(&self) -> u64 {
        self.most.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_stays_where_it_was_highest() {
        let pending = Pending::default();
        pending.add(3);
        pending.take(2);
        pending.add(1);
        assert_eq!(pending.most(), 3);
        pending.add(2);
        pending.take(4);
        assert_eq!((pending.most(), pending.now.load(Relaxed)), (4, 0));
    }
}
