//! How single values lie in a descriptor's parameters, in a completion's result and in a segment.
//! Each is written by one side and read by the other, where it may be nonsense: `None`.

use keyway_engine::limits::CHAIN_STEPS_MAX;
use keyway_engine::{
    Algorithm, Cost, Direction, Effort, IV_BYTES_MAX, Iv, OaepParameters, Opened, Part, Phase,
    SignatureParameters,
};
use keyway_ring::descriptor::{PARAMETER_BYTES, PART_BYTES, cost as kind};
use std::ops::Range;

/// A descriptor's parameters, or a completion's result.
pub type Bytes = [u8; PARAMETER_BYTES];

/// These first, then zeros.
#[inline]
pub fn front<const N: usize>(front: &[u8; N]) -> Bytes {
    const { assert!(N <= PARAMETER_BYTES) };
    let mut bytes = [0; PARAMETER_BYTES];
    bytes[..N].copy_from_slice(front);
    bytes
}

/// The first of them.
#[inline]
pub fn first<const N: usize>(bytes: &Bytes) -> [u8; N] {
    const { assert!(N <= PARAMETER_BYTES) };
    std::array::from_fn(|at| bytes[at])
}

/// A length or a position.
pub fn put_index(index: usize) -> Bytes {
    front(&(index as u64).to_ne_bytes())
}

/// The index that [`put_index`] has written.
pub fn index(bytes: &Bytes) -> Option<usize> {
    usize::try_from(u64::from_ne_bytes(first(bytes))).ok()
}

/// The highest packet number so far, if there was one.
pub fn put_largest(largest: Option<u64>) -> Bytes {
    let mut bytes = front(&largest.unwrap_or(0).to_ne_bytes());
    bytes[8] = largest.is_some().into();
    bytes
}

/// The number that [`put_largest`] has written.
pub fn largest(bytes: &Bytes) -> Option<u64> {
    (bytes[8] != 0).then(|| u64::from_ne_bytes(first(bytes)))
}

/// The bytes of a packet's opened fields.
pub fn put_opened(opened: &Opened) -> Bytes {
    let phase: u32 = match opened.phase {
        Phase::Current => 0,
        Phase::Previous => 1,
        Phase::Next => 2,
    };
    let mut bytes = front(&opened.number.to_ne_bytes());
    bytes[8..12].copy_from_slice(&(opened.header_bytes as u32).to_ne_bytes());
    bytes[12..].copy_from_slice(&phase.to_ne_bytes());
    bytes
}

