//! QUIC's packet protection (RFC 9001 § 5.3 to 5.4, RFC 9369: version 2 differs in how keys are
//! derived, not here).
//!
//! A packet's header ends with its number, 1 to 4 bytes as the lowest two bits of the first byte
//! say. The mask comes from a sample of the ciphertext that lies 4 bytes behind the number's start,
//! and hides those bits and the number.

use super::aead::{Open, Seal};
use super::key::{HeaderKey, PacketKey};
use super::sizes::{SAMPLE_BYTES, TAG_BYTES};
use crate::fault::FaultKind;
use crate::limits::MESSAGE_BYTES_MAX;

/// Most bytes of a packet number.
const NUMBER_BYTES_MAX: usize = 4;
/// Set in the first byte of a long header (RFC 9000 § 17.2).
const LONG: u8 = 0x80;
/// The key phase of a short header (RFC 9000 § 17.3.1).
pub(crate) const PHASE: u8 = 0x04;
/// Packet numbers end before this (RFC 9000 § 12.3).
pub(crate) const NUMBER_END: u64 = 1 << 62;

/// A packet to protect.
#[derive(Debug)]
pub struct Protect<'a> {
    /// For the payload.
    pub key: &'a PacketKey,
    /// For the header.
    pub header_key: &'a HeaderKey,
    /// The packet's number, never twice under one key. Its lowest bytes are written to the end of
    /// the header, as many as the header's first byte says.
    pub number: u64,
    /// Length of the header with the packet number, in bytes.
    pub header_bytes: usize,
    /// Header, payload, and [`TAG_BYTES`] of space for the tag. Number and payload together have at
    /// least 4 bytes (RFC 9001 § 5.4.2).
    pub packet: &'a mut [u8],
}

/// A packet to take the protection off.
#[derive(Debug)]
pub struct Unprotect<'a> {
    /// For the payload.
    pub keys: Phases<'a>,
    /// For the header.
    pub header_key: &'a HeaderKey,
    /// The largest number received so far in its packet number space, if any.
    pub largest: Option<u64>,
    /// Where the packet number starts, in bytes from the packet's start.
    pub number_at: usize,
    /// The packet as it came, to its end; afterwards header, plaintext, tag. A packet that is not
    /// authentic becomes zeros behind its header.
    pub packet: &'a mut [u8],
    /// Receives what was found.
    pub verdict: Result<Opened, Refusal>,
}

/// The keys that a packet may have been sealed with (RFC 9001 § 6). The phase is part of the
/// protected header, so which of them it was shows only here.
#[derive(Debug, Clone, Copy)]
pub struct Phases<'a> {
    /// The key in use, and the only one of packets with a long header.
    pub current: &'a PacketKey,
    /// The phase that the key in use has.
    pub phase: bool,
    /// The lowest number that came under the key in use; lower ones of the other phase are under
    /// the key before it.
    pub since: u64,
    /// The key before it, as long as it is kept.
    pub previous: Option<&'a PacketKey>,
    /// The key after it: that it is ready keeps an update from showing in the time taken.
    pub next: Option<&'a PacketKey>,
}

/// A header that was masked.
pub(crate) struct ShortHeader<'a> {
    /// The packet's first bytes, the header's masked.
    pub(crate) start: &'a [u8; SAMPLE_BYTES],
    /// The first of them.
    pub(crate) first: u8,
    /// The key phase.
    pub(crate) phase: bool,
    /// The packet's whole number.
    pub(crate) number: u64,
    /// Length of the header, in bytes.
    pub(crate) bytes: usize,
}

/// A packet that was authentic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened {
    /// Its whole number.
    pub number: u64,
    /// Length of its header with the number, in bytes; the payload ends [`TAG_BYTES`] before the
    /// packet does.
    pub header_bytes: usize,
    /// The key that it was under.
    pub used: Used,
}

/// Which key of [`Phases`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Used {
    /// The key in use.
    Current,
    /// The key before it.
    Previous,
    /// The key after it: the peer has updated its keys.
    Next,
}

/// Why a packet was not opened: the peer's fault, or no fault at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Not looked at yet.
    Waiting,
    /// It is too short to have been protected, or too long.
    Length,
    /// It is of a phase whose key is not there.
    NoKey,
    /// It is not what was sealed.
    NotAuthentic,
}

impl<'a> Phases<'a> {
    /// One key only.
    pub const fn only(current: &'a PacketKey) -> Self {
        Self { current, phase: false, since: 0, previous: None, next: None }
    }

