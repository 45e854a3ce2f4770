//! Regions for requests that are too large for a slot.

use super::connection::Connection;
use super::sync::lock;
use crate::limits::LARGE_BYTES_MAX;
use keyway_engine::Error;
use keyway_ring::SharedMemory;
use keyway_ring::descriptor::RegionHandle;
use keyway_ring::limits::REGION_BYTES_MAX;
use std::sync::{Arc, Mutex};

/// A region for one large request.
pub(super) struct Large {
    pub memory: SharedMemory,
    pub region: RegionHandle,
}

/// Those of one connection.
pub(super) struct LargeRegions {
    connection: Arc<Connection>,
    /// Regions that no request has at present, the smallest first.
    kept: Mutex<Vec<Large>>,
}

const TOO_LARGE: Error = Error::invalid_request("it is larger than what can be shared, 2 GiB");

impl LargeRegions {
    pub fn new(connection: &Arc<Connection>) -> LargeRegions {
        LargeRegions { connection: connection.clone(), kept: Mutex::default() }
    }

    /// A region of at least so many bytes.
    ///
    /// # Errors
    /// [`Error::Busy`] if the daemon takes no more of them at present.
    pub fn take(&self, bytes: usize) -> Result<Large, Error> {
        let bytes = bytes.checked_next_power_of_two().filter(|bytes| *bytes <= REGION_BYTES_MAX);
        let Some(bytes) = bytes else { return Err(TOO_LARGE) };
        if self.connection.is_inherited() {
            return Err(Error::Gone);
        }
        let mut kept = lock(&self.kept);
        let fits = |large: &Large| large.memory.bytes() >= bytes;
        if let Some(index) = kept.iter().position(fits) {
            return Ok(kept.remove(index));
        }
        // One that is too small makes way.
        let smaller = if kept.is_empty() { None } else { Some(kept.remove(0)) };
        drop(kept);
        if let Some(Large { region, .. }) = smaller {
            self.forget(region);
        }
        let (memory, region) = self.connection.region(bytes)?;
        Ok(Large { memory, region })
    }

    /// Takes back one that no request has any more, and keeps it if it may.
    pub fn give_back(&self, large: Large) {
        if self.connection.is_inherited() {
            return;
        }
        let mut kept = lock(&self.kept);
        let bytes: usize = kept.iter().map(|large| large.memory.bytes()).sum();
        if bytes + large.memory.bytes() <= LARGE_BYTES_MAX && !self.connection.is_dead() {
            // So that a request takes no larger one than it needs.
            let place = kept.partition_point(|it| it.memory.bytes() < large.memory.bytes());
            return kept.insert(place, large);
        }
        drop(kept);
        self.forget(large.region);
    }

    /// Gives up one that the daemon may still write to.
    pub fn forget(&self, region: RegionHandle) {
        self.connection.forget(region);
    }

    /// The connection is over: sessions keep it, and it need not keep memory.
    pub fn clear(&self) {
        lock(&self.kept).clear();
    }
}
