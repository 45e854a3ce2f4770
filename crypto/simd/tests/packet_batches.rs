//! Batches of anything, in every backend, against a library that does one message after another:
//! all lie in one piece of memory, and every byte of it is compared.

use aws_lc_rs::aead::quic::{self, HeaderProtectionKey};
use aws_lc_rs::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};
use keyway_simd::packet::{
    Aead, AeadKey, HeaderKey, Open, Opened, PacketBackend, PacketKey, Phases, Protect, Refusal,
    Seal, TAG_BYTES, Unprotect, Used,
};
use keyway_simd::{Fault, FaultKind};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::HashMap;
use std::ops::Range;

const AEADS: [Aead; 3] = [Aead::Aes128Gcm, Aead::Aes256Gcm, Aead::ChaCha20Poly1305];
/// The byte that lies between the messages.
const CANARY: u8 = 0xc5;

/// Bytes that differ from one case and place to the next; what they are does not matter.
fn filled(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed << 1 | 1;
    let next = |_| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()[0]
    };
    (0..bytes).map(next).collect()
}

fn seal_with_library(
    aead: Aead,
    key: &[u8],
    nonce: [u8; 12],
    aad: &[u8],
    data: &mut [u8],
) -> [u8; TAG_BYTES] {
    let algorithm = match aead {
        Aead::Aes128Gcm => &aead::AES_128_GCM,
        Aead::Aes256Gcm => &aead::AES_256_GCM,
        Aead::ChaCha20Poly1305 => &aead::CHACHA20_POLY1305,
    };
    let key = LessSafeKey::new(UnboundKey::new(algorithm, key).unwrap());
    let nonce = Nonce::assume_unique_for_key(nonce);
    let tag = key.seal_in_place_separate_tag(nonce, Aad::from(aad), data).unwrap();
    tag.as_ref().try_into().unwrap()
}

fn mask_with_library(aead: Aead, key: &[u8], sample: &[u8]) -> [u8; 5] {
    let algorithm = match aead {
        Aead::Aes128Gcm => &quic::AES_128,
        Aead::Aes256Gcm => &quic::AES_256,
        Aead::ChaCha20Poly1305 => &quic::CHACHA20,
    };
    HeaderProtectionKey::new(algorithm, key).unwrap().new_mask(sample).unwrap()
}

/// Takes these ranges, which are in order and apart, out of the memory.
fn cut<'a>(mut memory: &'a mut [u8], ranges: &[Range<usize>]) -> Vec<&'a mut [u8]> {
    let mut at = 0;
    let piece = |range: &Range<usize>| {
        memory.split_off_mut(..range.start - at).unwrap();
        at = range.end;
        memory.split_off_mut(..range.len()).unwrap()
    };
    ranges.iter().map(piece).collect()
}

/// Runs something on a copy of the memory that starts where a cache line does, and returns the
/// copy.
fn on_a_copy(memory: &[u8], run: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut copy = vec![0; memory.len() + 64];
    let start = copy.as_ptr().align_offset(64);
    let copy = &mut copy[start..start + memory.len()];
    copy.copy_from_slice(memory);
    run(copy);
    copy.to_vec()
}

/// Puts pieces into one memory, canaries between them; each starts so many bytes behind the start
/// of a cache line.
fn laid_out<'a>(
    pieces: impl IntoIterator<Item = (usize, &'a [u8])>,
) -> (Vec<u8>, Vec<Range<usize>>) {
    let (mut memory, mut ranges) = (Vec::new(), Vec::new());
    for (offset, piece) in pieces {
        let start = (memory.len() + 8).next_multiple_of(64) + offset;
        memory.resize(start, CANARY);
        memory.extend(piece);
        ranges.push(start..memory.len());
    }
    memory.resize(memory.len() + 64, CANARY);
    (memory, ranges)
}

/// A message for an AEAD.
#[derive(Debug, Clone)]
struct Message {
    aead: Aead,
    seed: u64,
    /// Where data and AAD start in a cache line.
    offsets: [usize; 2],
    data_bytes: usize,
    aad_bytes: usize,
}

impl Message {
    fn key(&self) -> Vec<u8> {
        filled(self.seed ^ 1, self.aead.key_bytes())
    }

    fn nonce(&self) -> [u8; 12] {
        filled(self.seed ^ 2, 12).try_into().unwrap()
    }
}

