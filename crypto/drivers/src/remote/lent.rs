//! Buffers in shared memory: what lies in one is worked on where it lies.

use super::connection::{Connection, lock};
use super::wire::Space;
use crate::limits::{LENT_REGION_BYTES, LENT_REGIONS_MAX};
use keyway_engine::{Buffer, Error, Memory, Operation};
use keyway_ring::descriptor::{RegionHandle, Segment};
use keyway_ring::limits::REGION_BYTES_MAX;
use keyway_ring::{Piece, Pieces, SharedMemory};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::{io, mem};

/// Behind each buffer, room for what goes with it: a descriptor names one region. In bytes.
const BESIDE_BYTES: usize = 512;
/// The shortest buffers share a region with those of so many bytes.
const BYTES_MIN: usize = 256;

/// The regions that a client's buffers are taken from, by the lengths of their pieces.
#[derive(Default)]
pub(super) struct Regions(Mutex<Vec<Arc<Region>>>);

/// A region of one [`Regions`].
struct Region {
    /// The address of what it belongs to: nobody else's connections know it.
    owner: usize,
    pieces: Arc<Pieces>,
    /// Longest buffer, in bytes.
    bytes: usize,
    /// The connection that knows it, and its handle there; 0 for none.
    registered: AtomicU64,
}

/// What is lent to an operation.
struct Lending {
    region: Arc<Region>,
    piece: Piece,
    bytes: usize,
}

impl Memory for Lending {
    fn bytes(&self) -> &[u8] {
        self.piece.bytes().get(..self.bytes).unwrap_or_default()
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.piece.bytes_mut().get_mut(..self.bytes).unwrap_or_default()
    }
}

impl Regions {
    /// A buffer of so many bytes; what is in it is not known.
    pub fn buffer(self: &Arc<Self>, bytes: usize) -> io::Result<Buffer> {
        let invalid = || io::Error::new(io::ErrorKind::InvalidInput, "a buffer has at most 1 GiB");
        let length = bytes.max(BYTES_MIN).checked_next_power_of_two().ok_or_else(invalid)?;
        let mut regions = lock(&self.0);
        let fits = |region: &&Arc<Region>| region.bytes == length;
        let found = regions.iter().filter(fits).find_map(|region| {
            let piece = region.pieces.take(region.pieces.piece_bytes())?;
            Some((region.clone(), piece))
        });
        let (region, piece) = match found {
            Some(found) => found,
            None => {
                if regions.len() >= LENT_REGIONS_MAX {
                    let why = "there are as many regions for buffers as there may be";
                    return Err(io::Error::new(io::ErrorKind::QuotaExceeded, why));
                }
                let whole = length + BESIDE_BYTES;
                let count = (LENT_REGION_BYTES / whole).max(1);
                if whole > REGION_BYTES_MAX {
                    return Err(invalid());
                }
                let pieces = Pieces::create(count as u32, whole)?;
                let piece = pieces.take(pieces.piece_bytes()).ok_or(io::ErrorKind::OutOfMemory)?;
                let registered = AtomicU64::new(0);
                let owner = Arc::as_ptr(self).addr();
                let region = Arc::new(Region { owner, pieces, bytes: length, registered });
                regions.push(region.clone());
                (region, piece)
            }
        };
        Ok(Buffer::lent(Lending { region, piece, bytes }))
    }
}

/// Where lent data lies, for as long as a request is under way.
pub(super) struct Lent {
    of: Arc<Region>,
    pub region: RegionHandle,
    data: Segment,
}

impl Lent {
    /// Where the data of this operation lies, if that is in a region of this connection's client.
    ///
    /// # Errors
    /// [`Error::Gone`].
    pub fn of(operation: &mut Operation, connection: &Connection) -> Result<Option<Lent>, Error> {
        let Some(Lending { region, piece, bytes }) = data(operation).and_then(Buffer::memory)
        else {
            return Ok(None);
        };
        if region.owner != connection.regions {
            return Ok(None);
        }
        let data = Segment { offset: piece.segment().offset, bytes: *bytes as u32 };
        match region.handle(connection) {
            Ok(handle) => Ok(Some(Lent { region: handle, of: region.clone(), data })),
            // Copied, it may still find a place.
            Err(Error::Busy) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub fn memory(&self) -> &SharedMemory {
        self.of.pieces.memory()
    }

    /// What lies beside the data.
    pub fn space(&self) -> Space<'_> {
        let next = self.data.offset as usize + self.of.bytes;
        let end = next + BESIDE_BYTES;
        Space { memory: self.memory(), next, end, lent: Some(self.data) }
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
/// nobody gets that memory again.
pub(super) fn give_up(operation: &mut Operation) {
    if let Some(data) = data(operation) {
        let zeros = vec![0; data.len()].into();
        mem::forget(mem::replace(data, zeros));
    }
}

impl Region {
    /// What the connection knows it by.
    fn handle(&self, connection: &Connection) -> Result<RegionHandle, Error> {
        let registered = self.registered.load(Ordering::Acquire);
        if registered >> 32 == u64::from(connection.number) {
            let (index, generation) = ((registered >> 16) as u8, registered as u16);
            return Ok(RegionHandle { index, generation });
        }
        let region = connection.register(self.pieces.memory())?;
        let number = u64::from(connection.number);
        let new = number << 32 | u64::from(region.index) << 16 | u64::from(region.generation);
        // Another thread may have been faster.
        let swapped =
            self.registered.compare_exchange(registered, new, Ordering::AcqRel, Ordering::Acquire);
        if swapped.is_err() {
            connection.forget(region);
            return self.handle(connection);
        }
        Ok(region)
    }
}
