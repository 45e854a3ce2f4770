//! How far clients have written elsewhere, by their addresses.

use crate::limits::WRITTEN_ADDRESSES_MAX;
use keyway_cluster::message::Reign;
use keyway_cluster::own_writes::{Addresses, Here, OwnWrites};
use keyway_lock::Unpoisoned;
use std::net::IpAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// What each address has written, until this server has it.
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

    /// What an address has written that this server may lack.
    pub fn of(&self, address: IpAddr) -> OwnWrites {
        match self.is_empty() {
            true => OwnWrites::default(),
            false => self.addresses.lock().unpoisoned().of(address),
        }
    }

    /// Notes what an address has written. What reads here see is forgotten.
    pub fn note(&self, address: IpAddr, (reign, position): (Option<Reign>, u64), here: &Here<'_>) {
        let mut addresses = self.addresses.lock().unpoisoned();
        addresses.wrote(address, reign, position);
        addresses.applied(here);
        self.any.store(!addresses.is_empty(), Ordering::Release);
    }
}