    /// The key that is not the one in use.
    #[cold]
    fn old_or_new(&self, used: Used) -> &'a PacketKey {
        let Self { current, previous, next, .. } = *self;
        if used == Used::Previous { previous } else { next }.unwrap_or(current)
    }

    /// Which key a packet has with this first byte and number, whose phase is not the current one.
    fn other(&self, first: u8, number: u64) -> Option<Used> {
        if first & LONG != 0 {
            Some(Used::Current)
        } else if number < self.since {
            self.previous.map(|_| Used::Previous)
        } else {
            self.next.map(|_| Used::Next)
        }
    }
}

impl<'a> Unprotect<'a> {
    /// A packet that was not looked at yet.
    pub const fn new(
        keys: Phases<'a>,
        header_key: &'a HeaderKey,
        largest: Option<u64>,
        number_at: usize,
        packet: &'a mut [u8],
    ) -> Self {
        let verdict = Err(Refusal::Waiting);
        Self { keys, header_key, largest, number_at, packet, verdict }
    }
}

impl Protect<'_> {
    /// Length of its number, in bytes. It is not empty.
    #[inline]
    pub(crate) fn number_bytes(&self) -> usize {
        number_bytes(self.packet[0])
    }

    fn place(&self) -> Place {
        let bytes = self.number_bytes();
        Place::new(self.header_bytes - bytes, bytes)
    }

    /// Its header, its payload, and the tag's place.
    #[inline]
    pub(super) fn split(&mut self) -> (&mut [u8], &mut [u8], &mut [u8; TAG_BYTES]) {
        split(self.packet, self.header_bytes)
    }

    /// As a message. Inlined, it is put together where it is used: a copy of it would wait, since
    /// it is read in other parts than it was written.
    #[inline]
    pub(super) fn seal(&mut self) -> Seal<'_> {
        let (key, nonce) = (self.key.key(), self.key.nonce(self.number));
        let (aad, data, tag) = self.split();
        Seal { key, nonce, aad, data, tag }
    }

    /// Its first bytes, if its header ends among these, and the header's length.
    #[inline]
    pub(crate) fn start(&self) -> Option<(&[u8; SAMPLE_BYTES], usize)> {
        start(self.packet, self.header_bytes)
    }

    /// The first bytes again, to be written.
    #[inline]
    pub(crate) fn start_mut(&mut self) -> Option<&mut [u8; SAMPLE_BYTES]> {
        self.packet.first_chunk_mut().filter(|_| self.header_bytes <= SAMPLE_BYTES)
    }

    /// Writes its number.
    pub(crate) fn put_number(&mut self) {
        self.place().put(self.packet, self.number as u32);
    }

    /// Where that begins which its header's mask is computed from, in bytes from the payload's
    /// start.
    #[inline]
    pub(crate) fn sample_at(&self) -> usize {
        NUMBER_BYTES_MAX - self.number_bytes()
    }

    /// The sample that its header's mask is computed from, once it is sealed.
    #[inline]
    pub(crate) fn sample(&self) -> &[u8; SAMPLE_BYTES] {
        self.packet[self.header_bytes + self.sample_at()..].first_chunk().expect("checked")
    }

    /// A short payload in parts, as its sample lies across bytes that were written one after the other:
    /// its first block, and the bytes behind it.
    #[inline]
    pub(crate) fn sample_in_parts(&self) -> Option<(&[u8; SAMPLE_BYTES], &[u8; NUMBER_BYTES_MAX])> {
        let sealed = &self.packet[self.header_bytes..];
        let (block, behind) = sealed.split_first_chunk()?;
        Some((block, behind.first_chunk().filter(|_| sealed.len() <= 4 * SAMPLE_BYTES)?))
    }

    /// Masks its header, the number written.
    pub(crate) fn mask(&mut self, mask: Mask) {
        self.place().mask(self.packet, mask);
        self.mask_first(mask);
    }

    /// Writes its number, and masks its header.
    #[inline]
    pub(crate) fn mask_numbered(&mut self, mask: Mask) {
        self.place().put_masked(self.packet, self.number as u32, mask);
        self.mask_first(mask);
    }

    /// Masks the first byte of its header only.
    pub(crate) fn mask_first(&mut self, mask: Mask) {
        self.packet[0] ^= mask.of_first(self.packet[0]);
    }

    pub(super) fn is_right(&self) -> bool {
        // The tag has a place wherever there is a sample, which begins 4 bytes behind the number's
        // start and has its length.
        let behind = NUMBER_BYTES_MAX + SAMPLE_BYTES;
        let space = self.packet.len().wrapping_sub(behind);
        if space > MESSAGE_BYTES_MAX - behind {
            return false;
        }
        let before_number = self.header_bytes.wrapping_sub(self.number_bytes() + 1);
        before_number < space && self.number < NUMBER_END
    }

    /// Its fault.
    #[cold]
    pub(super) fn fault(&self) -> FaultKind {
        if self.packet.len() > MESSAGE_BYTES_MAX {
            FaultKind::TooLong
        } else if self.number >= NUMBER_END {
            FaultKind::Number
        } else if !self.packet.is_empty() && self.header_bytes <= self.number_bytes() {
            FaultKind::HeaderLength
        } else {
            FaultKind::TooShort
        }
    }
}

