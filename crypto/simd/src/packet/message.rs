//! The form that messages and packets share once a key and a nonce have been found: a backend that
//! works on several at once takes them as they are.

use super::aead::{Open, Seal};
use super::backend::Backend;
use super::key::{AeadKey, HeaderKey, number};
use super::library::Library;
use super::quic::{Protect, Unprotect};
use super::sizes::TAG_BYTES;
use std::slice;

/// A message's bytes.
pub(crate) struct Parts<'m> {
    /// Authenticated only: of a packet to protect, its header, whose number is yet to be written.
    pub(crate) aad: &'m [u8],
    pub(crate) data: &'m mut [u8],
}

/// A message to seal or to open.
// Some of it is for backends that not every processor has.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(crate) trait Message<'k> {
    /// Whether these are packets to protect, whose headers are to be completed.
    const PACKETS: bool = false;
    /// Whether those under one key have one IV, their numbers xored into it.
    const NUMBERED: bool = false;
    fn key(&self) -> &'k AeadKey;
    /// The nonce but for its number, and four zeros; little-endian.
    fn iv(&self) -> u128;
    /// The number that is xored into the last eight bytes of the nonce.
    fn number(&self) -> u64 {
        0
    }
    /// The nonce and four zeros, little-endian.
    fn nonce(&self) -> u128 {
        self.iv() ^ u128::from(self.number().swap_bytes()) << 32
    }
    fn parts(&mut self) -> Parts<'_>;
    /// Takes the tag that was computed: it is written, or the message's own is compared with it.
    fn finish(&mut self, tag: &[u8; TAG_BYTES]);
    /// The key that its header will be masked with.
    fn header_key(&self) -> Option<&'k HeaderKey> {
        None
    }
    /// The packet whose header is to be completed, and masked when the rest is done.
    fn header(&mut self) -> Option<&mut Protect<'k>> {
        None
    }
    /// Whether these are packets to open.
    const OPENED: bool = false;
    /// The packet to open, whose header may still have its mask on.
    fn opened(&mut self) -> Option<&mut Unprotect<'k>> {
        None
    }
    /// For keys that the backend has no use for.
    fn library(&mut self);
}

impl<'k> Message<'k> for Seal<'k> {
    fn key(&self) -> &'k AeadKey {
        self.key
    }

    fn iv(&self) -> u128 {
        number(&self.nonce)
    }

    fn parts(&mut self) -> Parts<'_> {
        Parts { aad: self.aad, data: self.data }
    }

    fn finish(&mut self, tag: &[u8; TAG_BYTES]) {
        *self.tag = *tag;
    }

    fn library(&mut self) {
        Library.seal(slice::from_mut(self));
    }
}

impl<'k> Message<'k> for Open<'k> {
    fn key(&self) -> &'k AeadKey {
        self.key
    }

    fn iv(&self) -> u128 {
        number(&self.nonce)
    }

    fn parts(&mut self) -> Parts<'_> {
        Parts { aad: self.aad, data: self.data }
    }

    fn finish(&mut self, tag: &[u8; TAG_BYTES]) {
        self.authentic = same(tag, &self.tag);
        if !self.authentic {
            self.data.fill(0);
        }
    }

    fn library(&mut self) {
        Library.open(slice::from_mut(self));
    }
}

impl<'k> Message<'k> for Protect<'k> {
    const PACKETS: bool = true;
    const NUMBERED: bool = true;

    fn key(&self) -> &'k AeadKey {
        self.key.key()
    }

    fn header_key(&self) -> Option<&'k HeaderKey> {
        Some(self.header_key)
    }

    fn header(&mut self) -> Option<&mut Protect<'k>> {
        Some(self)
    }

    fn iv(&self) -> u128 {
        self.key.iv_number()
    }

    fn number(&self) -> u64 {
        self.number
    }

    #[inline]
    fn parts(&mut self) -> Parts<'_> {
        let (aad, data, _) = self.split();
        Parts { aad, data }
    }

    fn finish(&mut self, tag: &[u8; TAG_BYTES]) {
        if let Some(place) = self.packet.last_chunk_mut() {
            *place = *tag;
        }
    }

    fn library(&mut self) {
        self.put_number();
        Library.seal(slice::from_mut(&mut self.seal()));
    }
}

impl<'k> Message<'k> for Unprotect<'k> {
    const NUMBERED: bool = true;
    const OPENED: bool = true;

    fn opened(&mut self) -> Option<&mut Unprotect<'k>> {
        Some(self)
    }

    fn key(&self) -> &'k AeadKey {
        self.found_key().key()
    }

    fn iv(&self) -> u128 {
        self.found_key().iv_number()
    }

    fn number(&self) -> u64 {
        self.found().number
    }

    #[inline]
    fn parts(&mut self) -> Parts<'_> {
        let (aad, data, _) = self.split();
        Parts { aad, data }
    }

    fn finish(&mut self, tag: &[u8; TAG_BYTES]) {
        if let Some(sent) = self.packet.last_chunk() {
            self.judge(same(tag, sent));
        }
    }

    fn library(&mut self) {
        Library.open_packets(slice::from_mut(self));
    }
}

/// Gets each verdict before it decides anything. A test that follows secrets through memory says
/// here that a verdict is public; in programs built without debug assertions there is no such
/// place.
#[cfg(debug_assertions)]
#[doc(hidden)]
pub static ON_VERDICT: std::sync::OnceLock<fn(&mut bool)> = std::sync::OnceLock::new();

/// Compares all bits at once, whichever differ.
fn same(a: &[u8; TAG_BYTES], b: &[u8; TAG_BYTES]) -> bool {
    #[cfg_attr(not(debug_assertions), allow(unused_mut))]
    let mut same = u128::from_le_bytes(*a) ^ u128::from_le_bytes(*b) == 0;
    #[cfg(debug_assertions)]
    if let Some(hook) = ON_VERDICT.get() {
        hook(&mut same);
    }
    same
}
