//! What [`Opcode`](keyway_ring::descriptor::Opcode) leaves open: how the values of the engine lie in a
//! descriptor's parameters, in a completion's result and in a message. For both ends of a ring.
//!
//! Numbers are in the processor's own order, since both ends run on it. What is not named is zero, and
//! is not looked at. Each `put_` has its `read_`, which answers `None` for what nobody has put.

use keyway_engine::{
    Algorithm, Cost, Effort, Iv, Key, NONCE_BYTES, Opened, PacketKey, PacketKeys, Part, Phase, Step,
};
use keyway_ring::control;
use keyway_ring::descriptor::{PARAMETER_BYTES, PART_BYTES};
use std::ops::Range;

/// A descriptor's parameters, or a completion's result.
pub type Bytes = [u8; PARAMETER_BYTES];

/// A nonce, a sample or an initialisation vector, from the first byte.
pub fn put_front(front: &[u8]) -> Bytes {
    let mut bytes = [0; PARAMETER_BYTES];
    for (byte, value) in bytes.iter_mut().zip(front) {
        *byte = *value;
    }
    bytes
}

/// The first `N` of them.
pub fn read_front<const N: usize>(bytes: &Bytes) -> [u8; N] {
    const { assert!(N <= PARAMETER_BYTES) };
    std::array::from_fn(|at| bytes.get(at).copied().unwrap_or(0))
}

/// A number: the packet's, or a message's length. In bytes 0 to 7.
pub fn put_number(number: u64) -> Bytes {
    put_front(&number.to_ne_bytes())
}

/// See [`put_number`].
pub fn read_number(bytes: &Bytes) -> u64 {
    u64::from_ne_bytes(read_front(bytes))
}

/// The highest number so far: as [`put_number`], and 1 in byte 8 if there is one.
pub fn put_largest(largest: Option<u64>) -> Bytes {
    let mut bytes = put_number(largest.unwrap_or(0));
    bytes[8] = largest.is_some().into();
    bytes
}

/// See [`put_largest`].
pub fn read_largest(bytes: &Bytes) -> Option<u64> {
    (bytes[8] != 0).then(|| read_number(bytes))
}

/// What was found in a packet: its number in bytes 0 to 7, its header's length in 8 to 11, and in 12
/// its phase: 0 current, 1 previous, 2 next.
pub fn put_opened(opened: &Opened) -> Bytes {
    let mut bytes = put_number(opened.number);
    let header_bytes = u32::try_from(opened.header_bytes).unwrap_or(u32::MAX);
    bytes[8..12].copy_from_slice(&header_bytes.to_ne_bytes());
    bytes[12] = match opened.phase {
        Phase::Current => 0,
        Phase::Previous => 1,
        Phase::Next => 2,
    };
    bytes
}

/// See [`put_opened`].
pub fn read_opened(bytes: &Bytes) -> Option<Opened> {
    let phase = match bytes[12] {
        0 => Phase::Current,
        1 => Phase::Previous,
        2 => Phase::Next,
        _ => return None,
    };
    let header_bytes = word(bytes, 8) as usize;
    Some(Opened { number: read_number(bytes), header_bytes, phase })
}

/// A password's cost: its kind in byte 0, how far to go in byte 1 (0 recall, 1 full), what is a
/// logarithm in byte 2, and up to three numbers of 4 bytes each from byte 4, in the order of their
/// declaration. Kinds are 0 PBKDF2, 1 Argon2, 2 scrypt, 3 bcrypt, 4 MD5-crypt, 5 SHA-crypt.
pub fn put_cost(cost: Cost, effort: Effort) -> Bytes {
    let (kind, logarithm, numbers) = match cost {
        Cost::Pbkdf2 { iterations } => (0, 0, [iterations, 0, 0]),
        Cost::Argon2 { memory_kib, passes, lanes } => (1, 0, [memory_kib, passes, lanes]),
        Cost::Scrypt { log_n, r, p } => (2, log_n, [r, p, 0]),
        Cost::Bcrypt { log_rounds } => (3, 0, [log_rounds, 0, 0]),
        Cost::Md5Crypt => (4, 0, [0; 3]),
        Cost::ShaCrypt { rounds } => (5, 0, [rounds, 0, 0]),
    };
    let mut bytes = [0; PARAMETER_BYTES];
    bytes[0] = kind;
    bytes[1] = (effort == Effort::Full).into();
    bytes[2] = logarithm;
    for (place, number) in bytes[4..].chunks_exact_mut(4).zip(numbers) {
        place.copy_from_slice(&number.to_ne_bytes());
    }
    bytes
}