/// A header's mask: its first byte is for the header's first, the next four for the number.
#[derive(Clone, Copy)]
pub(crate) struct Mask(pub(crate) u64);

impl Mask {
    /// The mask that begins so.
    pub(crate) fn new([a, b, c, d, e, f, g, h, ..]: &[u8; SAMPLE_BYTES]) -> Self {
        Self(u64::from_le_bytes([*a, *b, *c, *d, *e, *f, *g, *h]))
    }

    /// The mask of a number, its first byte lowest.
    pub(crate) fn of_number(self) -> u32 {
        (self.0 >> 8) as u32
    }

    /// The mask of a header's first byte: four bits of a long header, five of a short one.
    fn of_first(self, first: u8) -> u8 {
        self.0 as u8 & (0x0f | (!first & LONG) >> 3)
    }
}

/// Length of a packet's number, in bytes, by its first byte.
#[inline]
fn number_bytes(first: u8) -> usize {
    usize::from(first & 3) + 1
}

/// Where a packet's number is. Whatever its length, four bytes are read and written, which there
/// are (RFC 9001 § 5.4.2), so that no branch depends on it.
#[derive(Clone, Copy)]
struct Place {
    at: usize,
    /// Bits of the four bytes that are not the number's.
    behind: u32,
}

impl Place {
    /// The place of a number with so many bytes.
    fn new(at: usize, bytes: usize) -> Self {
        Self { at, behind: 8 * (NUMBER_BYTES_MAX - bytes) as u32 }
    }

    /// Writes the number's lowest bytes.
    fn put(self, packet: &mut [u8], number: u32) {
        let place = packet[self.at..].first_chunk_mut().expect("checked");
        let others = (1 << self.behind) - 1;
        *place = ((number << self.behind) | (u32::from_be_bytes(*place) & others)).to_be_bytes();
    }

    /// Writes the number's lowest bytes, masked.
    fn put_masked(self, packet: &mut [u8], number: u32, mask: Mask) {
        let place = packet[self.at..].first_chunk_mut().expect("checked");
        let others = (1 << self.behind) - 1;
        let plain = (number << self.behind) | (u32::from_be_bytes(*place) & others);
        let mask = mask.of_number() & (u32::MAX >> self.behind);
        *place = (plain.swap_bytes() ^ mask).to_le_bytes();
    }

    /// Masks the number, or takes its mask off; returns what it is then.
    fn mask(self, packet: &mut [u8], mask: Mask) -> u32 {
        let masked = self.four(packet) ^ mask.of_number() & (u32::MAX >> self.behind);
        *packet[self.at..].first_chunk_mut().expect("checked") = masked.to_le_bytes();
        self.number(masked)
    }

    /// The four bytes, the number's first lowest.
    fn four(self, packet: &[u8]) -> u32 {
        u32::from_le_bytes(*packet[self.at..].first_chunk().expect("checked"))
    }

    /// The number among such bytes.
    fn number(self, four: u32) -> u32 {
        four.swap_bytes() >> self.behind
    }

    /// The sample that the mask is computed from.
    fn sample(self, packet: &[u8]) -> &[u8; SAMPLE_BYTES] {
        packet[self.at + NUMBER_BYTES_MAX..].first_chunk().expect("checked")
    }
}

impl<'k> Unprotect<'k> {
    /// Whether it is long enough to have been protected, and not too long.
    fn fits(&self) -> bool {
        let behind = NUMBER_BYTES_MAX + SAMPLE_BYTES;
        let space = self.packet.len().wrapping_sub(behind);
        self.number_at.wrapping_sub(1) < space && space <= MESSAGE_BYTES_MAX - behind
    }

