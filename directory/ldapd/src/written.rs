//! How far clients have written elsewhere, by their addresses.

use crate::limits::WRITTEN_ADDRESSES_MAX;
use keyway_cluster::own_writes::Addresses;
use keyway_lock::Unpoisoned;
use std::net::IpAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// The last position that each address has written, until this server has it.
pub(crate) struct Written {
    addresses: Mutex<Addresses>,
    /// Whether there is any, to be asked without the lock.
    any: AtomicBool,
}

impl Default for Written {
    fn default() -> Written {
        let addresses = Mutex::new(Addresses::new(WRITTEN_ADDRESSES_MAX));
        Written { addresses, any: AtomicBool::new(false) }
    }
}

impl Written {
    pub fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Acquire)
    }

    /// The position of an address; 0 if it has written nothing that this server has to wait for.
    pub fn of(&self, address: IpAddr) -> u64 {
        match self.is_empty() {
            true => 0,
            false => self.addresses.lock().unpoisoned().position(address),
        }
    }

    /// Notes a position. Those that this server has, up to `applied`, are forgotten.
    pub fn note(&self, address: IpAddr, position: u64, applied: u64) {
        let mut addresses = self.addresses.lock().unpoisoned();
        addresses.wrote(address, position);
        addresses.applied(applied);
        self.any.store(!addresses.is_empty(), Ordering::Release);
    }
}
