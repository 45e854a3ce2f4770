//! The mailbox of a virtual machine, in memory that the machine writes to.

use keyway_ring::SharedMemory;
use keyway_ring::limits::{MAILBOX_SLOTS, MESSAGE_BYTES_MAX};
use keyway_ring::mailbox::{MAILBOX_BYTES, MailboxEnd};
use std::sync::Arc;

/// Words that the machine stores anywhere, each of an offset of three bytes and eight bytes. After each, the daemon's end
/// takes what is new, once: a message is no longer than one may be, and an answer changes nothing that was taken.
pub fn mailbox(data: &[u8]) {
    let memory = SharedMemory::create(MAILBOX_BYTES).unwrap_or_else(|why| panic!("{why}"));
    let memory = Arc::new(memory);
    let Some(mut end) = MailboxEnd::open(&memory, 1) else { panic!("it is long enough") };
    for store in data.chunks_exact(11).take(256) {
        let offset = u32::from_le_bytes([store[0], store[1], store[2], 0]) as usize;
        let _ = memory.write((offset % MAILBOX_BYTES) & !7, &store[3..]);
        for slot in 0..MAILBOX_SLOTS {
            let Some(asked) = end.take(slot) else { continue };
            let bytes = asked.message.map_or(0, |message| message.len());
            assert!(bytes <= MESSAGE_BYTES_MAX);
            end.answer(slot, &[7; 64][..bytes.min(64)]);
            assert!(end.take(slot).is_none());
        }
    }
    let resumed = MailboxEnd::resume(&memory, &end.taken());
    let Some(mut resumed) = resumed else { panic!("it goes on") };
    assert!((0..MAILBOX_SLOTS).all(|slot| resumed.take(slot).is_none()));
    end.close();
}