    /// The largest number received so far, and the one before all if there is none.
    #[inline]
    pub(crate) fn largest(&self) -> u64 {
        self.largest.unwrap_or(u64::MAX)
    }

    /// The sample that its mask is computed from, if it is long enough.
    #[inline]
    pub(crate) fn sample(&self) -> Option<&[u8; SAMPLE_BYTES]> {
        self.fits().then(|| Place::new(self.number_at, NUMBER_BYTES_MAX).sample(self.packet))
    }

    /// That sample, and zeros if the packet is not long enough.
    #[inline]
    pub(crate) fn sample_or_zeros(&self) -> &[u8; SAMPLE_BYTES] {
        self.sample().unwrap_or(&[0; SAMPLE_BYTES])
    }

    /// That sample, and the packet's first bytes, if a number of any length ends among these.
    #[inline]
    pub(crate) fn short(&self) -> Option<(&[u8; SAMPLE_BYTES], &[u8; SAMPLE_BYTES])> {
        let (at, bytes) = (self.number_at, self.packet.len());
        if at.wrapping_sub(1) >= SAMPLE_BYTES - NUMBER_BYTES_MAX || bytes > MESSAGE_BYTES_MAX {
            return None;
        }
        let sample =
            self.packet.get(at + NUMBER_BYTES_MAX..at + NUMBER_BYTES_MAX + SAMPLE_BYTES)?;
        Some((sample.first_chunk()?, self.packet.first_chunk()?))
    }

    /// Takes the mask off the header. The verdict is the one it has if the rest is authentic.
    #[inline]
    pub(crate) fn unmask(&mut self, mask: Mask) {
        if !self.fits() {
            self.verdict = Err(Refusal::Length);
            return;
        }
        let first = self.packet[0] ^ mask.of_first(self.packet[0]);
        self.packet[0] = first;
        let number_bytes = number_bytes(first);
        let truncated = Place::new(self.number_at, number_bytes).mask(self.packet, mask);
        let number = decode(self.largest(), truncated.into(), number_bytes);
        self.find_key(first & PHASE != 0, number, self.number_at + number_bytes);
    }

    /// A header that ends among the packet's first bytes whatever its number's length is, without its
    /// mask.
    #[inline]
    pub(crate) fn short_header(&self, mask: Mask) -> Option<ShortHeader<'_>> {
        let (_, start) = self.short()?;
        let first = start[0] ^ mask.of_first(start[0]);
        let number_bytes = number_bytes(first);
        let place = Place::new(self.number_at, number_bytes);
        let truncated = place.number(place.four(start) ^ mask.of_number());
        let number = decode(self.largest(), truncated.into(), number_bytes);
        let (phase, bytes) = (first & PHASE != 0, self.number_at + number_bytes);
        Some(ShortHeader { start, first, phase, number, bytes })
    }

    /// Finds the key, the header unmasked. The verdict is the one it has if the rest is authentic.
    #[inline]
    pub(crate) fn find_key(&mut self, phase: bool, number: u64, header_bytes: usize) {
        if phase == self.keys.phase {
            self.verdict = Ok(Opened { number, header_bytes, used: Used::Current });
        } else {
            self.find_other(number, header_bytes);
        }
    }

    /// Finds the key where the phase is not the current one.
    #[cold]
    fn find_other(&mut self, number: u64, header_bytes: usize) {
        self.verdict = match self.keys.other(self.packet[0], number) {
            Some(used) => Ok(Opened { number, header_bytes, used }),
            None => {
                let end = self.packet.len() - TAG_BYTES;
                self.packet[header_bytes..end].fill(0);
                Err(Refusal::NoKey)
            }
        };
    }

    /// The findings about it before it is opened.
    #[inline]
    pub(super) fn found(&self) -> Opened {
        self.verdict.expect("a packet that is refused is not opened")
    }

    /// The key that it is under.
    #[inline]
    pub(super) fn found_key(&self) -> &'k PacketKey {
        match self.found().used {
            Used::Current => self.keys.current,
            used => self.keys.old_or_new(used),
        }
    }

    /// As a message. Inlined, it is put together where it is used: a copy of it would wait, since
    /// it is read in other parts than it was written.
    #[inline]
    pub(super) fn open(&mut self) -> Open<'_> {
        let key = self.found_key();
        let nonce = key.nonce(self.found().number);
        let (aad, data, tag) = self.split();
        Open { key: key.key(), nonce, aad, data, tag: *tag, authentic: false }
    }

    /// Its header, its payload, and its tag.
    #[inline]
    pub(super) fn split(&mut self) -> (&mut [u8], &mut [u8], &mut [u8; TAG_BYTES]) {
        split(self.packet, self.found().header_bytes)
    }

    /// The tag that it came with. It was found long enough.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub(crate) fn sent(&self) -> &[u8; TAG_BYTES] {
        self.packet.last_chunk().expect("checked")
    }

    /// Takes the verdict of the AEAD; what is not authentic is wiped.
    pub(super) fn judge(&mut self, authentic: bool) {
        if !authentic {
            let (_, payload, _) = self.split();
            payload.fill(0);
            self.verdict = Err(Refusal::NotAuthentic);
        }
    }
}

