//! QUIC's packet protection (RFC 9001 § 5.3 to 5.4, RFC 9369: version 2 differs in how keys are
//! derived, not here).
//!
//! A packet's header ends with its number, 1 to 4 bytes as the lowest two bits of the first byte
//! say. The mask comes from a sample of the ciphertext that lies 4 bytes behind the number's start,
//! and hides those bits and the number.

use super::{HeaderKey, Open, PacketKey, Room, SAMPLE_BYTES, Seal, TAG_BYTES};
use crate::job::{Fault, Why};
use crate::limits::{MESSAGE_BYTES_MAX, PACKETS_AT_ONCE};

/// Most bytes of a packet number.
const NUMBER_BYTES_MAX: usize = 4;
/// Set in the first byte of a long header (RFC 9000 § 17.2).
const LONG: u8 = 0x80;
/// The key phase of a short header (RFC 9000 § 17.3.1).
const PHASE: u8 = 0x04;
/// Packet numbers end before this (RFC 9000 § 12.3).
const NUMBER_END: u64 = 1 << 62;

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
    /// Header, payload, and [`TAG_BYTES`] of room for the tag. Number and payload together have at
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
    /// The packet as it came, to its end; afterwards header, plaintext, tag. What is not authentic
    /// becomes zeros behind its header.
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
    /// The lowest number that came under the key in use; lower ones of the other phase are under the
    /// key before it.
    pub since: u64,
    /// The key before it, as long as it is kept.
    pub previous: Option<&'a PacketKey>,
    /// The key after it: that it is ready keeps an update from showing in the time taken.
    pub next: Option<&'a PacketKey>,
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

