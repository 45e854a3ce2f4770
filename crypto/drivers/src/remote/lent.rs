//! Buffers in shared memory: data in one is worked on where it lies.

use super::connection::Connection;
use super::sync::lock;
use crate::limits::{LENT_REGION_BYTES, LENT_REGIONS_MAX};
use keyway_engine::{Buffer, Memory, Operation};
use keyway_ring::descriptor::{RegionHandle, Segment};
use keyway_ring::limits::REGION_BYTES_MAX;
use keyway_ring::{BufferPool, Margin, PooledBuffer, Window};
use keyway_wire::Space;
use std::sync::{Arc, Mutex};
use std::{io, mem};

/// Behind each buffer, room for what goes with it: a descriptor names one region. Whole lines of the cache, in
/// bytes, as the buffers are.
const BESIDE_BYTES: usize = 512;
/// The shortest buffers share a region with those of so many bytes.
const BYTES_MIN: usize = 256;

/// The regions that a client's buffers are taken from, by the lengths of these.
#[derive(Default)]
pub(super) struct Regions(Mutex<Vec<Arc<Region>>>);

/// A region of one connection. When that is over, buffers that are left are copied like any others.
struct Region {
    /// The connection's number.
    connection: u32,
    /// The daemon's handle for the region.
    handle: RegionHandle,
    pool: Arc<BufferPool>,
    /// Longest buffer, in bytes.
    bytes: usize,
}

/// A buffer that is lent to an operation.
struct SharedBuffer {
    region: Arc<Region>,
    buffer: PooledBuffer,
    bytes: usize,
}

impl Memory for SharedBuffer {
    fn bytes(&self) -> &[u8] {
        self.buffer.bytes().get(..self.bytes).unwrap_or_default()
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.buffer.bytes_mut().get_mut(..self.bytes).unwrap_or_default()
    }
}

impl Regions {
    /// A buffer of so many bytes that the connection's daemon reaches; its contents are not known. Where
    /// the daemon makes no more regions, one that it does not reach.
    pub fn buffer(&self, bytes: usize, connection: &Connection) -> io::Result<Buffer> {
        let invalid = || io::Error::new(io::ErrorKind::InvalidInput, "a buffer has at most 1 GiB");
        let length = bytes.max(BYTES_MIN).checked_next_power_of_two().ok_or_else(invalid)?;
        let whole = length + BESIDE_BYTES;
        if whole > REGION_BYTES_MAX {
            return Err(invalid());
        }
        let mut regions = lock(&self.0);
        regions.retain(|region| region.connection == connection.number);
        let fits = |region: &&Arc<Region>| region.bytes == length;
        let found = regions.iter().filter(fits).find_map(|region| {
            let buffer = region.pool.take(region.bytes)?;
            Some((region.clone(), buffer))
        });
        if let Some((region, buffer)) = found {
            return Ok(Buffer::lent(SharedBuffer { region, buffer, bytes }));
        }
        if regions.len() >= LENT_REGIONS_MAX {
            let why = "there are as many regions for buffers as there may be";
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, why));
        }
        let count = (LENT_REGION_BYTES / whole).max(1);
        let Ok((memory, handle)) = connection.region(count * whole) else {
            return Ok(vec![0; bytes].into());
        };
        let pool = BufferPool::with_margins(memory, length, BESIDE_BYTES);
        let buffer = pool.take(length).ok_or(io::ErrorKind::OutOfMemory)?;
        let connection = connection.number;
        let region = Arc::new(Region { connection, handle, pool, bytes: length });
        regions.push(region.clone());
        Ok(Buffer::lent(SharedBuffer { region, buffer, bytes }))
    }
}

/// Where lent data lies, for as long as a request is under way.
pub(super) struct Lent {
    pub region: RegionHandle,
    data: Segment,
    beside: Margin,
}

impl Lent {
    /// Where the data of this operation lies, if that is in a region of this connection.
    pub fn of(operation: &mut Operation, connection: &Connection) -> Option<Lent> {
        let SharedBuffer { region, buffer, bytes } = data(operation).and_then(Buffer::memory)?;
        if region.connection != connection.number {
            return None;
        }
        let data = Segment { offset: buffer.segment().offset, bytes: *bytes as u32 };
        Some(Lent { region: region.handle, data, beside: buffer.margin() })
    }

    /// The bytes behind the data.
    pub fn window(&self) -> Window<'_> {
        self.beside.window()
    }

    /// The space beside the data.
    pub fn space(&self) -> Space<'_> {
        Space::beside(self.window(), self.data)
    }
}

/// The data that may be worked on where it lies: of requests that have one such piece.
fn data(operation: &mut Operation) -> Option<&mut Buffer> {
    match operation {
        Operation::Seal { data, .. }
        | Operation::Open { data, .. }
        | Operation::Protect { packet: data, .. }
        | Operation::Unprotect { packet: data, .. }
        | Operation::Encrypt { data, .. }
        | Operation::Decrypt { data, .. }
        | Operation::Chain { data, .. }
        | Operation::Digest { data, .. }
        | Operation::Mac { data, .. } => Some(data),
        _ => None,
    }
}

/// The daemon may go on writing to the data for a while: the operation gets zeros instead, and
/// that memory is not given out again.
pub(super) fn give_up(operation: &mut Operation) {
    if let Some(data) = data(operation) {
        let zeros = vec![0; data.len()].into();
        mem::forget(mem::replace(data, zeros));
    }
}