/// The fields that [`put_opened`] has written.
pub fn opened(bytes: &Bytes) -> Option<Opened> {
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

/// The direction that a chain is run in.
pub fn put_direction(direction: Direction) -> u32 {
    (direction == Direction::Unprotect).into()
}

/// The direction that [`put_direction`] has written.
pub fn direction(value: u32) -> Option<Direction> {
    match value {
        0 => Some(Direction::Protect),
        1 => Some(Direction::Unprotect),
        _ => None,
    }
}

/// The cost of a password, and how far its verification goes.
pub fn put_cost(cost: Cost, effort: Effort) -> Bytes {
    let (kind, numbers) = match cost {
        Cost::Pbkdf2 { iterations } => (kind::PBKDF2, [iterations, 0, 0]),
        Cost::Argon2 { memory_kib, passes, lanes } => (kind::ARGON2, [memory_kib, passes, lanes]),
        Cost::Scrypt { log_n, r, p } => (kind::SCRYPT, [log_n.into(), r, p]),
        Cost::Bcrypt { log_rounds } => (kind::BCRYPT, [log_rounds, 0, 0]),
        Cost::Md5Crypt => (kind::MD5_CRYPT, [0; 3]),
        Cost::ShaCrypt { rounds } => (kind::SHA_CRYPT, [rounds, 0, 0]),
    };
    let mut bytes = front(&[kind, (effort == Effort::Full).into()]);
    for (place, number) in bytes[4..].chunks_exact_mut(4).zip(numbers) {
        place.copy_from_slice(&number.to_ne_bytes());
    }
    bytes
}

/// The cost that [`put_cost`] has written.
pub fn cost(bytes: &Bytes) -> Option<Cost> {
    let (words, _) = bytes.as_chunks::<4>();
    let [_, one, two, three] =
        [0, 1, 2, 3].map(|at| words.get(at).map_or(0, |word| u32::from_ne_bytes(*word)));
    Some(match bytes[0] {
        kind::PBKDF2 => Cost::Pbkdf2 { iterations: one },
        kind::ARGON2 => Cost::Argon2 { memory_kib: one, passes: two, lanes: three },
        kind::SCRYPT => Cost::Scrypt { log_n: u8::try_from(one).ok()?, r: two, p: three },
        kind::BCRYPT => Cost::Bcrypt { log_rounds: one },
        kind::MD5_CRYPT => Cost::Md5Crypt,
        kind::SHA_CRYPT => Cost::ShaCrypt { rounds: one },
        _ => return None,
    })
}

/// The effort that [`put_cost`] has written.
pub fn effort(bytes: &Bytes) -> Option<Effort> {
    match bytes[1] {
        0 => Some(Effort::Recall),
        1 => Some(Effort::Full),
        _ => None,
    }
}

/// Each hash that parameters can name, at its number less one.
const HASHES: [Algorithm; 10] = [
    Algorithm::Md5,
    Algorithm::Sha1,
    Algorithm::Sha224,
    Algorithm::Sha256,
    Algorithm::Sha384,
    Algorithm::Sha512,
    Algorithm::Sha512_256,
    Algorithm::Sha3_256,
    Algorithm::Sha3_384,
    Algorithm::Sha3_512,
];

/// The number of a hash; 0 for none. Another algorithm has one that is no hash's.
fn put_hash(hash: Option<Algorithm>) -> u8 {
    let Some(hash) = hash else { return 0 };
    HASHES.iter().position(|it| *it == hash).map_or(u8::MAX, |at| at as u8 + 1)
}

/// The hash that [`put_hash`] has written, if it is one.
fn hash(number: u8) -> Option<Option<Algorithm>> {
    match number.checked_sub(1) {
        None => Some(None),
        Some(at) => HASHES.get(usize::from(at)).map(|hash| Some(*hash)),
    }
}

/// How a message is signed.
pub fn put_signature(parameters: &SignatureParameters) -> Bytes {
    let SignatureParameters { prehashed, hash, mgf1_hash, salt_bytes } = *parameters;
    let [low, high] = salt_bytes.unwrap_or(0).to_ne_bytes();
    let is_given = salt_bytes.is_some().into();
    front(&[prehashed.into(), put_hash(hash), put_hash(mgf1_hash), is_given, low, high])
}

/// The parameters that [`put_signature`] has written.
pub fn signature(bytes: &Bytes) -> Option<SignatureParameters> {
    let [prehashed, of_message, of_mgf1, has_salt, low, high] = first(bytes);
    Some(SignatureParameters {
        prehashed: flag(prehashed)?,
        hash: hash(of_message)?,
        mgf1_hash: hash(of_mgf1)?,
        salt_bytes: flag(has_salt)?.then(|| u16::from_ne_bytes([low, high])),
    })
}

fn flag(byte: u8) -> Option<bool> {
    match byte {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// How RSAES-OAEP pads.
pub fn put_oaep(parameters: &OaepParameters) -> Bytes {
    front(&[put_hash(parameters.hash), put_hash(parameters.mgf1_hash)])
}

/// The parameters that [`put_oaep`] has written.
pub fn oaep(bytes: &Bytes) -> Option<OaepParameters> {
    let [of_label, of_mgf1] = first(bytes);
    Some(OaepParameters { hash: hash(of_label)?, mgf1_hash: hash(of_mgf1)? })
}

/// A part of a chain.
pub fn put_part(part: &Part) -> [u8; PART_BYTES] {
    let mut bytes = [0; PART_BYTES];
    match part {
        Part::Cipher { iv, text } => {
            match iv {
                Iv::Given(iv) => bytes[8..24].copy_from_slice(iv),
                Iv::At(at) => {
                    bytes[1] = 1;
                    bytes[8..16].copy_from_slice(&(*at as u64).to_ne_bytes());
                }
            }
            put_range(&mut bytes, 24, text);
        }
        Part::Mac { over, tag } => {
            bytes[0] = 1;
            put_range(&mut bytes, 24, over);
            put_range(&mut bytes, 40, tag);
        }
        Part::Compression { text } => {
            bytes[0] = 2;
            put_range(&mut bytes, 24, text);
        }
    }
    bytes
}

fn put_range(bytes: &mut [u8; PART_BYTES], at: usize, range: &Range<usize>) {
    bytes[at..at + 8].copy_from_slice(&(range.start as u64).to_ne_bytes());
    bytes[at + 8..at + 16].copy_from_slice(&(range.end as u64).to_ne_bytes());
}

/// The parts that [`put_part`] has written, one after the other.
pub fn parts(bytes: &[u8]) -> Option<Vec<Part>> {
    match bytes.as_chunks() {
        (parts, []) if parts.len() <= CHAIN_STEPS_MAX => parts.iter().map(part).collect(),
        _ => None,
    }
}

fn part(bytes: &[u8; PART_BYTES]) -> Option<Part> {
    let (words, _) = bytes.as_chunks::<8>();
    let number = |at: usize| usize::try_from(u64::from_ne_bytes(*words.get(at / 8)?)).ok();
    let range = |at| Some(number(at)?..number(at + 8)?);
    Some(match (bytes[0], bytes[1]) {
        (0, 0) => {
            let mut iv = [0; IV_BYTES_MAX];
            iv.copy_from_slice(&bytes[8..24]);
            Part::Cipher { iv: Iv::Given(iv), text: range(24)? }
        }
        (0, 1) => Part::Cipher { iv: Iv::At(number(8)?), text: range(24)? },
        (1, _) => Part::Mac { over: range(24)?, tag: range(40)? },
        (2, _) => Part::Compression { text: range(24)? },
        _ => return None,
    })
}