/// See [`put_cost`].
pub fn read_cost(bytes: &Bytes) -> Option<(Cost, Effort)> {
    let [first, second, third] = [4, 8, 12].map(|at| word(bytes, at));
    let cost = match bytes[0] {
        0 => Cost::Pbkdf2 { iterations: first },
        1 => Cost::Argon2 { memory_kib: first, passes: second, lanes: third },
        2 => Cost::Scrypt { log_n: bytes[2], r: first, p: second },
        3 => Cost::Bcrypt { log_rounds: first },
        4 => Cost::Md5Crypt,
        5 => Cost::ShaCrypt { rounds: first },
        _ => return None,
    };
    let effort = match bytes[1] {
        0 => Effort::Recall,
        1 => Effort::Full,
        _ => return None,
    };
    Some((cost, effort))
}

fn word(bytes: &Bytes, at: usize) -> u32 {
    let there = bytes.get(at..at + 4).and_then(|there| there.first_chunk());
    u32::from_ne_bytes(there.copied().unwrap_or_default())
}

/// A part of a chain. Byte 0 is its kind: 0 cipher, 1 MAC, 2 compression. Byte 1 says whether a
/// cipher's initialisation vector is given (0) or lies in the data (1); it, or its place in 8 bytes, is
/// in bytes 8 to 23. In 24 to 39 is the range that is worked on, in 40 to 55 the tag's, each as start
/// and end of 8 bytes.
pub fn put_part(part: &Part) -> [u8; PART_BYTES] {
    let mut bytes = [0; PART_BYTES];
    let put = |bytes: &mut [u8; PART_BYTES], at: usize, range: &Range<usize>| {
        bytes[at..at + 8].copy_from_slice(&(range.start as u64).to_ne_bytes());
        bytes[at + 8..at + 16].copy_from_slice(&(range.end as u64).to_ne_bytes());
    };
    match part {
        Part::Cipher { iv, text } => {
            match iv {
                Iv::Given(iv) => bytes[8..24].copy_from_slice(iv),
                Iv::At(at) => {
                    bytes[1] = 1;
                    bytes[8..16].copy_from_slice(&(*at as u64).to_ne_bytes());
                }
            }
            put(&mut bytes, 24, text);
        }
        Part::Mac { over, tag } => {
            bytes[0] = 1;
            put(&mut bytes, 24, over);
            put(&mut bytes, 40, tag);
        }
        Part::Compression { text } => {
            bytes[0] = 2;
            put(&mut bytes, 24, text);
        }
    }
    bytes
}

/// See [`put_part`].
pub fn read_part(bytes: &[u8; PART_BYTES]) -> Option<Part> {
    let number = |at: usize| {
        let there = bytes.get(at..at + 8)?.first_chunk()?;
        usize::try_from(u64::from_ne_bytes(*there)).ok()
    };
    let range = |at| Some(number(at)?..number(at + 8)?);
    Some(match (bytes[0], bytes[1]) {
        (0, 0) => {
            let iv = *bytes.get(8..24)?.first_chunk()?;
            Part::Cipher { iv: Iv::Given(iv), text: range(24)? }
        }
        (0, 1) => Part::Cipher { iv: Iv::At(number(8)?), text: range(24)? },
        (1, 0) => Part::Mac { over: range(24)?, tag: range(40)? },
        (2, 0) => Part::Compression { text: range(24)? },
        _ => return None,
    })
}

/// A step of a session, with its key, for a message.
pub fn put_step(step: &Step<'_>) -> control::Step {
    let key = match step.key {
        Key::None => control::Key::None,
        Key::Secret(secret) => control::Key::Secret(secret.into()),
        Key::Extract { salt, secret } => {
            control::Key::Extract { salt: salt.into(), secret: secret.into() }
        }
        Key::Packet(keys) => control::Key::Packet(Box::new(put_packet_keys(&keys))),
        Key::Generate => control::Key::Generate,
        Key::Pkcs8(der) => control::Key::Pkcs8(der.into()),
        Key::Pkcs1(der) => control::Key::Pkcs1(der.into()),
        Key::Sec1(der) => control::Key::Sec1(der.into()),
        Key::Named(name) => control::Key::Named(name.to_owned()),
    };
    control::Step { algorithm: step.algorithm.name().to_owned(), key }
}

/// The step that a message has. `None` for an algorithm that this engine does not know, and for
/// malformed keys of packets.
pub fn read_step(step: &control::Step) -> Option<Step<'_>> {
    let algorithm: Algorithm = step.algorithm.parse().ok()?;
    let key = match &step.key {
        control::Key::None => Key::None,
        control::Key::Secret(secret) => Key::Secret(&secret.0),
        control::Key::Extract { salt, secret } => Key::Extract { salt: &salt.0, secret: &secret.0 },
        control::Key::Packet(keys) => Key::Packet(read_packet_keys(keys)?),
        control::Key::Generate => Key::Generate,
        control::Key::Pkcs8(der) => Key::Pkcs8(&der.0),
        control::Key::Pkcs1(der) => Key::Pkcs1(&der.0),
        control::Key::Sec1(der) => Key::Sec1(&der.0),
        control::Key::Named(name) => Key::Named(name),
    };
    Some(Step { algorithm, key })
}

