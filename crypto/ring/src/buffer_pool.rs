//! Memory of a client's own that the daemon has too, in buffers that threads have to themselves. Unsafe here are
//! the slices of these.

use crate::descriptor::Segment;
use crate::memory::{SharedMemory, Window};
use keyway_lock::Unpoisoned;
use std::slice;
use std::sync::{Arc, Mutex};

/// A line of the cache.
const LINE_BYTES: usize = 64;

/// A client's own memory, in buffers of one length that a thread has to itself, until the buffer goes
/// back or is named in a request. The process at the other end is the daemon, which this one trusts
/// not to touch a buffer that no request under way names.
///
/// Each buffer is followed by a margin, if there is to be one. In this process nothing but a [`Margin`]
/// gives access to the memory, and that never to the bytes of a buffer.
#[derive(Debug)]
pub struct BufferPool {
    memory: SharedMemory,
    buffer_bytes: usize,
    margin_bytes: usize,
    free: Mutex<Vec<u32>>,
}

/// A buffer of a pool. It goes back when it is dropped.
#[derive(Debug)]
pub struct PooledBuffer {
    pool: Arc<BufferPool>,
    index: u32,
    bytes: usize,
}

/// The bytes behind a buffer, which no slice covers: they are copied from and to.
#[derive(Debug)]
pub struct Margin {
    pool: Arc<BufferPool>,
    index: u32,
}

const NOT_HERE: &str = "a buffer that is shared with the daemon does not go with a process that is forked: \
                        the child takes others from its own connection";

impl BufferPool {
    /// Cuts memory into buffers of so many bytes each and no margin; see [`BufferPool::with_margins`].
    pub fn new(memory: SharedMemory, buffer_bytes: usize) -> Arc<Self> {
        Self::with_margins(memory, buffer_bytes, 0)
    }

    /// Cuts memory into buffers and margins of so many bytes each, rounded up to whole lines of the cache:
    /// as many as it has room for.
    pub fn with_margins(
        memory: SharedMemory,
        buffer_bytes: usize,
        margin_bytes: usize,
    ) -> Arc<Self> {
        let buffer_bytes = Self::whole_lines(buffer_bytes);
        let margin_bytes = margin_bytes.next_multiple_of(LINE_BYTES);
        let buffers = memory.bytes() / (buffer_bytes + margin_bytes);
        let buffers = u32::try_from(buffers).unwrap_or(u32::MAX);
        // The first buffers are taken first, and the one that went back last is taken next.
        let free = Mutex::new((0..buffers).rev().collect());
        Arc::new(BufferPool { memory, buffer_bytes, margin_bytes, free })
    }

    /// How long a buffer is that has room for so many bytes.
    pub fn whole_lines(bytes: usize) -> usize {
        bytes.max(1).next_multiple_of(LINE_BYTES)
    }

    /// How long a buffer can be, in bytes.
    pub fn buffer_bytes(&self) -> usize {
        self.buffer_bytes
    }

    /// Where a buffer begins.
    fn start(&self, index: u32) -> usize {
        index as usize * (self.buffer_bytes + self.margin_bytes)
    }

    /// Takes a buffer of so many bytes. `None` if all are taken, or they are not that long.
    pub fn take(self: &Arc<Self>, bytes: usize) -> Option<PooledBuffer> {
        if bytes > self.buffer_bytes {
            return None;
        }
        let index = self.free.lock().unpoisoned().pop()?;
        Some(PooledBuffer { pool: self.clone(), index, bytes })
    }
}

impl PooledBuffer {
    /// The bytes behind it, which may outlive it.
    pub fn margin(&self) -> Margin {
        Margin { pool: self.pool.clone(), index: self.index }
    }

    /// Where it lies in its memory.
    pub fn segment(&self) -> Segment {
        Segment { offset: self.offset() as u32, bytes: self.bytes as u32 }
    }

    fn offset(&self) -> usize {
        self.pool.start(self.index)
    }

    /// Its bytes.
    ///
    /// # Panics
    /// In a child that was forked from the process that took it: nothing of it is there, and anything
    /// else would be a wrong result.
    pub fn bytes(&self) -> &[u8] {
        let start = self.place();
        // SAFETY: so many bytes lie within the mapping, which its `Arc` keeps and this process has. An index is
        // in the free list or in one buffer, buffers and margins do not overlap, and nothing else in this process
        // reaches a buffer; the daemon is trusted not to write to it now.
        unsafe { slice::from_raw_parts(start, self.bytes) }
    }