/// Where two memories differ first, and whose piece that is.
fn at<T: std::fmt::Debug>(a: &[u8], b: &[u8], ranges: &[Range<usize>], of: &[T]) -> String {
    let Some(at) = a.iter().zip(b).position(|(a, b)| a != b) else { return String::new() };
    let piece = ranges.iter().position(|range| at < range.end).unwrap_or(ranges.len() - 1);
    let owner = &of[piece / (ranges.len() / of.len())];
    format!(" at {at}, piece {:?} of {owner:?}", ranges[piece])
}

/// All of them at once in each backend, there and back, with keys that `maker` has made.
fn check_messages(messages: &[Message], maker: impl Fn(PacketBackend) -> PacketBackend) {
    let contents: Vec<[Vec<u8>; 3]> = messages
        .iter()
        .map(|m| {
            [filled(m.seed, m.data_bytes), filled(m.seed ^ 3, m.aad_bytes), vec![0; TAG_BYTES]]
        })
        .collect();
    let parts = messages.iter().zip(&contents).flat_map(|(m, [data, aad, tag])| {
        [(m.offsets[0], &**data), (m.offsets[1], &**aad), (0, &**tag)]
    });
    let (clear, ranges) = laid_out(parts);
    let mut sealed = clear.clone();
    for (message, parts) in messages.iter().zip(cut(&mut sealed, &ranges).chunks_mut(3)) {
        let [data, aad, tag] = parts else { panic!("three parts each") };
        let (key, nonce) = (message.key(), message.nonce());
        tag.copy_from_slice(&seal_with_library(message.aead, &key, nonce, aad, data));
    }
    for backend in PacketBackend::available() {
        let name = backend.name();
        let keys: Vec<AeadKey> =
            messages.iter().map(|m| maker(backend).aead_key(m.aead, &m.key()).unwrap()).collect();
        let found = on_a_copy(&clear, |memory| {
            let mut pieces = cut(memory, &ranges).into_iter();
            let mut seals = Vec::new();
            for (message, key) in messages.iter().zip(&keys) {
                let [data, aad, tag] = [(); 3].map(|()| pieces.next().unwrap());
                let (nonce, tag) = (message.nonce(), tag.try_into().unwrap());
                seals.push(Seal { key, nonce, aad, data, tag });
            }
            backend.seal(&mut seals).unwrap();
        });
        assert!(
            found == sealed,
            "{name} seals differently{}",
            at(&found, &sealed, &ranges, messages)
        );
        let found = on_a_copy(&sealed, |memory| {
            let mut pieces = cut(memory, &ranges).into_iter();
            let mut opens = Vec::new();
            for (message, key) in messages.iter().zip(&keys) {
                let [data, aad, tag] = [(); 3].map(|()| pieces.next().unwrap());
                let (nonce, tag) = (message.nonce(), (&*tag).try_into().unwrap());
                opens.push(Open { key, nonce, aad, data, tag, authentic: false });
            }
            backend.open(&mut opens).unwrap();
            for (open, message) in opens.iter().zip(messages) {
                assert!(open.authentic, "{name} refuses {message:?}");
            }
        });
        // The tags came with the messages.
        let mut opened = clear.clone();
        for tag in ranges.iter().skip(2).step_by(3) {
            opened[tag.clone()].copy_from_slice(&sealed[tag.clone()]);
        }
        assert!(
            found == opened,
            "{name} opens differently{}",
            at(&found, &opened, &ranges, messages)
        );
    }
}

fn itself(backend: PacketBackend) -> PacketBackend {
    backend
}

#[test]
fn messages_of_every_length_are_sealed_and_opened_as_the_library_does() {
    for aead in AEADS {
        let messages: Vec<_> = (0..=2000)
            .map(|n: usize| Message {
                aead,
                seed: n as u64,
                offsets: [n * 7 % 64, n * 5 % 64],
                data_bytes: n,
                aad_bytes: n * 11 % 101,
            })
            .collect();
        messages.chunks(1).for_each(|one| check_messages(one, itself));
        messages.chunks(67).for_each(|many| check_messages(many, itself));
    }
}

