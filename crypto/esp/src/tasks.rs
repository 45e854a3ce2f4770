//! The tasks of the engine, used again and again with their buffers.

use crate::limits::KEPT_BYTES_MAX;
use crate::parameters::Association;
use keyway_engine::{Buffer, Direction, Iv, Operation, Part, Task};
use std::mem;

/// Tasks that wait for the next batch.
pub(crate) struct Tasks {
    direction: Direction,
    aead: Vec<Idle>,
    chains: Vec<Idle>,
}

struct Idle {
    task: Box<Task>,
    /// The id of the association whose session it has.
    of: u64,
}

impl Tasks {
    /// For packets that are sealed or opened.
    pub fn new(direction: Direction) -> Self {
        Tasks { direction, aead: Vec::new(), chains: Vec::new() }
    }

    /// A task on this association's session, with any buffers.
    #[inline]
    pub fn take(&mut self, association: &Association) -> Box<Task> {
        let aead = association.suite.is_aead();
        let idle = if aead { &mut self.aead } else { &mut self.chains };
        let Some(Idle { mut task, of }) = idle.pop() else { return self.make(association) };
        if of != association.id {
            task.set_session(&association.session);
        }
        task
    }

    #[cold]
    fn make(&self, association: &Association) -> Box<Task> {
        let operation = match (association.suite.is_aead(), self.direction) {
            (true, Direction::Protect) => Operation::seal([0; 12], [], []),
            (true, Direction::Unprotect) => Operation::open([0; 12], [], []),
            (false, direction) => Operation::chain(direction, [], 0, []),
        };
        Task::new(&association.session, operation)
    }

    /// Takes back a task of this association.
    #[inline]
    pub fn put(&mut self, association: &Association, task: Box<Task>) {
        let aead = association.suite.is_aead();
        let idle = if aead { &mut self.aead } else { &mut self.chains };
        idle.push(Idle { task, of: association.id });
    }

    /// Drops all, and with them the sessions of associations that are gone.
    pub fn clear(&mut self) {
        self.aead.clear();
        self.chains.clear();
    }
}

/// Fills a buffer anew with `bytes` or a few more, in the memory that it has.
#[inline]
pub(crate) fn refill(buffer: &mut Buffer, bytes: usize, fill: impl FnOnce(&mut Vec<u8>)) {
    edit(buffer, |own| {
        if own.capacity() > KEPT_BYTES_MAX && bytes <= KEPT_BYTES_MAX {
            *own = Vec::new();
        }
        own.clear();
        own.reserve(bytes);
        fill(own);
    });
}

/// Changes a buffer's bytes, and how many they are.
#[inline]
pub(crate) fn edit(buffer: &mut Buffer, change: impl FnOnce(&mut Vec<u8>)) {
    let mut own = mem::replace(buffer, Vec::new().into()).into_vec();
    change(&mut own);
    *buffer = own.into();
}

/// The parts of a chain over an ESP packet: what is encrypted, and what is authenticated, which with extended numbers is
/// four bytes more (RFC 4303 § 2.2.1).
pub(crate) fn set_parts(parts: &mut Vec<Part>, association: &Association, text_bytes: usize) {
    let suite = association.suite;
    let text = suite.front_bytes()..suite.front_bytes() + text_bytes;
    let tag_at = text.end + if association.esn { HIGH_BYTES } else { 0 };
    parts.clear();
    parts.push(Part::Cipher { iv: Iv::At(crate::suite::HEADER_BYTES), text });
    parts.push(Part::Mac { over: 0..tag_at, tag: tag_at..tag_at + suite.icv_bytes() });
}

/// Length of the upper half of an extended number, in bytes.
pub(crate) const HIGH_BYTES: usize = 4;

/// The bytes that an AEAD authenticates beside the text (RFC 4106 § 5): SPI and number.
#[inline]
pub(crate) fn set_aad(aad: &mut Vec<u8>, association: &Association, number: u64) {
    aad.clear();
    aad.extend(association.spi.to_be_bytes());
    if association.esn {
        aad.extend(number.to_be_bytes());
    } else {
        aad.extend((number as u32).to_be_bytes());
    }
}

/// The nonce of an AEAD (RFC 4106 § 4, RFC 7634 § 2): salt and initialisation vector.
#[inline]
pub(crate) fn set_nonce(nonce: &mut [u8; 12], association: &Association, iv: &[u8]) {
    let (front, back) = nonce.split_at_mut(4);
    front.copy_from_slice(&**association.salt);
    if let Some(iv) = iv.get(..back.len()) {
        back.copy_from_slice(iv);
    }
}
