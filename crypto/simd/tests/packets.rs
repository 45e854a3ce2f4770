//! Every packet backend against aws-lc: every length, additional data of every length up to 64
//! bytes, keys mixed and the same, batches of any size; whole packets there and back.

use aws_lc_rs::aead::{self, LessSafeKey, UnboundKey};
use keyway_simd::packet::{
    Aead, AeadKey, HeaderKey, Open, Opened, PacketBackend, PacketKey, Phases, Protect, Refusal,
    Seal, TAG_BYTES, Unprotect, Used,
};

const AEADS: [Aead; 3] = [Aead::Aes128Gcm, Aead::Aes256Gcm, Aead::ChaCha20Poly1305];

/// Numbers that look random and are the same each time (xorshift64*).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() >> 33) as usize % end
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| (self.next() >> 56) as u8).collect()
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        self.bytes(N).try_into().unwrap()
    }
}

struct Key {
    ours: AeadKey,
    theirs: LessSafeKey,
}

impl Key {
    fn new(backend: PacketBackend, aead: Aead, numbers: &mut Numbers) -> Self {
        let algorithm = match aead {
            Aead::Aes128Gcm => &aead::AES_128_GCM,
            Aead::Aes256Gcm => &aead::AES_256_GCM,
            Aead::ChaCha20Poly1305 => &aead::CHACHA20_POLY1305,
        };
        let key = numbers.bytes(aead.key_bytes());
        let theirs = LessSafeKey::new(UnboundKey::new(algorithm, &key).unwrap());
        Self { ours: backend.aead_key(aead, &key).unwrap(), theirs }
    }
}

struct Message<'k> {
    key: &'k Key,
    nonce: [u8; 12],
    aad: Vec<u8>,
    /// The message lies somewhere in here.
    buffer: Vec<u8>,
    offset: usize,
    plain: Vec<u8>,
    tag: [u8; 16],
}

impl<'k> Message<'k> {
    fn new(key: &'k Key, length: usize, numbers: &mut Numbers) -> Self {
        let plain = numbers.bytes(length);
        let offset = numbers.below(64);
        let mut buffer = vec![0xa5; offset + length + 64];
        buffer[offset..offset + length].copy_from_slice(&plain);
        let aad = numbers.below(65);
        let aad = numbers.bytes(aad);
        Self { key, nonce: numbers.array(), aad, buffer, offset, plain, tag: [0; 16] }
    }

    fn data(&mut self) -> &mut [u8] {
        &mut self.buffer[self.offset..][..self.plain.len()]
    }

    fn check_sealed(&mut self) {
        let mut theirs = self.plain.clone();
        let nonce = aead::Nonce::assume_unique_for_key(self.nonce);
        let aad = aead::Aad::from(&self.aad);
        let key = &self.key.theirs;
        let tag = key.seal_in_place_separate_tag(nonce, aad, &mut theirs).unwrap();
        assert!(self.data() == theirs, "{} bytes", theirs.len());
        assert_eq!(self.tag, tag.as_ref(), "{} bytes, {} of aad", self.plain.len(), self.aad.len());
        self.check_around();
    }

    fn check_around(&self) {
        let (before, rest) = self.buffer.split_at(self.offset);
        let around = before.iter().chain(&rest[self.plain.len()..]);
        assert!(around.into_iter().all(|byte| *byte == 0xa5), "something else was touched");
    }
}