/// Where each of a counter's lower bytes goes round, at every place in the registers that are
/// worked on together.
#[test]
fn long_messages_are_sealed_and_opened_as_the_library_does() {
    for aead in AEADS {
        let lengths = (3500..=4400).step_by(9).chain(8180..=8210).chain([
            16_384,
            65_536 - 29,
            16 * 65_536 - 300,
            16 * 65_536 + 77,
            16 * 65_800,
        ]);
        let messages: Vec<_> = lengths
            .map(|bytes| Message {
                aead,
                seed: bytes as u64,
                offsets: [bytes * 7 % 64, bytes * 5 % 64],
                data_bytes: bytes,
                aad_bytes: bytes * 11 % 101,
            })
            .collect();
        messages.chunks(1).for_each(|one| check_messages(one, itself));
    }
}

#[test]
fn at_every_alignment_and_with_headers_of_every_length_too() {
    for aead in AEADS {
        let messages: Vec<_> = (0..64)
            .flat_map(|offset| (0..=100).map(move |aad_bytes| (offset, aad_bytes)))
            .map(|(offset, aad_bytes)| Message {
                aead,
                seed: (offset * 101 + aad_bytes) as u64,
                offsets: [offset, aad_bytes * 3 % 64],
                data_bytes: (offset * 17 + aad_bytes * 5) % 300,
                aad_bytes,
            })
            .collect();
        messages.chunks(1).step_by(7).for_each(|one| check_messages(one, itself));
        messages.chunks(61).for_each(|many| check_messages(many, itself));
    }
}

/// A whole packet, its payload in the clear.
#[derive(Debug, Clone)]
struct Packet {
    aead: Aead,
    /// Key, IV and bytes.
    seed: u64,
    /// The header key.
    header_seed: u64,
    offset: usize,
    long: bool,
    header_bytes: usize,
    number_bytes: u8,
    number: u64,
    payload_bytes: usize,
}

impl Packet {
    fn keys(&self, backend: PacketBackend) -> (PacketKey, HeaderKey) {
        let header_key = backend.header_key(self.aead, &self.header_key()).unwrap();
        let key = backend.aead_key(self.aead, &self.key()).unwrap();
        (PacketKey::new(key, self.iv()), header_key)
    }

    /// Those that are equal in this have the same keys.
    fn whose(&self) -> (Aead, u64, u64) {
        (self.aead, self.seed, self.header_seed)
    }

    fn key(&self) -> Vec<u8> {
        filled(self.seed ^ 4, self.aead.key_bytes())
    }

    fn header_key(&self) -> Vec<u8> {
        filled(self.header_seed ^ 5, self.aead.key_bytes())
    }

    fn iv(&self) -> [u8; 12] {
        filled(self.seed ^ 6, 12).try_into().unwrap()
    }

    fn number_at(&self) -> usize {
        self.header_bytes - usize::from(self.number_bytes)
    }

    /// The packet with its number, as `unprotect` leaves it but for the tag.
    fn clear(&self) -> Vec<u8> {
        let mut packet =
            filled(self.seed ^ self.number, self.header_bytes + self.payload_bytes + TAG_BYTES);
        // A phase of 0, since there is one key only.
        packet[0] =
            packet[0] & 0x38 | if self.long { 0xc0 } else { 0x40 } | (self.number_bytes - 1);
        let number = self.number.to_be_bytes();
        packet[self.number_at()..self.header_bytes]
            .copy_from_slice(&number[8 - usize::from(self.number_bytes)..]);
        packet
    }

    /// RFC 9001 § 5.3 and § 5.4, with the library.
    fn protected(&self) -> Vec<u8> {
        let mut packet = self.clear();
        let mut nonce = self.iv();
        for (byte, number) in nonce[4..].iter_mut().zip(self.number.to_be_bytes()) {
            *byte ^= number;
        }
        let (header, rest) = packet.split_at_mut(self.header_bytes);
        let (data, tag) = rest.split_at_mut(self.payload_bytes);
        tag.copy_from_slice(&seal_with_library(self.aead, &self.key(), nonce, header, data));
        let sample = self.number_at() + 4;
        let sample = &packet[sample..sample + 16];
        let [first, number @ ..] = mask_with_library(self.aead, &self.header_key(), sample);
        packet[0] ^= first & if self.long { 0x0f } else { 0x1f };
        for (byte, mask) in packet[self.number_at()..self.header_bytes].iter_mut().zip(number) {
            *byte ^= mask;
        }
        packet
    }

    fn opened(&self) -> Opened {
        Opened { number: self.number, header_bytes: self.header_bytes, used: Used::Current }
    }
}

