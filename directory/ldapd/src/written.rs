//! How far clients have written, by their addresses.

use crate::limits::WRITTEN_ADDRESSES_MAX;
use keyway_lock::Unpoisoned;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The last position that each address has written, until this server has it.
#[derive(Default)]
pub(crate) struct Written {
    positions: Mutex<HashMap<IpAddr, u64>>,
    /// How many there are, to be asked without the lock.
    count: AtomicUsize,
}

impl Written {
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// The position of an address; 0 if it has written nothing that this server has to wait for.
    pub fn of(&self, address: IpAddr) -> u64 {
        if self.is_empty() {
            return 0;
        }
        self.positions.lock().unpoisoned().get(&address).copied().unwrap_or_default()
    }

    /// Notes a position. Those that this server has, up to `applied`, are forgotten; beyond
    /// [`WRITTEN_ADDRESSES_MAX`] the oldest are.
    pub fn note(&self, address: IpAddr, position: u64, applied: u64) {
        let mut positions = self.positions.lock().unpoisoned();
        positions.retain(|_, position| *position > applied);
        if positions.len() >= WRITTEN_ADDRESSES_MAX
            && let Some(oldest) = positions.iter().min_by_key(|(_, at)| **at).map(|(key, _)| *key)
        {
            positions.remove(&oldest);
        }
        if position > applied {
            let last = positions.entry(address).or_default();
            *last = position.max(*last);
        }
        self.count.store(positions.len(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn positions_are_kept_until_they_are_applied_and_not_without_end() {
        let address = |n: u32| IpAddr::from(Ipv4Addr::from(n));
        let written = Written::default();
        written.note(address(1), 7, 7);
        assert!(written.is_empty());
        written.note(address(1), 8, 7);
        written.note(address(1), 6, 5);
        assert_eq!((written.of(address(1)), written.of(address(2))), (8, 0));
        written.note(address(2), 9, 8);
        assert_eq!((written.of(address(1)), written.of(address(2))), (0, 9));
        for n in 10..10 + 2 * WRITTEN_ADDRESSES_MAX as u32 {
            written.note(address(n), u64::from(n), 8);
        }
        assert_eq!(written.of(address(2)), 0);
        assert_eq!(written.positions.lock().unwrap().len(), WRITTEN_ADDRESSES_MAX);
    }
}
