//! How the engine's values lie in a descriptor's parameters, in a completion's result and in a message:
//! see [`Opcode`](keyway_ring::descriptor::Opcode).

use keyway_engine::{Cost, Effort, Iv, Key, Opened, PacketKey, PacketKeys, Part, Phase, Step};
use keyway_ring::control;
use keyway_ring::descriptor::{PARAMETER_BYTES, PART_BYTES, cost as kind};
use std::ops::Range;

/// A descriptor's parameters, or a completion's result.
pub(super) type Bytes = [u8; PARAMETER_BYTES];

/// These first, then zeros.
#[inline]
pub(super) fn front<const N: usize>(front: &[u8; N]) -> Bytes {
    const { assert!(N <= PARAMETER_BYTES) };
    let mut bytes = [0; PARAMETER_BYTES];
    bytes[..N].copy_from_slice(front);
    bytes
}

/// The first of them.
#[inline]
pub(super) fn first<const N: usize>(bytes: &Bytes) -> [u8; N] {
    const { assert!(N <= PARAMETER_BYTES) };
    std::array::from_fn(|at| bytes[at])
}

pub(super) fn largest(largest: Option<u64>) -> Bytes {
    let mut bytes = front(&largest.unwrap_or(0).to_ne_bytes());
    bytes[8] = largest.is_some().into();
    bytes
}

/// What was found in a packet. `None` for a phase that there is not.
pub(super) fn opened(bytes: &Bytes) -> Option<Opened> {
    let [n @ .., a, b, c, d, p, q, r, s] = *bytes;
    let phase = match u32::from_ne_bytes([p, q, r, s]) {
        0 => Phase::Current,
        1 => Phase::Previous,
        2 => Phase::Next,
        _ => return None,
    };
    let header_bytes = u32::from_ne_bytes([a, b, c, d]) as usize;
    Some(Opened { number: u64::from_ne_bytes(n), header_bytes, phase })
}

pub(super) fn cost(cost: Cost, effort: Effort) -> Bytes {
    let (kind, numbers) = match cost {
        Cost::Pbkdf2 { iterations } => (kind::PBKDF2, [iterations, 0, 0]),
        Cost::Argon2 { memory_kib, passes, lanes } => (kind::ARGON2, [memory_kib, passes, lanes]),
        Cost::Scrypt { log_n, r, p } => (kind::SCRYPT, [log_n.into(), r, p]),
        Cost::Bcrypt { log_rounds } => (kind::BCRYPT, [log_rounds, 0, 0]),
        Cost::Md5Crypt => (kind::MD5_CRYPT, [0; 3]),
        Cost::ShaCrypt { rounds } => (kind::SHA_CRYPT, [rounds, 0, 0]),
    };
    let mut bytes = [0; PARAMETER_BYTES];
    bytes[0] = kind;
    bytes[1] = (effort == Effort::Full).into();
    for (place, number) in bytes[4..].chunks_exact_mut(4).zip(numbers) {
        place.copy_from_slice(&number.to_ne_bytes());
    }
    bytes
}

pub(super) fn part(part: &Part) -> [u8; PART_BYTES] {
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

/// A step with its key.
pub(super) fn step(step: &Step<'_>) -> control::Step {
    let key = match step.key {
        Key::None => control::Key::None,
        Key::Secret(secret) => control::Key::Secret(secret.into()),
        Key::Extract { salt, secret } => {
            control::Key::Extract { salt: salt.into(), secret: secret.into() }
        }
        Key::Packet(keys) => control::Key::Packet(Box::new(packet_keys(&keys))),
        Key::Generate => control::Key::Generate,
        Key::Pkcs8(der) => control::Key::Pkcs8(der.into()),
        Key::Pkcs1(der) => control::Key::Pkcs1(der.into()),
        Key::Sec1(der) => control::Key::Sec1(der.into()),
        Key::Named(name) => control::Key::Named(name.to_owned()),
    };
    control::Step { algorithm: step.algorithm.name().to_owned(), key }
}

fn packet_keys(keys: &PacketKeys<'_>) -> control::PacketKeys {
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