/// All of them at once in each backend, there and back, with keys of any backend.
fn check_packets(packets: &[Packet], maker: impl Fn(PacketBackend) -> PacketBackend) {
    let contents: Vec<_> = packets.iter().map(Packet::clear).collect();
    let pieces = packets.iter().zip(&contents).map(|(packet, bytes)| (packet.offset, &**bytes));
    let (clear, ranges) = laid_out(pieces);
    let mut protected = clear.clone();
    for (piece, packet) in cut(&mut protected, &ranges).into_iter().zip(packets) {
        piece.copy_from_slice(&packet.protected());
    }
    for backend in PacketBackend::available() {
        let name = backend.name();
        let keys: HashMap<_, _> =
            packets.iter().map(|packet| (packet.whose(), packet.keys(maker(backend)))).collect();
        let keys: Vec<_> = packets.iter().map(|packet| &keys[&packet.whose()]).collect();
        let mut start = clear.clone();
        for (piece, packet) in cut(&mut start, &ranges).into_iter().zip(packets) {
            // The number is written by the backend.
            piece[packet.number_at()..packet.header_bytes].fill(0xee);
        }
        let found = on_a_copy(&start, |memory| {
            let mut protects: Vec<_> = cut(memory, &ranges)
                .into_iter()
                .zip(packets)
                .zip(&keys)
                .map(|((packet, of), (key, header_key))| {
                    let (number, header_bytes) = (of.number, of.header_bytes);
                    Protect { key, header_key, number, header_bytes, packet }
                })
                .collect();
            backend.protect(&mut protects).unwrap();
        });
        assert!(
            found == protected,
            "{name} protects differently{}",
            at(&found, &protected, &ranges, packets)
        );
        let mut opened = clear.clone();
        for range in &ranges {
            let tag = range.end - TAG_BYTES..range.end;
            opened[tag.clone()].copy_from_slice(&protected[tag]);
        }
        let found = on_a_copy(&protected, |memory| {
            let mut unprotects: Vec<_> = cut(memory, &ranges)
                .into_iter()
                .zip(packets)
                .zip(&keys)
                .map(|((packet, of), (key, header_key))| {
                    let largest = of.number.checked_sub(1);
                    Unprotect::new(Phases::only(key), header_key, largest, of.number_at(), packet)
                })
                .collect();
            backend.unprotect(&mut unprotects);
            for (unprotect, packet) in unprotects.iter().zip(packets) {
                assert_eq!(unprotect.verdict, Ok(packet.opened()), "{name}: {packet:?}");
            }
        });
        assert!(
            found == opened,
            "{name} unprotects differently{}",
            at(&found, &opened, &ranges, packets)
        );
    }
}

fn aead() -> impl Strategy<Value = Aead> {
    (0..AEADS.len()).prop_map(|n| AEADS[n])
}

fn message() -> impl Strategy<Value = Message> {
    let sizes = (0..64_usize, 0..64_usize, 0..=1500_usize, 0..=100_usize);
    (aead(), any::<u64>(), sizes).prop_map(|(aead, seed, (at, aad_at, data_bytes, aad_bytes))| {
        Message { aead, seed, offsets: [at, aad_at], data_bytes, aad_bytes }
    })
}

