//! A split virtqueue (virtio 1.2 § 2.7), the device's side. The driver may write anything at any moment: each number is
//! read once and checked.
//!
//! QEMU 7.2 does not say which features the guest took. So indirect descriptors are always accepted, the index at which
//! the driver is to notify next (`avail_event`) is always written, and the driver is interrupted after each batch
//! unless its flag forbids it. That is right with every choice of features: a driver that has not taken EVENT_IDX does
//! not look at `avail_event`, and one more interrupt harms none.

use crate::limits::INDIRECT_DESCRIPTORS_MAX;
use crate::memory::{Area, GuestMemory, OutOfMemory};
use crate::message::RingAddresses;
use std::sync::atomic::{Ordering, fence};

/// Most descriptors of a ring.
pub(crate) const DESCRIPTORS_MAX: u16 = 1 << 15;

const DESCRIPTOR_BYTES: usize = 16;
const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;
const NO_INTERRUPT: u16 = 1;
const NO_NOTIFY: u16 = 1;

/// Why a ring can no longer be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broken(pub &'static str);

impl From<OutOfMemory> for Broken {
    fn from(_: OutOfMemory) -> Broken {
        Broken("it names what is not in the guest's memory")
    }
}

/// The device's place in a ring.
#[derive(Debug)]
pub(crate) struct Queue {
    /// A power of two.
    pub descriptors: u16,
    pub addresses: RingAddresses,
    /// The next entry of what is available.
    pub next: u16,
    /// The next entry of what is used. All before it are published, or will be by [`Queue::publish`].
    used: u16,
}

impl Default for Queue {
    fn default() -> Self {
        Queue { descriptors: 1, addresses: RingAddresses::default(), next: 0, used: 0 }
    }
}

/// The three parts of a ring.
struct Parts<'a> {
    descriptors: Area<'a>,
    available: Area<'a>,
    used: Area<'a>,
}

/// Buffers of one request.
#[derive(Debug)]
pub(crate) struct Chain {
    head: u16,
    readable: Segments,
    writable: Segments,
}

/// Buffers that follow each other, all in the guest's memory.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    parts: Vec<(u64, u32)>,
    bytes: u64,
}

struct Descriptor {
    address: u64,
    bytes: u32,
    flags: u16,
    next: u16,
}

impl Queue {
    /// Begins where the device that had the ring before ended.
    pub fn start(&mut self, memory: &GuestMemory) -> Result<(), Broken> {
        self.used = self.parts(memory)?.used.load(2)?;
        Ok(())
    }

    /// The next request, if there is one. It has room for a status at least.
    pub fn take(&mut self, memory: &GuestMemory) -> Result<Option<Chain>, Broken> {
        let parts = self.parts(memory)?;
        let waiting = parts.available.load(2)?.wrapping_sub(self.next);
        if waiting > self.descriptors {
            return Err(Broken("it offers more than it has"));
        }
        if waiting == 0 {
            return Ok(None);
        }
        let head = parts.available.load(4 + 2 * self.slot(self.next))?;
        let chain = self.chain(memory, &parts.descriptors, head)?;
        if chain.writable.bytes == 0 {
            return Err(Broken("a request has no room for its status"));
        }
        self.next = self.next.wrapping_add(1);
        Ok(Some(chain))
    }

    /// Gives a request's buffers back, of which so many bytes were written. The driver sees it with the next
    /// [`Queue::publish`].
    pub fn give_back(
        &mut self,
        memory: &GuestMemory,
        chain: &Chain,
        written: u32,
    ) -> Result<(), Broken> {
        let mut element = [0; 8];
        element[..4].copy_from_slice(&u32::from(chain.head).to_le_bytes());
        element[4..].copy_from_slice(&written.to_le_bytes());
        self.parts(memory)?.used.write(4 + 8 * self.slot(self.used), &element)?;
        self.used = self.used.wrapping_add(1);
        Ok(())
    }

    /// Shows the driver what was given back. Whether it wants an interrupt.
    pub fn publish(&self, memory: &GuestMemory) -> Result<bool, Broken> {
        let parts = self.parts(memory)?;
        parts.used.store(2, self.used)?;
        // Either the driver sees the index before it forbids interrupts, or its flag is seen here.
        fence(Ordering::SeqCst);
        Ok(parts.available.load(0)? & NO_INTERRUPT == 0)
    }

    /// Asks the driver not to notify for now.
    pub fn silence(&self, memory: &GuestMemory) -> Result<(), Broken> {
        Ok(self.parts(memory)?.used.store(0, NO_NOTIFY)?)
    }

    /// Asks the driver to notify of the next request. Whether there is one already, of which it may not notify.
    pub fn listen(&self, memory: &GuestMemory) -> Result<bool, Broken> {
        let parts = self.parts(memory)?;
        parts.used.store(0, 0)?;
        parts.used.store(4 + 8 * usize::from(self.descriptors), self.next)?;
        // Either the driver sees that before it offers the next request, or that request is seen here.
        fence(Ordering::SeqCst);
        Ok(parts.available.load(2)? != self.next)
    }

    fn slot(&self, index: u16) -> usize {
        usize::from(index & (self.descriptors - 1))
    }