/// A packet's first bytes, if its header ends among these, and the header's length.
#[inline]
fn start(packet: &[u8], header_bytes: usize) -> Option<(&[u8; SAMPLE_BYTES], usize)> {
    packet.first_chunk().filter(|_| header_bytes <= SAMPLE_BYTES).map(|start| (start, header_bytes))
}

/// A packet's header, its payload, and its tag.
#[inline]
fn split(packet: &mut [u8], header_bytes: usize) -> (&mut [u8], &mut [u8], &mut [u8; TAG_BYTES]) {
    let (header, rest) = packet.split_at_mut(header_bytes);
    let (payload, tag) = rest.split_last_chunk_mut().expect("checked");
    (header, payload, tag)
}

/// The whole packet number, which is the nearest that ends so to the one after the largest so far
/// (RFC 9000 § A.3): of two, the higher; of those that there are.
#[inline]
fn decode(largest: u64, truncated: u64, number_bytes: usize) -> u64 {
    let expected = largest.wrapping_add(1).min(NUMBER_END - 1);
    let bits = 8 * number_bytes;
    let behind = (expected.wrapping_sub(truncated) << (64 - bits)) as i64 >> (64 - bits);
    let number = expected.wrapping_sub(behind as u64);
    // Behind the last number there is, 1; before the first, -1.
    let beyond = number as i64 >> NUMBER_END.ilog2();
    number.wrapping_sub((beyond as u64) << bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9000 § A.3, and the ends of the range.
    #[test]
    fn packet_numbers_are_the_nearest_to_the_expected() {
        assert_eq!(decode(0xa82f_30ea, 0x9b32, 2), 0xa82f_9b32);
        assert_eq!(decode(u64::MAX, 0, 1), 0);
        assert_eq!(decode(0xfe, 0xff, 1), 0xff);
        assert_eq!(decode(0xff, 0, 1), 0x100);
        assert_eq!(decode(0x17f, 0xff, 1), 0x17f + 0x80);
        assert_eq!(decode(0x180, 0xff, 1), 0x1ff);
        assert_eq!(decode(0x17e, 0, 1), 0x100);
        assert_eq!(decode(0x180, 0, 1), 0x200);
        let last = NUMBER_END - 1;
        assert_eq!(decode(last, 0xff, 1), last);
        assert_eq!(decode(last, 0xfe, 1), last - 1);
        assert_eq!(decode(u64::MAX - 1, 0xff, 1), last);
    }

    /// With the steps of RFC 9000 § A.3.
    #[test]
    fn packet_numbers_are_those_of_the_standard() {
        let around = |at: i64| (-3..=3).map(move |by| at + by);
        let ends = [0, 0x80, 0xff, 0x100, 0x8000, 1 << 16, 1 << 31, 1 << 32, NUMBER_END as i64 - 4];
        for (bytes, largest) in
            (1..=4).flat_map(|b| ends.into_iter().flat_map(around).map(move |l| (b, l)))
        {
            let (expected, window) = (largest + 1, 1 << (8 * bytes));
            for truncated in ends.into_iter().flat_map(around).map(|number| number & (window - 1)) {
                let candidate = (expected & !(window - 1)) | truncated;
                let number = if candidate <= expected - window / 2
                    && candidate < NUMBER_END as i64 - window
                {
                    candidate + window
                } else if candidate > expected + window / 2 && candidate >= window {
                    candidate - window
                } else {
                    candidate
                };
                if largest >= 0 && largest < NUMBER_END as i64 - 1 {
                    let found = decode(largest as u64, truncated as u64, bytes);
                    assert_eq!(found, number as u64, "{largest:#x} {truncated:#x} {bytes}");
                }
            }
        }
    }
}