/// Keys that few or many packets share; numbers near 0, near 2⁶² and anywhere.
fn packet() -> impl Strategy<Value = Packet> {
    let kind = (aead(), 0..6_u64, 0..64_usize, any::<bool>());
    let header = (1..=4_u8, 1..=60_usize, 0..3_u8, 0..1_u64 << 62);
    (kind, header, 0..=1500_usize, any::<bool>()).prop_map(
        |(kind, header, payload_bytes, small)| {
            let (aead, seed, offset, long) = kind;
            let (number_bytes, before, range, number) = header;
            let number = [number % 300, (1 << 62) - 1 - number % 300, number][usize::from(range)];
            let payload_bytes = if small { payload_bytes % 70 } else { payload_bytes };
            let payload_bytes = payload_bytes.max(4 - usize::from(number_bytes));
            let header_bytes = before + usize::from(number_bytes);
            Packet {
                aead,
                seed,
                header_seed: seed % 4,
                offset,
                long,
                header_bytes,
                number_bytes,
                number,
                payload_bytes,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn batches_of_messages_are_sealed_and_opened_as_the_library_does(
        messages in vec(message(), 1..=70),
    ) {
        check_messages(&messages, itself);
    }

    #[test]
    fn batches_of_packets_are_protected_as_with_the_library(packets in vec(packet(), 1..=70)) {
        check_packets(&packets, itself);
    }

    #[test]
    fn keys_are_for_every_backend(
        messages in vec(message(), 1..=20), packets in vec(packet(), 1..=20),
    ) {
        for maker in PacketBackend::available() {
            check_messages(&messages, |_| maker);
            check_packets(&packets, |_| maker);
        }
    }
}

#[test]
fn packets_of_one_connection_or_of_many_are_protected_as_with_the_library() {
    for aead in AEADS {
        // To all powers of H that there are, and beyond.
        let sizes =
            [3, 4, 16, 17, 64, 255, 256, 511, 512, 600, 1200, 1280, 1450, 1530, 1536, 1537, 3090];
        for payload_bytes in sizes {
            for (count, connections) in
                [(1, 1), (4, 1), (4, 4), (16, 1), (16, 16), (32, 1), (64, 1), (64, 64)]
            {
                let packets: Vec<_> = (0..count)
                    .map(|number| Packet {
                        aead,
                        seed: number % connections,
                        header_seed: number % connections,
                        offset: 0,
                        long: false,
                        header_bytes: 11,
                        number_bytes: 2,
                        number,
                        payload_bytes,
                    })
                    .collect();
                check_packets(&packets, itself);
            }
        }
    }
}

/// Who does several at a time has to see that one is not like the others, whichever it is.
#[test]
fn one_packet_may_differ_from_the_others() {
    let differences: [fn(&mut Packet); 8] = [
        |packet| packet.seed = 1,
        |packet| packet.header_seed = 1,
        |packet| packet.payload_bytes = 15,
        |packet| packet.payload_bytes = 17,
        |packet| packet.payload_bytes = 300,
        |packet| packet.long = true,
        |packet| packet.number_bytes = 4,
        |packet| packet.header_bytes = 30,
    ];
    for aead in AEADS {
        for count in [4, 16, 20] {
            let uniform = |number| Packet {
                aead,
                seed: 0,
                header_seed: 0,
                offset: 0,
                long: false,
                header_bytes: 11,
                number_bytes: 2,
                number,
                payload_bytes: 16,
            };
            let uniform: Vec<_> = (0..count).map(uniform).collect();
            for (odd, difference) in
                (0..uniform.len()).flat_map(|odd| differences.iter().map(move |d| (odd, d)))
            {
                let mut packets = uniform.clone();
                difference(&mut packets[odd]);
                check_packets(&packets, itself);
            }
        }
    }
}

/// RFC 9000 § A.3: the nearest number that ends so would lie beyond the last there is.
#[test]
fn no_number_lies_beyond_the_last() {
    let (last, number_at, header_bytes) = ((1 << 62) - 1, 9, 10);
    for (backend, aead) in
        PacketBackend::available().flat_map(|backend| AEADS.map(|aead| (backend, aead)))
    {
        let bytes = vec![7; aead.key_bytes()];
        let key = PacketKey::new(backend.aead_key(aead, &bytes).unwrap(), [7; 12]);
        let header_key = &backend.header_key(aead, &bytes).unwrap();
        // One byte of each: 0, 1, 2 and so on.
        let numbers: Vec<u64> = (last - 255..).take(16).collect();
        let mut packets = vec![[0x40_u8; 60]; numbers.len()];
        let pairs = packets.iter_mut().zip(&numbers);
        let mut protects: Vec<_> = pairs
            .map(|(packet, number)| Protect {
                key: &key,
                header_key,
                number: *number,
                header_bytes,
                packet,
            })
            .collect();
        backend.protect(&mut protects).unwrap();
        let phases = Phases::only(&key);
        let packets = packets.iter_mut();
        let mut unprotects: Vec<_> = packets
            .map(|packet| Unprotect::new(phases, header_key, Some(last - 1), number_at, packet))
            .collect();
        backend.unprotect(&mut unprotects);
        for (packet, number) in unprotects.iter().zip(numbers) {
            let opened = Opened { number, header_bytes, used: Used::Current };
            assert_eq!(packet.verdict, Ok(opened), "{}", backend.name());
        }
    }
}

/// Three packets of one key; what happens to the one in the middle is not the others' business.
#[test]
fn a_packet_with_any_byte_changed_is_refused_and_wiped() {
    for backend in PacketBackend::available() {
        for (n, aead) in AEADS.into_iter().enumerate() {
            for payload_bytes in [3, 16, 50, 300] {
                let packet = |number| Packet {
                    aead,
                    seed: n as u64,
                    header_seed: n as u64,
                    offset: 0,
                    long: number % 2 == payload_bytes as u64 % 2,
                    header_bytes: 11,
                    number_bytes: 2,
                    number,
                    payload_bytes,
                };
                let packets = [0, 1, 2].map(packet);
                let (key, header_key) = packets[1].keys(backend);
                let clear = packets.each_ref().map(Packet::clear);
                let protected = packets.each_ref().map(Packet::protected);
                for changed in 0..protected[1].len() {
                    let mut found = protected.clone();
                    found[1][changed] ^= 1 << (changed % 8);
                    let before = found[1].clone();
                    let verdicts = {
                        let mut unprotects = found.each_mut().map(|packet| {
                            Unprotect::new(Phases::only(&key), &header_key, Some(1), 9, packet)
                        });
                        backend.unprotect(&mut unprotects);
                        unprotects.map(|unprotect| unprotect.verdict)
                    };
                    let name = format!("{}, {aead:?}, {payload_bytes} bytes", backend.name());
                    for at in [0, 2] {
                        let end = found[at].len() - TAG_BYTES;
                        assert_eq!(verdicts[at], Ok(packets[at].opened()), "{name}, {changed}");
                        assert_eq!(found[at][..end], clear[at][..end], "{name}, {changed}");
                    }
                    // Where the number's length or the phase is another, so is what is refused.
                    let refusals = [Err(Refusal::NotAuthentic), Err(Refusal::NoKey)];
                    assert!(
                        refusals.contains(&verdicts[1]),
                        "{name}, {changed}: {:?}",
                        verdicts[1]
                    );
                    let payload = 13.min(found[1].len() - TAG_BYTES)..found[1].len() - TAG_BYTES;
                    assert!(found[1][payload].iter().all(|b| *b == 0), "{name}, {changed} leaks");
                    assert_eq!(found[1][1..9], before[1..9], "{name}, {changed}");
                }
            }
        }
    }
}

#[test]
fn a_message_with_anything_changed_is_refused_and_wiped() {
    for backend in PacketBackend::available() {
        for aead in AEADS {
            let key = filled(1, aead.key_bytes());
            for bytes in [1, 16, 33, 64, 65, 257] {
                let (aad, nonce, plain) = (filled(2, 30), [7; 12], filled(3, bytes));
                let mut sealed = plain.clone();
                let tag = seal_with_library(aead, &key, nonce, &aad, &mut sealed);
                let key = backend.aead_key(aead, &key).unwrap();
                for changed in 0..bytes + 30 + 12 + TAG_BYTES {
                    let (mut data, mut nonce, mut tag) = (sealed.clone(), nonce, tag);
                    let (mut aad, mut neighbour) = (aad.clone(), sealed.clone());
                    let good = (aad.clone(), nonce, tag);
                    let all = data.iter_mut().chain(&mut aad).chain(&mut nonce).chain(&mut tag);
                    *all.into_iter().nth(changed).unwrap() ^= 0x80 >> (changed % 8);
                    let (good_aad, good_nonce, good_tag) = good;
                    let mut opens = [
                        Open {
                            key: &key,
                            nonce: good_nonce,
                            aad: &good_aad,
                            data: &mut neighbour,
                            tag: good_tag,
                            authentic: false,
                        },
                        Open { key: &key, nonce, aad: &aad, data: &mut data, tag, authentic: true },
                    ];
                    backend.open(&mut opens).unwrap();
                    let verdicts = opens.map(|open| open.authentic);
                    let name = format!("{} {aead:?} {bytes} {changed}", backend.name());
                    assert_eq!(verdicts, [true, false], "{name}");
                    assert_eq!(neighbour, plain, "{name}");
                    assert_eq!(data, vec![0; bytes], "{name}");
                }
            }
        }
    }
}

/// The faulty packet is the last: those before it are not touched either.
#[test]
fn a_batch_with_a_faulty_packet_is_not_touched() {
    for backend in PacketBackend::available() {
        let key = PacketKey::new(backend.aead_key(Aead::Aes128Gcm, &[1; 16]).unwrap(), [2; 12]);
        let header_key = backend.header_key(Aead::Aes128Gcm, &[3; 16]).unwrap();
        // The first byte, the number, lengths of header and packet.
        let cases = [
            (0x41, 1 << 62, 11, 60, FaultKind::Number),
            (0x41, u64::MAX, 11, 60, FaultKind::Number),
            (0x40, 1, 0, 60, FaultKind::HeaderLength),
            (0x40, 1, 1, 60, FaultKind::HeaderLength),
            (0x43, 1, 4, 60, FaultKind::HeaderLength),
            (0x43, 1, usize::MAX, 60, FaultKind::TooShort),
            (0x41, 1, 61, 60, FaultKind::TooShort),
            (0x41, 1, 60, 60, FaultKind::TooShort),
            (0x41, 1, 45, 60, FaultKind::TooShort),
            // Number and payload of 3 bytes together.
            (0x41, 1, 11, 28, FaultKind::TooShort),
            (0x40, 1, 2, 20, FaultKind::TooShort),
            (0x40, 1, 2, 0, FaultKind::TooShort),
        ];
        for (first, number, header_bytes, bytes, kind) in cases {
            let mut good = [0x41; 60];
            let mut bad = vec![0x41; bytes];
            bad.iter_mut().take(1).for_each(|byte| *byte = first);
            let before = (good, bad.clone());
            let protect = |number, header_bytes, packet| Protect {
                key: &key,
                header_key: &header_key,
                number,
                header_bytes,
                packet,
            };
            let mut batch =
                [protect(1, 11, &mut good[..]), protect(number, header_bytes, &mut bad[..])];
            let name = format!("{} {first:x} {number} {header_bytes} {bytes}", backend.name());
            assert_eq!(backend.protect(&mut batch), Err(Fault { job: 1, kind }), "{name}");
            assert_eq!((good, bad), before, "{name}");
        }
        let mut shortest = [0x41; 29];
        let packet = &mut shortest;
        let (key, header_key) = (&key, &header_key);
        let mut batch = [Protect { key, header_key, number: 1, header_bytes: 11, packet }];
        assert_eq!(backend.protect(&mut batch), Ok(()));
    }
}

#[test]
fn a_packet_too_short_to_have_been_protected_is_refused_as_it_is() {
    for backend in PacketBackend::available() {
        let key = PacketKey::new(backend.aead_key(Aead::Aes128Gcm, &[1; 16]).unwrap(), [2; 12]);
        let header_key = backend.header_key(Aead::Aes128Gcm, &[3; 16]).unwrap();
        for (number_at, bytes) in [(0, 60), (1, 20), (9, 28), (9, 0), (60, 60), (usize::MAX, 60)] {
            let mut packet = vec![0x41; bytes];
            let phases = Phases::only(&key);
            let mut batch = [Unprotect::new(phases, &header_key, None, number_at, &mut packet)];
            backend.unprotect(&mut batch);
            let [Unprotect { verdict, .. }] = batch;
            assert_eq!(verdict, Err(Refusal::Length), "{} {number_at} {bytes}", backend.name());
            assert_eq!(packet, vec![0x41; bytes]);
        }
    }
}

#[test]
fn keys_of_another_length_and_backends_of_another_name_there_are_none() {
    assert_eq!(PacketBackend::named("sse9"), None);
    for backend in PacketBackend::available() {
        assert_eq!(PacketBackend::named(backend.name()), Some(backend));
        for aead in AEADS {
            for given in (0..=48).filter(|given| *given != aead.key_bytes()) {
                let error = backend.aead_key(aead, &vec![1; given]).unwrap_err();
                assert_eq!((error.expected, error.given), (aead.key_bytes(), given));
                assert_eq!(backend.header_key(aead, &vec![1; given]).unwrap_err(), error);
            }
        }
        assert_eq!(backend.seal(&mut []), Ok(()));
        assert_eq!(backend.open(&mut []), Ok(()));
        assert_eq!(backend.protect(&mut []), Ok(()));
        backend.unprotect(&mut []);
    }
    // The last is chosen; on ARM, where none has been measured yet, the first.
    let chosen = match cfg!(target_arch = "aarch64") {
        true => PacketBackend::available().next(),
        false => PacketBackend::available().last(),
    };
    assert_eq!(chosen, Some(PacketBackend::detect()));
}
