//! What messages and packets have in common once a key and a nonce have been found: a room that works on
//! several at once takes them as they are.

use super::{AeadKey, HeaderKey, NONCE_BYTES, Open, Protect, Seal, Unprotect};
use crate::packet::Room;
use crate::portable::Library;
use core::slice;

/// A message to seal or to open.
pub(crate) trait Message<'k> {
    fn key(&self) -> &'k AeadKey;
    /// The key that its header will be masked with.
    fn header_key(&self) -> Option<&'k HeaderKey>;
    /// The nonce and four zeros, little-endian.
    fn nonce(&self) -> u128;
    fn aad(&self) -> &[u8];
    /// Length of the data, in bytes.
    fn size(&self) -> usize;
    fn data(&mut self) -> &mut [u8];
    /// Takes the tag that was computed: it is written, or the message's own is compared with it.
    fn finish(&mut self, tag: u128);
    /// For keys that the room has no use for.
    fn library(&mut self);
}

impl<'k> Message<'k> for Seal<'k> {
    fn key(&self) -> &'k AeadKey {
        self.key
    }

    fn header_key(&self) -> Option<&'k HeaderKey> {
        None
    }

    fn nonce(&self) -> u128 {
        number(&self.nonce)
    }

    fn aad(&self) -> &[u8] {
        self.aad
    }

    fn size(&self) -> usize {
        self.data.len()
    }

    fn data(&mut self) -> &mut [u8] {
        self.data
    }

    fn finish(&mut self, tag: u128) {
        *self.tag = tag.to_le_bytes();
    }

    fn library(&mut self) {
        Library.seal(slice::from_mut(self));
    }
}

impl<'k> Message<'k> for Open<'k> {
    fn key(&self) -> &'k AeadKey {
        self.key
    }

    fn header_key(&self) -> Option<&'k HeaderKey> {
        None
    }

    fn nonce(&self) -> u128 {
        number(&self.nonce)
    }

    fn aad(&self) -> &[u8] {
        self.aad
    }

    fn size(&self) -> usize {
        self.data.len()
    }

    fn data(&mut self) -> &mut [u8] {
        self.data
    }

    fn finish(&mut self, tag: u128) {
        // All bits at once, whichever differ.
        self.authentic = tag ^ u128::from_le_bytes(self.tag) == 0;
        if !self.authentic {
            self.data.fill(0);
        }
    }

    fn library(&mut self) {
        Library.open(slice::from_mut(self));
    }
}

impl<'k> Message<'k> for Protect<'k> {
    fn key(&self) -> &'k AeadKey {
        self.key.key()
    }

    fn header_key(&self) -> Option<&'k HeaderKey> {
        Some(self.header_key)
    }

    fn nonce(&self) -> u128 {
        self.key.nonce_number(self.number)
    }

    fn aad(&self) -> &[u8] {
        &self.packet[..self.header_bytes]
    }

    fn size(&self) -> usize {
        self.payload().len()
    }

    fn data(&mut self) -> &mut [u8] {
        let payload = self.payload();
        &mut self.packet[payload]
    }

    fn finish(&mut self, tag: u128) {
        if let Some(place) = self.packet.last_chunk_mut() {
            *place = tag.to_le_bytes();
        }
    }

    fn library(&mut self) {
        Library.seal_packets(slice::from_mut(self));
    }
}

impl<'k> Message<'k> for Unprotect<'k> {
    fn key(&self) -> &'k AeadKey {
        self.found_key().key()
    }

    fn header_key(&self) -> Option<&'k HeaderKey> {
        None
    }

    fn nonce(&self) -> u128 {
        self.found_key().nonce_number(self.verdict.map_or(0, |opened| opened.number))
    }

    fn aad(&self) -> &[u8] {
        &self.packet[..self.verdict.map_or(0, |opened| opened.header_bytes)]
    }

    fn size(&self) -> usize {
        self.payload().len()
    }

    fn data(&mut self) -> &mut [u8] {
        let payload = self.payload();
        &mut self.packet[payload]
    }

    fn finish(&mut self, tag: u128) {
        if let Some(sent) = self.packet.last_chunk() {
            // All bits at once, whichever differ.
            self.judge(tag ^ u128::from_le_bytes(*sent) == 0);
        }
    }

    fn library(&mut self) {
        Library.open_packets(slice::from_mut(self));
    }
}

/// A nonce and four zeros, little-endian.
pub(super) fn number(nonce: &[u8; NONCE_BYTES]) -> u128 {
    let [a, b, c] = nonce.as_chunks::<4>().0 else { return 0 };
    let [a, b, c] = [a, b, c].map(|word| u128::from(u32::from_le_bytes(*word)));
    c << 64 | b << 32 | a
}