/// Why a packet was not opened: the peer's fault, or nobody's.
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

    /// The key of a packet with this first byte and number.
    fn key(&self, first: u8, number: u64) -> Option<(&'a PacketKey, Used)> {
        if first & LONG != 0 || (first & PHASE != 0) == self.phase {
            Some((self.current, Used::Current))
        } else if number < self.since {
            self.previous.map(|key| (key, Used::Previous))
        } else {
            self.next.map(|key| (key, Used::Next))
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
    fn number_bytes(&self) -> usize {
        self.packet.first().map_or(1, |first| usize::from(first & 3) + 1)
    }

    fn check(&self) -> Result<(), Why> {
        if self.packet.len() > MESSAGE_BYTES_MAX {
            return Err(Why::TooLong);
        }
        if self.number >= NUMBER_END {
            return Err(Why::Number);
        }
        let number_at = self.header_bytes.checked_sub(self.number_bytes()).filter(|at| *at > 0);
        let sampled =
            number_at.ok_or(Why::HeaderLength)?.saturating_add(NUMBER_BYTES_MAX + SAMPLE_BYTES);
        if self.packet.len() < sampled.max(self.header_bytes.saturating_add(TAG_BYTES)) {
            return Err(Why::TooShort);
        }
        Ok(())
    }
}

/// See [`PacketKernel::protect`](super::PacketKernel::protect).
pub(super) fn protect<R: Room>(room: R, packets: &mut [Protect<'_>]) -> Result<(), Fault> {
    for (job, packet) in packets.iter().enumerate() {
        packet.check().map_err(|why| Fault { job, why })?;
    }
    for packets in packets.chunks_mut(PACKETS_AT_ONCE) {
        protect_some(room, packets);
    }
    Ok(())
}

/// All payloads, then all masks.
fn protect_some<R: Room>(room: R, packets: &mut [Protect<'_>]) {
    for packet in &mut *packets {
        let number_bytes = packet.number_bytes();
        let Protect { key, number, header_bytes, packet, .. } = packet;
        let (header, rest) = packet.split_at_mut(*header_bytes);
        let (_, place) = header.split_at_mut(*header_bytes - number_bytes);
        let bytes = number.to_be_bytes();
        let (_, lowest) = bytes.split_at(8 - number_bytes);
        place.copy_from_slice(lowest);
        if let Some((data, tag)) = rest.split_last_chunk_mut() {
            let (key, nonce) = (key.key(), key.nonce(*number));
            room.seal(&mut [Seal { key, nonce, aad: header, data, tag }]);
        }
    }
    for Protect { header_key, header_bytes, packet, .. } in packets {
        let number_bytes = packet.first().map_or(1, |first| usize::from(first & 3) + 1);
        mask(room, header_key, packet, *header_bytes - number_bytes, Some(number_bytes));
    }
}

/// Masks a header or takes its mask off; the length of the packet number is taken from the header
/// once it is clear. Returns that length.
fn mask<R: Room>(
    room: R,
    key: &HeaderKey,
    packet: &mut [u8],
    number_at: usize,
    number_bytes: Option<usize>,
) -> Option<usize> {
    let (header, rest) = packet.split_at_mut_checked(number_at)?;
    let (number, sampled) = rest.split_first_chunk_mut::<NUMBER_BYTES_MAX>()?;
    let mut samples = [(key, *sampled.first_chunk()?)];
    room.masks(&mut samples);
    let [(_, [mask_first, mask_number @ ..])] = samples;
    let first = header.first_mut()?;
    *first ^= mask_first & if *first & LONG != 0 { 0x0f } else { 0x1f };
    let number_bytes = number_bytes.unwrap_or(usize::from(*first & 3) + 1);
    for (byte, mask) in number.iter_mut().zip(mask_number).take(number_bytes) {
        *byte ^= mask;
    }
    Some(number_bytes)
}

/// See [`PacketKernel::unprotect`](super::PacketKernel::unprotect).
pub(super) fn unprotect<R: Room>(room: R, packets: &mut [Unprotect<'_>]) {
    for packet in packets {
        packet.verdict = unprotect_one(room, packet);
    }
}

fn unprotect_one<R: Room>(room: R, packet: &mut Unprotect<'_>) -> Result<Opened, Refusal> {
    let Unprotect { keys, header_key, largest, number_at, packet, .. } = packet;
    let shortest = number_at.saturating_add(NUMBER_BYTES_MAX + SAMPLE_BYTES);
    if *number_at == 0 || !(shortest..=MESSAGE_BYTES_MAX).contains(&packet.len()) {
        return Err(Refusal::Length);
    }
    let number_bytes = mask(room, header_key, packet, *number_at, None).ok_or(Refusal::Length)?;
    let header_bytes = *number_at + number_bytes;
    let (header, rest) = packet.split_at_mut(header_bytes);
    let truncated =
        header.iter().skip(*number_at).fold(0, |number, byte| number << 8 | u64::from(*byte));
    let number = decode(*largest, truncated, number_bytes);
    let first = header.first().copied().unwrap_or_default();
    let found = keys.key(first, number).ok_or(Refusal::NoKey);
    let (data, tag) = rest.split_last_chunk_mut().ok_or(Refusal::Length)?;
    let Ok((key, used)) = found else {
        data.fill(0);
        return Err(Refusal::NoKey);
    };
    let (key, nonce, tag) = (key.key(), key.nonce(number), *tag);
    let mut message = [Open { key, nonce, aad: header, data, tag, authentic: false }];
    room.open(&mut message);
    let [Open { authentic, .. }] = message;
    if authentic { Ok(Opened { number, header_bytes, used }) } else { Err(Refusal::NotAuthentic) }
}

/// The whole packet number, which is nearest to the next one expected (RFC 9000 § A.3).
fn decode(largest: Option<u64>, truncated: u64, number_bytes: usize) -> u64 {
    let expected = largest.map_or(0, |largest| largest.saturating_add(1).min(NUMBER_END - 1));
    let window = 1_u64 << (8 * number_bytes);
    let candidate = (expected & !(window - 1)) | truncated;
    let half = window / 2;
    if candidate + half <= expected && candidate < NUMBER_END - window {
        candidate + window
    } else if candidate > expected + half && candidate >= window {
        candidate - window
    } else {
        candidate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9000 § A.3, and the ends of the range.
    #[test]
    fn packet_numbers_are_the_nearest_to_the_expected() {
        assert_eq!(decode(Some(0xa82f_30ea), 0x9b32, 2), 0xa82f_9b32);
        assert_eq!(decode(None, 0, 1), 0);
        assert_eq!(decode(Some(0xfe), 0xff, 1), 0xff);
        assert_eq!(decode(Some(0xff), 0, 1), 0x100);
        assert_eq!(decode(Some(0x17f), 0xff, 1), 0x17f + 0x80);
        assert_eq!(decode(Some(0x180), 0xff, 1), 0x1ff);
        assert_eq!(decode(Some(0x17e), 0, 1), 0x100);
        assert_eq!(decode(Some(0x180), 0, 1), 0x200);
        let last = NUMBER_END - 1;
        assert_eq!(decode(Some(last), 0xff, 1), last);
        assert_eq!(decode(Some(last), 0xfe, 1), last - 1);
        assert_eq!(decode(Some(u64::MAX), 0xff, 1), last);
    }
}