    fn parts<'a>(&self, memory: &'a GuestMemory) -> Result<Parts<'a>, Broken> {
        let count = usize::from(self.descriptors);
        let RingAddresses { descriptors, available, used } = self.addresses;
        let parts = (
            memory.area(descriptors, DESCRIPTOR_BYTES * count, 16),
            memory.area(available, 4 + 2 * count, 2),
            memory.area(used, 6 + 8 * count, 4),
        );
        match parts {
            (Some(descriptors), Some(available), Some(used)) => {
                Ok(Parts { descriptors, available, used })
            }
            _ => Err(Broken("it is not in the guest's memory, or not aligned")),
        }
    }

    /// Follows a chain. Each of its steps costs one, and the steps are counted, so that a loop ends.
    fn chain(&self, memory: &GuestMemory, table: &Area<'_>, head: u16) -> Result<Chain, Broken> {
        let mut chain =
            Chain { head, readable: Segments::default(), writable: Segments::default() };
        let mut index = head;
        for _ in 0..self.descriptors {
            if index >= self.descriptors {
                return Err(Broken("a descriptor's number is not in its table"));
            }
            let mut bytes = [0; DESCRIPTOR_BYTES];
            table.read(usize::from(index) * DESCRIPTOR_BYTES, &mut bytes)?;
            let descriptor = Descriptor::new(bytes);
            if descriptor.flags & INDIRECT != 0 {
                if descriptor.flags & NEXT != 0 {
                    return Err(Broken("a descriptor is indirect and has a next one"));
                }
                chain.indirect(memory, &descriptor)?;
                return Ok(chain);
            }
            chain.push(memory, &descriptor)?;
            if descriptor.flags & NEXT == 0 {
                return Ok(chain);
            }
            index = descriptor.next;
        }
        Err(Broken("a chain is longer than its table: it is a loop"))
    }
}

impl Descriptor {
    fn new(bytes: [u8; DESCRIPTOR_BYTES]) -> Descriptor {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = bytes;
        Descriptor {
            address: u64::from_le_bytes([a, b, c, d, e, f, g, h]),
            bytes: u32::from_le_bytes([i, j, k, l]),
            flags: u16::from_le_bytes([m, n]),
            next: u16::from_le_bytes([o, p]),
        }
    }
}

impl Chain {
    /// Follows a table of descriptors somewhere in the guest's memory, of which a copy is made.
    fn indirect(&mut self, memory: &GuestMemory, table: &Descriptor) -> Result<(), Broken> {
        let bytes = table.bytes as usize;
        if bytes == 0
            || !bytes.is_multiple_of(DESCRIPTOR_BYTES)
            || bytes > INDIRECT_DESCRIPTORS_MAX * DESCRIPTOR_BYTES
        {
            return Err(Broken("an indirect table is empty, too long or not whole"));
        }
        let mut copied = vec![0; bytes];
        memory.read(table.address, &mut copied)?;
        let (descriptors, _) = copied.as_chunks::<DESCRIPTOR_BYTES>();
        let mut index = 0;
        for _ in 0..descriptors.len() {
            let bytes = descriptors.get(index);
            let bytes = *bytes.ok_or(Broken("a descriptor's number is not in its table"))?;
            let descriptor = Descriptor::new(bytes);
            if descriptor.flags & INDIRECT != 0 {
                return Err(Broken("an indirect table is within another"));
            }
            self.push(memory, &descriptor)?;
            if descriptor.flags & NEXT == 0 {
                return Ok(());
            }
            index = usize::from(descriptor.next);
        }
        Err(Broken("a chain is longer than its table: it is a loop"))
    }

    fn push(&mut self, memory: &GuestMemory, descriptor: &Descriptor) -> Result<(), Broken> {
        let Descriptor { address, bytes, flags, .. } = *descriptor;
        if !memory.has(address, bytes.into()) {
            return Err(OutOfMemory.into());
        }
        let segments = if flags & WRITE != 0 {
            &mut self.writable
        } else if self.writable.parts.is_empty() {
            &mut self.readable
        } else {
            return Err(Broken("what the device reads comes after what it writes"));
        };
        segments.parts.push((address, bytes));
        segments.bytes += u64::from(bytes);
        Ok(())
    }

    /// How much the device may read, in bytes.
    pub fn readable_bytes(&self) -> u64 {
        self.readable.bytes
    }

    /// How much the list of its buffers takes up here, in bytes.
    pub fn held_bytes(&self) -> u64 {
        let parts = self.readable.parts.len() + self.writable.parts.len();
        (parts * size_of::<(u64, u32)>()) as u64
    }

    /// How much the device may write, in bytes.
    pub fn writable_bytes(&self) -> u64 {
        self.writable.bytes
    }

    /// Copies bytes from this place in what the device may read.
    pub fn read(
        &self,
        memory: &GuestMemory,
        from: u64,
        into: &mut [u8],
    ) -> Result<(), OutOfMemory> {
        self.readable
            .walk(from, into.len(), |address, range| memory.read(address, &mut into[range]))
    }

    /// Copies bytes to this place in what the device may write.
    pub fn write(&self, memory: &GuestMemory, to: u64, from: &[u8]) -> Result<(), OutOfMemory> {
        self.writable.walk(to, from.len(), |address, range| memory.write(address, &from[range]))
    }
}

impl Segments {
    /// Calls `each` with the address of each piece of so many bytes from there on, and with their place among them.
    fn walk(
        &self,
        from: u64,
        bytes: usize,
        mut each: impl FnMut(u64, std::ops::Range<usize>) -> Result<(), OutOfMemory>,
    ) -> Result<(), OutOfMemory> {
        let (mut skipped, mut done) = (from, 0);
        for (address, length) in &self.parts {
            let length = u64::from(*length);
            if done == bytes {
                break;
            }
            if skipped >= length {
                skipped -= length;
                continue;
            }
            let here = (length - skipped).min((bytes - done) as u64) as usize;
            each(address + skipped, done..done + here)?;
            (skipped, done) = (0, done + here);
        }
        if done == bytes { Ok(()) } else { Err(OutOfMemory) }
    }
}
