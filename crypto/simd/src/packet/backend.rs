//! The operations that a backend must offer, and those that it may leave to others.

use super::aead::{Open, Seal};
use super::key::HeaderKey;
use super::quic::{Mask, Protect, Unprotect};
use super::sizes::SAMPLE_BYTES;
use crate::fault::Fault;
use crate::limits::PACKETS_AT_ONCE;
use std::slice;

/// A batch of so few packets is done without further ado.
const FEW: usize = 4;
/// All messages have been checked. Keys are of any form: a backend hands what it has no use for to the
/// [`Library`](super::library::Library).
pub(crate) trait Backend: Copy {
    /// Encrypts each message in place and writes its tag.
    fn seal(self, messages: &mut [Seal<'_>]);
    /// Decrypts each message in place, compares its tag and says whether it is right. A message whose
    /// tag is not right is wiped.
    fn open(self, messages: &mut [Open<'_>]);
    /// A mask for each sample: it comes back in the sample's place, 5 bytes of it count.
    fn masks(self, samples: &mut [(&HeaderKey, [u8; SAMPLE_BYTES])]);
    /// Writes the number of each packet, seals its payload and masks its header.
    fn protect(self, packets: &mut [Protect<'_>]) {
        for packet in &mut *packets {
            packet.put_number();
            self.seal(slice::from_mut(&mut packet.seal()));
        }
        mask(self, packets, |_| true);
    }
    /// Takes the protection off packets.
    fn unprotect(self, packets: &mut [Unprotect<'_>]) {
        headers_first(self, packets);
    }
    /// Takes the masks off the headers of packets.
    fn unmask(self, packets: &mut [Unprotect<'_>]) {
        unmask(self, packets);
    }
    /// Opens the payload of each packet, of which none is refused: its verdict says how, and
    /// afterwards whether it was authentic.
    fn open_packets(self, packets: &mut [Unprotect<'_>]) {
        for packet in packets {
            let mut open = packet.open();
            self.open(slice::from_mut(&mut open));
            let Open { authentic, .. } = open;
            packet.judge(authentic);
        }
    }
}

/// See [`PacketBackend::protect`](super::PacketBackend::protect). Never inlined, so that a
/// backend's packets do not wait for what others put on the stack.
#[inline(never)]
pub(super) fn protect<R: Backend>(backend: R, packets: &mut [Protect<'_>]) -> Result<(), Fault> {
    if let Some(job) = packets.iter().position(|packet| !packet.is_right()) {
        return Err(Fault { job, kind: packets[job].fault() });
    }
    for packets in packets.chunks_mut(PACKETS_AT_ONCE) {
        backend.protect(packets);
    }
    Ok(())
}

/// Masks the headers of those sealed packets that are chosen.
pub(crate) fn mask<R: Backend>(
    backend: R,
    packets: &mut [Protect<'_>],
    whose: impl Fn(&Protect<'_>) -> bool,
) {
    // Few packets should not wait for a place for many samples to be cleared.
    if packets.len() <= FEW {
        mask_some::<R, FEW>(backend, packets, whose);
    } else {
        for packets in packets.chunks_mut(PACKETS_AT_ONCE) {
            mask_some::<R, PACKETS_AT_ONCE>(backend, packets, &whose);
        }
    }
}

fn mask_some<R: Backend, const N: usize>(
    backend: R,
    packets: &mut [Protect<'_>],
    whose: impl Fn(&Protect<'_>) -> bool,
) {
    let [Protect { header_key, .. }, ..] = packets else { return };
    let mut samples = [(*header_key, [0; SAMPLE_BYTES]); N];
    let mut number = 0;
    for packet in packets.iter().filter(|packet| whose(packet)) {
        samples[number] = (packet.header_key, *packet.sample());
        number += 1;
    }
    let samples = &mut samples[..number];
    backend.masks(samples);
    for (packet, (_, mask)) in packets.iter_mut().filter(|packet| whose(packet)).zip(samples) {
        packet.mask(Mask::new(mask));
    }
}

/// See [`PacketBackend::unprotect`](super::PacketBackend::unprotect). Never inlined, so that a
/// backend's packets do not wait for what others put on the stack.
#[inline(never)]
pub(super) fn unprotect<R: Backend>(backend: R, packets: &mut [Unprotect<'_>]) {
    for packets in packets.chunks_mut(PACKETS_AT_ONCE) {
        backend.unprotect(packets);
    }
}

/// Takes the protection off packets: all headers, then the payloads of those that are not refused.
#[inline]
pub(crate) fn headers_first<R: Backend>(backend: R, packets: &mut [Unprotect<'_>]) {
    if packets.is_empty() {
        return;
    }
    backend.unmask(packets);
    for packets in packets.split_mut(|packet| packet.verdict.is_err()) {
        backend.open_packets(packets);
    }
}

/// Takes the masks off the headers of packets: all masks, then all numbers.
pub(crate) fn unmask<R: Backend>(backend: R, packets: &mut [Unprotect<'_>]) {
    // Few packets should not wait for a place for many samples to be cleared.
    if packets.len() <= FEW {
        unmask_some::<R, FEW>(backend, packets);
    } else {
        for packets in packets.chunks_mut(PACKETS_AT_ONCE) {
            unmask_some::<R, PACKETS_AT_ONCE>(backend, packets);
        }
    }
}

fn unmask_some<R: Backend, const N: usize>(backend: R, packets: &mut [Unprotect<'_>]) {
    let [Unprotect { header_key, .. }, ..] = packets else { return };
    let mut samples = [(*header_key, [0; SAMPLE_BYTES]); N];
    let samples = &mut samples[..packets.len()];
    for ((key, place), packet) in samples.iter_mut().zip(&*packets) {
        *key = packet.header_key;
        if let Some(sample) = packet.sample() {
            *place = *sample;
        }
    }
    backend.masks(samples);
    for (packet, (_, mask)) in packets.iter_mut().zip(samples) {
        packet.unmask(Mask::new(mask));
    }
}