    /// Its bytes, to be changed.
    ///
    /// # Panics
    /// As [`PooledBuffer::bytes`].
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let start = self.place();
        // SAFETY: as above, and this buffer is borrowed only here.
        unsafe { slice::from_raw_parts_mut(start, self.bytes) }
    }

    fn place(&self) -> *mut u8 {
        self.pool.memory.place(self.offset(), self.bytes).expect(NOT_HERE)
    }
}

impl Margin {
    /// To copy from and to it.
    #[inline]
    pub fn window(&self) -> Window<'_> {
        let BufferPool { memory, buffer_bytes, margin_bytes, .. } = &*self.pool;
        let start = self.pool.start(self.index) + buffer_bytes;
        memory.window(start..start + margin_bytes)
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        // A forked child takes none of them, and a thread that it does not have may hold the lock.
        if !self.pool.memory.is_here() {
            return;
        }
        let mut free = self.pool.free.lock().unpoisoned();
        free.push(self.index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::OutOfBounds;

    /// Memory as a client and as the daemon has it.
    fn two_ends() -> (SharedMemory, SharedMemory) {
        let memory = SharedMemory::create(1).unwrap();
        let file = rustix::io::dup(memory.file().unwrap()).unwrap();
        let bytes = memory.bytes();
        (memory, SharedMemory::adopt(file, bytes).unwrap())
    }

    #[test]
    fn a_buffer_is_one_owners_until_it_goes_back() {
        let (memory, other_end) = two_ends();
        let bytes = memory.bytes();
        let pool = BufferPool::new(memory, 100);
        assert_eq!(pool.buffer_bytes(), 128);
        let mut one = pool.take(128).unwrap();
        let mut other = pool.take(5).unwrap();
        let others: Vec<_> = std::iter::from_fn(|| pool.take(1)).collect();
        assert_eq!(others.len(), bytes / 128 - 2);
        assert!(pool.take(1).is_none() && pool.take(129).is_none());
        one.bytes_mut().fill(1);
        other.bytes_mut().fill(2);
        assert_eq!((one.bytes(), other.bytes()), (&[1; 128][..], &[2; 5][..]));
        assert_eq!(other.segment(), Segment { offset: 128, bytes: 5 });
        let mut seen = [0; 5];
        other_end.read(128, &mut seen).unwrap();
        assert_eq!(seen, [2; 5]);
        drop(one);
        assert!(pool.take(1).is_some());
    }

    #[test]
    fn what_is_written_behind_a_buffer_reaches_no_slice() {
        let (memory, other_end) = two_ends();
        let pool = BufferPool::with_margins(memory, 100, 70);
        let (mut one, mut next) = (pool.take(128).unwrap(), pool.take(128).unwrap());
        let (margin, last) = (one.margin(), next.margin());
        let (start, end) = (margin.window().start(), margin.window().end());
        assert_eq!((start, end), (128, next.segment().offset as usize));
        let slices = (one.bytes_mut(), next.bytes_mut());
        slices.0.fill(1);
        slices.1.fill(2);
        assert_eq!(margin.window().write(start, &[3; 128]), Ok(()));
        for (offset, bytes) in [(start - 1, 1), (start - 1, 2), (end, 1), (end - 1, 2), (0, 128)] {
            assert_eq!(margin.window().write(offset, &vec![4; bytes]), Err(OutOfBounds));
            assert_eq!(margin.window().read(offset, &mut vec![0; bytes]), Err(OutOfBounds));
        }
        assert_eq!(margin.window().read(usize::MAX, &mut [0; 2]), Err(OutOfBounds));
        assert!(slices.0.iter().all(|byte| *byte == 1) && slices.1.iter().all(|byte| *byte == 2));
        // A margin stays where it is when its buffer is another owner's.
        drop(one);
        let mut again = pool.take(128).unwrap();
        let slice = again.bytes_mut();
        assert_eq!(margin.window().write(end - 1, &[5]), Ok(()));
        assert!(slice.iter().all(|byte| *byte == 1));
        let mut seen = [0; 128];
        other_end.read(start, &mut seen).unwrap();
        assert_eq!((seen[0], seen[127]), (3, 5));
        assert_eq!(last.window().end(), 2 * 256);
    }
}
