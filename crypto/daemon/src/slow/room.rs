//! Room for large requests, which goes back to the system with each: an allocator keeps what is locked.

use crate::limits::ROOM_BYTES_MIN;
use keyway_engine::{Buffer, Memory, Operation};
use keyway_ring::descriptor::Descriptor;
use keyway_ring::{BufferPool, PooledBuffer, SharedMemory};

/// Memory that is mapped for one buffer.
struct Mapped(PooledBuffer);

impl Memory for Mapped {
    fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.bytes_mut()
    }
}

/// Makes room for the data of a request in an operation of its kind, if that is much.
pub fn make(operation: &mut Operation, descriptor: &Descriptor) {
    let [a, b, _] = descriptor.segments.map(|segment| segment.bytes as usize);
    match operation {
        Operation::Seal { data, .. }
        | Operation::Open { data, .. }
        | Operation::Encrypt { data, .. }
        | Operation::Decrypt { data, .. }
        | Operation::Chain { data, .. } => put(data, b),
        Operation::Digest { data, .. } | Operation::Mac { data, .. } => put(data, a),
        Operation::Compress { data, out } | Operation::Decompress { data, out } => {
            put(data, a);
            put(out, b);
        }
        // The data of other operations is bounded, and far shorter.
        _ => {}
    }
}

fn put(buffer: &mut Buffer, bytes: usize) {
    if bytes < ROOM_BYTES_MIN {
        return;
    }
    // Where there is no such memory, the allocator may have some.
    let memory = SharedMemory::create(BufferPool::whole_lines(bytes)).ok();
    let mapped = memory.and_then(|memory| BufferPool::new(memory, bytes).take(bytes));
    if let Some(mapped) = mapped {
        *buffer = Buffer::lent(Mapped(mapped));
    }
}