fn put_packet_keys(keys: &PacketKeys<'_>) -> control::PacketKeys {
    let put = |key: PacketKey<'_>| control::PacketKey {
        key: key.key.into(),
        iv: key.iv.as_slice().into(),
    };
    control::PacketKeys {
        header: keys.header.into(),
        current: put(keys.current),
        phase: keys.phase,
        since: keys.since,
        previous: keys.previous.map(put),
        next: keys.next.map(put),
    }
}

fn read_packet_keys(keys: &control::PacketKeys) -> Option<PacketKeys<'_>> {
    fn read(key: &control::PacketKey) -> Option<PacketKey<'_>> {
        let iv: &[u8; NONCE_BYTES] = key.iv.0.as_slice().try_into().ok()?;
        Some(PacketKey { key: &key.key.0, iv })
    }
    let other = |key: &'_ Option<control::PacketKey>| key.is_some();
    let (previous, next) =
        (keys.previous.as_ref().and_then(read), keys.next.as_ref().and_then(read));
    let whole = previous.is_some() == other(&keys.previous) && next.is_some() == other(&keys.next);
    let (phase, since) = (keys.phase, keys.since);
    let current = read(&keys.current)?;
    whole.then_some(PacketKeys { header: &keys.header.0, current, phase, since, previous, next })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn costs_are_read_as_they_were_put() {
        let costs = [
            Cost::Pbkdf2 { iterations: 70_000 },
            Cost::Argon2 { memory_kib: 1 << 20, passes: 3, lanes: 4 },
            Cost::Scrypt { log_n: 17, r: 8, p: 2 },
            Cost::Bcrypt { log_rounds: 12 },
            Cost::Md5Crypt,
            Cost::ShaCrypt { rounds: 5_000 },
        ];
        for (cost, effort) in
            costs.into_iter().zip([Effort::Full, Effort::Recall].into_iter().cycle())
        {
            assert_eq!(read_cost(&put_cost(cost, effort)), Some((cost, effort)));
        }
        assert_eq!(read_cost(&[6; PARAMETER_BYTES]), None);
    }

    #[test]
    fn what_is_found_in_a_packet_is_read_as_it_was_put() {
        for phase in [Phase::Current, Phase::Previous, Phase::Next] {
            let opened = Opened { number: u64::MAX >> 2, header_bytes: 31, phase };
            assert_eq!(read_opened(&put_opened(&opened)), Some(opened));
        }
        assert_eq!(read_opened(&[3; PARAMETER_BYTES]), None);
        for largest in [None, Some(0), Some(u64::MAX)] {
            assert_eq!(read_largest(&put_largest(largest)), largest);
        }
    }

    #[test]
    fn steps_are_read_as_they_were_put() {
        let (secret, iv) = ([7; 16], [9; NONCE_BYTES]);
        let packet = PacketKey { key: &secret, iv: &iv };
        let mut keys = PacketKeys::new(&secret, packet);
        (keys.phase, keys.since, keys.next) = (true, 5, Some(packet));
        for key in [
            Key::None,
            Key::Secret(&secret),
            Key::Extract { salt: b"", secret: &secret },
            Key::Packet(keys),
            Key::Generate,
            Key::Pkcs8(&secret),
            Key::Pkcs1(&secret),
            Key::Sec1(&secret),
            Key::Named("web.tls"),
        ] {
            let step = put_step(&Step { algorithm: Algorithm::QuicAes128Gcm, key });
            let read = read_step(&step).unwrap();
            assert_eq!(put_step(&read), step);
        }
        let mut step =
            put_step(&Step { algorithm: Algorithm::QuicAes128Gcm, key: Key::Packet(keys) });
        if let control::Key::Packet(keys) = &mut step.key
            && let Some(next) = &mut keys.next
        {
            next.iv.0.pop();
        }
        assert!(read_step(&step).is_none());
    }

    fn ranges() -> impl Strategy<Value = Range<usize>> {
        (any::<usize>(), any::<usize>()).prop_map(|(start, end)| start..end)
    }

    proptest! {
        #[test]
        fn parts_are_read_as_they_were_put(text in ranges(), tag in ranges(), at: usize, iv: [u8; 16]) {
            let over = text.clone();
            for part in [
                Part::Cipher { iv: Iv::Given(iv), text: text.clone() },
                Part::Cipher { iv: Iv::At(at), text: text.clone() },
                Part::Mac { over, tag },
                Part::Compression { text },
            ] {
                prop_assert_eq!(read_part(&put_part(&part)), Some(part));
            }
        }

        #[test]
        fn any_bytes_are_a_part_or_none(bytes in prop::array::uniform32(any::<u8>()), more in prop::array::uniform24(any::<u8>())) {
            let mut all = [0; PART_BYTES];
            all[..32].copy_from_slice(&bytes);
            all[32..].copy_from_slice(&more);
            let _ = read_part(&all);
        }
    }
}