/// Seals and opens a batch; of some messages the tag, the data or the additional data is changed.
fn there_and_back(backend: PacketBackend, messages: &mut [Message<'_>], numbers: &mut Numbers) {
    let mut seals: Vec<_> = messages
        .iter_mut()
        .map(|message| Seal {
            key: &message.key.ours,
            nonce: message.nonce,
            aad: &message.aad,
            data: &mut message.buffer[message.offset..][..message.plain.len()],
            tag: &mut message.tag,
        })
        .collect();
    backend.seal(&mut seals).unwrap();
    messages.iter_mut().for_each(Message::check_sealed);

    let good: Vec<bool> = messages
        .iter_mut()
        .map(|message| {
            let (bit, length) = (1 << numbers.below(8), message.plain.len());
            match numbers.below(8) {
                0 => message.tag[numbers.below(16)] ^= bit,
                1 if length > 0 => message.data()[numbers.below(length)] ^= bit,
                2 if !message.aad.is_empty() => {
                    let at = numbers.below(message.aad.len());
                    message.aad[at] ^= bit;
                }
                _ => return true,
            }
            false
        })
        .collect();
    let mut opens: Vec<_> = messages
        .iter_mut()
        .map(|message| Open {
            key: &message.key.ours,
            nonce: message.nonce,
            aad: &message.aad,
            data: &mut message.buffer[message.offset..][..message.plain.len()],
            tag: message.tag,
            authentic: numbers.below(2) == 0,
        })
        .collect();
    backend.open(&mut opens).unwrap();
    let verdicts: Vec<bool> = opens.iter().map(|open| open.authentic).collect();
    assert_eq!(verdicts, good);
    for (message, good) in messages.iter_mut().zip(good) {
        if good {
            let plain = message.plain.clone();
            assert_eq!(message.data(), plain);
        } else {
            assert!(message.data().iter().all(|byte| *byte == 0), "wiped");
        }
        message.check_around();
    }
}

#[test]
fn messages_of_every_length_are_sealed_as_by_a_library() {
    for backend in PacketBackend::available() {
        let mut numbers = Numbers(1);
        for aead in [Aead::Aes128Gcm, Aead::Aes256Gcm] {
            let key = Key::new(backend, aead, &mut numbers);
            // Alone, and by as many as go together.
            for length in 0..=2000 {
                let mut messages: Vec<_> =
                    (0..5).map(|_| Message::new(&key, length, &mut numbers)).collect();
                there_and_back(backend, &mut messages[..1], &mut numbers);
                let mut messages: Vec<_> =
                    (0..5).map(|_| Message::new(&key, length, &mut numbers)).collect();
                there_and_back(backend, &mut messages, &mut numbers);
            }
            // Past the places where a counter of 8 and of 16 bits ends.
            let ends = [4031, 4032, 4033, 8191, 16384, 65537, 1 << 20 | 13, 1 << 21];
            // Longer ones, and bulk, all powers of the key in use, and each place among them the
            // last.
            for length in ends.into_iter().chain((2000..6176).step_by(15)) {
                let mut messages = [Message::new(&key, length, &mut numbers)];
                there_and_back(backend, &mut messages, &mut numbers);
            }
        }
    }
}

#[test]
fn batches_are_sealed_as_by_a_library_whatever_is_in_them() {
    for backend in PacketBackend::available() {
        let mut numbers = Numbers(2);
        // Keys of this backend and of all others.
        let keys: Vec<_> = PacketBackend::available()
            .flat_map(|backend| AEADS.map(|aead| (backend, aead)))
            .flat_map(|key| [key, key])
            .map(|(backend, aead)| Key::new(backend, aead, &mut numbers))
            .collect();
        for number in 0..=70 {
            for mixed in 0..4 {
                let key = numbers.below(keys.len());
                let length = numbers.below(2000);
                let mut messages: Vec<_> = (0..number)
                    .map(|_| {
                        let key = if mixed & 1 == 0 { key } else { numbers.below(keys.len()) };
                        let length = if mixed & 2 == 0 {
                            length.saturating_sub(numbers.below(4))
                        } else {
                            numbers.below(2000)
                        };
                        Message::new(&keys[key], length, &mut numbers)
                    })
                    .collect();
                there_and_back(backend, &mut messages, &mut numbers);
            }
        }
    }
}

/// Packets of random shape, protected in one batch, are what the library makes of them, and come
/// back.
#[test]
fn packets_are_protected_as_by_a_library_and_come_back() {
    let reference = PacketBackend::named("portable").unwrap();
    for backend in PacketBackend::available() {
        let mut numbers = Numbers(3);
        for round in 0..400 {
            let aead = AEADS[numbers.below(3)];
            let secrets: Vec<_> = (0..3)
                .map(|_| {
                    let mut bytes = || numbers.bytes(aead.key_bytes());
                    (bytes(), bytes(), numbers.array())
                })
                .collect();
            let keys = |backend: PacketBackend| -> Vec<(PacketKey, HeaderKey)> {
                let one = |(key, header, iv): &(Vec<u8>, Vec<u8>, [u8; 12])| {
                    let key = PacketKey::new(backend.aead_key(aead, key).unwrap(), *iv);
                    (key, backend.header_key(aead, header).unwrap())
                };
                secrets.iter().map(one).collect()
            };
            let (ours, theirs) = (keys(backend), keys(reference));
            let uniform = numbers.below(2) == 0;
            let (which, payload) = (numbers.below(3), numbers.below(1500));
            let mut packets: Vec<_> = (0..1 + numbers.below(70))
                .map(|_| {
                    let payload = if uniform { payload } else { numbers.below(1500) };
                    let which = if uniform { which } else { numbers.below(3) };
                    let header_bytes = 5 + numbers.below(if uniform { 8 } else { 60 });
                    let mut packet = numbers.bytes(header_bytes + payload.max(4) + TAG_BYTES);
                    if packet[0] & 0x80 == 0 {
                        packet[0] &= !4;
                    }
                    (which, numbers.next() >> 40, header_bytes, packet)
                })
                .collect();
            let plain = packets.clone();
            let mut expected = packets.clone();
            let protect = |backend: PacketBackend,
                           keys: &[(PacketKey, HeaderKey)],
                           packets: &mut [(usize, u64, usize, Vec<u8>)]| {
                let mut batch: Vec<_> = packets
                    .iter_mut()
                    .map(|(which, number, header_bytes, packet)| Protect {
                        key: &keys[*which].0,
                        header_key: &keys[*which].1,
                        number: *number,
                        header_bytes: *header_bytes,
                        packet,
                    })
                    .collect();
                backend.protect(&mut batch).unwrap();
            };
            protect(backend, &ours, &mut packets);
            for packet in expected.chunks_mut(1) {
                protect(reference, &theirs, packet);
            }
            assert!(packets == expected, "{} round {round}", backend.name());
            let broken: Vec<bool> = packets
                .iter_mut()
                .map(|(_, _, header_bytes, packet)| {
                    let broken = numbers.below(8) == 0;
                    if broken {
                        let at = *header_bytes + numbers.below(packet.len() - *header_bytes);
                        packet[at] ^= 0x10;
                    }
                    broken
                })
                .collect();
            let mut batch: Vec<_> = packets
                .iter_mut()
                .zip(&plain)
                .map(|((which, number, header_bytes, packet), (.., plain))| Unprotect {
                    keys: Phases::only(&ours[*which].0),
                    header_key: &ours[*which].1,
                    largest: number.checked_sub(1),
                    number_at: *header_bytes - usize::from(plain[0] & 3) - 1,
                    packet,
                    verdict: Err(Refusal::Waiting),
                })
                .collect();
            backend.unprotect(&mut batch);
            for ((unprotect, broken), (_, number, header_bytes, plain)) in
                batch.iter().zip(broken).zip(&plain)
            {
                if broken {
                    assert!(unprotect.verdict.is_err());
                } else {
                    let opened = Opened {
                        number: *number,
                        header_bytes: *header_bytes,
                        used: Used::Current,
                    };
                    assert_eq!(unprotect.verdict, Ok(opened));
                    let end = plain.len() - TAG_BYTES;
                    assert_eq!(unprotect.packet[*header_bytes..end], plain[*header_bytes..end]);
                    assert_eq!(unprotect.packet[0], plain[0]);
                }
            }
        }
    }
}

/// Packets of one connection, in one batch: whatever came before, the number is found that is
/// nearest to the one expected, and the key that its phase stands for.
#[test]
fn the_numbers_and_keys_of_batches_are_found() {
    const NUMBER_END: u64 = 1 << 62;
    let mut numbers = Numbers(4);
    for backend in PacketBackend::available() {
        let key = |byte: u8| {
            let key = backend.aead_key(Aead::Aes128Gcm, &[byte; 16]).unwrap();
            PacketKey::new(key, [byte; 12])
        };
        let (previous, current, next) = (key(1), key(2), key(3));
        let header_key = backend.header_key(Aead::Aes128Gcm, &[4; 16]).unwrap();
        for largest in
            [None, Some(0), Some(200), Some(1 << 31), Some(NUMBER_END - 300), Some(NUMBER_END - 2)]
        {
            // Numbers begin so far from the packet's start; all packets are of one phase, or of
            // both.
            for (places, phases) in [(12, 1), (12, 2), (40, 1), (40, 2)] {
                let since = largest.map_or(0, |largest| largest + 1);
                let mut packets = Vec::new();
                for number_bytes in 1..=4 {
                    let half = 1 << (8 * number_bytes - 1);
                    let lowest = since.saturating_sub(half - 1);
                    for number in [lowest, since.saturating_sub(1), since, since + 1, since + half]
                    {
                        let header_bytes = 1 + numbers.below(places) + number_bytes;
                        let mut packet = numbers.bytes(header_bytes + 20 + TAG_BYTES);
                        let (phase, long) = (numbers.below(phases) == 1, numbers.below(4) == 0);
                        packet[0] =
                            u8::from(long) << 7 | u8::from(phase) << 2 | (number_bytes - 1) as u8;
                        let (key, used) = match (phase && !long, number < since) {
                            (false, _) => (&current, Used::Current),
                            (true, true) => (&previous, Used::Previous),
                            (true, false) => (&next, Used::Next),
                        };
                        let at = header_bytes - number_bytes;
                        packet[at..header_bytes]
                            .copy_from_slice(&number.to_be_bytes()[8 - number_bytes..]);
                        if number < NUMBER_END {
                            packets.push((key, Opened { number, header_bytes, used }, at, packet));
                        }
                    }
                }
                let plain: Vec<_> = packets.iter().map(|(.., packet)| packet.clone()).collect();
                let mut batch: Vec<_> = packets
                    .iter_mut()
                    .map(|(key, Opened { number, header_bytes, .. }, _, packet)| Protect {
                        key,
                        header_key: &header_key,
                        number: *number,
                        header_bytes: *header_bytes,
                        packet,
                    })
                    .collect();
                backend.protect(&mut batch).unwrap();
                let (previous, next) = (Some(&previous), Some(&next));
                let keys = Phases { current: &current, phase: false, since, previous, next };
                let mut batch: Vec<_> = packets
                    .iter_mut()
                    .map(|(.., at, packet)| Unprotect::new(keys, &header_key, largest, *at, packet))
                    .collect();
                backend.unprotect(&mut batch);
                let verdicts: Vec<_> = batch.iter().map(|unprotect| unprotect.verdict).collect();
                for ((verdict, plain), (_, opened, _, packet)) in
                    verdicts.into_iter().zip(plain).zip(&packets)
                {
                    assert_eq!(verdict, Ok(*opened), "{} {largest:?}", backend.name());
                    let end = plain.len() - TAG_BYTES;
                    assert_eq!(packet[..end], plain[..end], "{} {largest:?}", backend.name());
                }
            }
        }
    }
}
