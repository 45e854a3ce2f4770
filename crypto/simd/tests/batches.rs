//! Batches of anything, in every backend, against a library that does one request after another.

use aws_lc_rs::cipher::{AES_128, AES_256, EncryptingKey, EncryptionContext, UnboundCipherKey};
use aws_lc_rs::hmac;
use aws_lc_rs::iv::FixedLength;
use keyway_simd::{CbcBackend, CbcKey, Cipher, Hash, HmacKey, Job, Mac};
use proptest::collection::vec;
use proptest::prelude::*;
use std::ops::Range;

/// A request and all that it borrows.
#[derive(Debug, Clone)]
struct Case {
    message: Vec<u8>,
    cipher: Option<(Vec<u8>, [u8; 16], Range<usize>)>,
    mac: Option<Authentication>,
}

#[derive(Debug, Clone)]
struct Authentication {
    hash: Hash,
    key: Vec<u8>,
    range: Range<usize>,
    front: Vec<u8>,
    back: Vec<u8>,
    tag_bytes: usize,
}

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

fn case() -> impl Strategy<Value = Case> {
    let sizes = (0..=256_usize, 0..80_usize, 0..80_usize, 0..=2_usize, 0..=2_usize);
    let mac = (
        any::<bool>(),
        0..200_usize,
        any::<[prop::sample::Index; 2]>(),
        0..200_usize,
        0..200_usize,
        1..=32_usize,
    );
    (any::<u64>(), sizes, mac).prop_map(|(seed, sizes, mac)| {
        let (blocks, before, after, cipher, with_mac) = sizes;
        let message = filled(seed, before + 16 * blocks + after);
        let key = filled(seed ^ 1, if cipher == 1 { 16 } else { 32 });
        let iv = seed.to_be_bytes().repeat(2).try_into().unwrap();
        let cipher = (cipher > 0).then(|| (key, iv, before..before + 16 * blocks));
        let (sha1, key_bytes, ends, front, back, tag_bytes) = mac;
        let hash = if sha1 { Hash::Sha1 } else { Hash::Sha256 };
        let [a, b] = ends.map(|end| end.index(message.len() + 1));
        let mac = (with_mac > 0).then(|| Authentication {
            hash,
            key: filled(seed ^ 2, key_bytes),
            range: a.min(b)..a.max(b),
            front: filled(seed ^ 3, front),
            back: filled(seed ^ 4, back),
            tag_bytes: tag_bytes.min(hash.digest_bytes()),
        });
        Case { message, cipher, mac }
    })
}

/// Message and tag as the library makes them.
fn model(case: &Case) -> (Vec<u8>, Vec<u8>) {
    let mut message = case.message.clone();
    if let Some((key, iv, range)) = &case.cipher
        && !range.is_empty()
    {
        let algorithm = if key.len() == 16 { &AES_128 } else { &AES_256 };
        let key = EncryptingKey::cbc(UnboundCipherKey::new(algorithm, key).unwrap()).unwrap();
        let context = EncryptionContext::Iv128(FixedLength::from(iv));
        key.less_safe_encrypt(&mut message[range.clone()], context).unwrap();
    }
    let tag = case.mac.as_ref().map_or_else(Vec::new, |mac| {
        let algorithm = match mac.hash {
            Hash::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Hash::Sha256 => hmac::HMAC_SHA256,
        };
        let mut context = hmac::Context::with_key(&hmac::Key::new(algorithm, &mac.key));
        for part in [&mac.front, &message[mac.range.clone()], &mac.back] {
            context.update(part);
        }
        context.sign().as_ref()[..mac.tag_bytes].to_vec()
    });
    (message, tag)
}

/// Message and tag as a backend makes them, all cases at once.
fn sealed(backend: CbcBackend, cases: &[Case]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let keys: Vec<_> = cases
        .iter()
        .map(|case| {
            let aes = case.cipher.as_ref().map(|(key, ..)| match key.as_slice().try_into() {
                Ok(key) => CbcKey::aes128(key),
                Err(_) => CbcKey::aes256(key.as_slice().try_into().unwrap()),
            });
            (aes, case.mac.as_ref().map(|mac| HmacKey::new(mac.hash, &mac.key)))
        })
        .collect();
    let tag_bytes = |case: &Case| case.mac.as_ref().map_or(0, |mac| mac.tag_bytes);
    let mut results: Vec<_> =
        cases.iter().map(|case| (case.message.clone(), vec![0; tag_bytes(case)])).collect();
    let parts = results.iter_mut().zip(cases).zip(&keys);
    let mut jobs: Vec<_> = parts
        .map(|(((message, tag), case), (aes, hmac))| {
            let cipher = case.cipher.as_ref().zip(aes.as_ref());
            let cipher =
                cipher.map(|((_, iv, range), key)| Cipher { key, iv: *iv, range: range.clone() });
            let mac = case.mac.as_ref().zip(hmac.as_ref()).map(|(mac, key)| {
                let Authentication { range, front, back, .. } = mac;
                Mac { key, range: range.clone(), front, back, tag }
            });
            Job { message, cipher, mac }
        })
        .collect();
    backend.seal(&mut jobs).unwrap();
    results
}

fn check(cases: &[Case]) {
    let expected: Vec<_> = cases.iter().map(model).collect();
    for backend in CbcBackend::available() {
        for (at, (sealed, expected)) in sealed(backend, cases).iter().zip(&expected).enumerate() {
            assert_eq!(
                sealed,
                expected,
                "{}, request {at} of {}: {:?}",
                backend.name(),
                cases.len(),
                cases[at]
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(32) })]

    #[test]
    fn batches_are_sealed_as_the_library_seals_their_requests(cases in vec(case(), 1..=64)) {
        check(&cases);
    }

    #[test]
    fn batches_of_one_kind_are_too(cases in uniform()) {
        check(&cases);
    }

    #[test]
    fn batches_of_one_shape_are_too(cases in one_shape()) {
        check(&cases);
    }

    /// More than one group, so small that lanes change hands all the time.
    #[test]
    fn large_batches_of_small_requests_are_too(cases in vec(case(), 65..=200)) {
        let cases: Vec<_> = cases.into_iter().map(|mut case| {
            case.message.truncate(100);
            let end = case.message.len();
            if let Some((.., range)) = &mut case.cipher {
                let start = range.start.min(end);
                *range = start..start + (end - start) / 16 * 16;
            }
            if let Some(mac) = &mut case.mac {
                mac.range = mac.range.start.min(end)..mac.range.end.min(end);
            }
            case
        }).collect();
        check(&cases);
    }
}

/// Requests that differ in nothing but keys, bytes, tags, and what lies behind both ranges.
fn one_shape() -> impl Strategy<Value = Vec<Case>> {
    (case(), 0..70_usize, vec(any::<u64>(), 1..=40)).prop_map(|(shape, back, seeds)| {
        let one = |seed: u64| {
            let mut case = shape.clone();
            case.message = filled(seed, shape.message.len() + seed as usize % 3);
            if let Some((key, iv, _)) = &mut case.cipher {
                *key = filled(seed ^ 1, key.len());
                *iv = [seed.to_be_bytes()[0]; 16];
            }
            if let Some(mac) = &mut case.mac {
                mac.key = filled(seed ^ 2, 20);
                mac.front.clear();
                mac.back = filled(seed ^ 4, back);
                mac.tag_bytes = 1 + seed as usize % 20;
            }
            case
        };
        seeds.into_iter().map(one).collect()
    })
}

/// Requests of one kind, but now and then for the length of a key or a hash: these go through
/// cipher and hash together. Headers of all lengths, MACs that begin within the ciphertext or end
/// before it does.
fn uniform() -> impl Strategy<Value = Vec<Case>> {
    let one = (any::<u64>(), 0..90_usize, 20..=90_usize, 0..60_usize, 0..200_usize, 0..40_usize);
    (0..6_u64, 0..150_usize, vec(one, 1..=40)).prop_map(|(kinds, inside, packets)| {
        let packet = |(seed, header, blocks, after, cut, back)| {
            let message = filled(seed, header + 16 * blocks + after);
            let end: usize = message.len();
            let start = if seed % 4 == 0 { inside.min(end) } else { header / 3 };
            let end = if seed % 3 == 0 { end.saturating_sub(cut).max(start) } else { end };
            let key = filled(seed ^ 1, if seed % 4 < kinds { 16 } else { 32 });
            Case {
                message,
                cipher: Some((key, [seed.to_be_bytes()[0]; 16], header..header + 16 * blocks)),
                mac: Some(Authentication {
                    hash: if kinds == 4 && seed % 8 == 0 { Hash::Sha256 } else { Hash::Sha1 },
                    key: filled(seed ^ 2, 20),
                    range: start..end,
                    front: Vec::new(),
                    back: filled(seed ^ 4, back),
                    tag_bytes: 12,
                }),
            }
        };
        packets.into_iter().map(packet).collect()
    })
}

/// Every length around the hashes' padding, and every number of blocks a lane can have left.
#[test]
fn every_short_length_is_right() {
    let cases: Vec<_> = (0..=300_usize)
        .map(|bytes| Case {
            message: filled(bytes as u64, bytes),
            cipher: Some((filled(5, 16), [9; 16], 0..bytes / 16 * 16)),
            mac: Some(Authentication {
                hash: if bytes % 2 == 0 { Hash::Sha1 } else { Hash::Sha256 },
                key: filled(6, bytes),
                range: 0..bytes,
                front: Vec::new(),
                back: Vec::new(),
                tag_bytes: 20,
            }),
        })
        .collect();
    check(&cases);
    let mut others = cases;
    for mac in others.iter_mut().filter_map(|case| case.mac.as_mut()) {
        mac.hash = if mac.hash == Hash::Sha1 { Hash::Sha256 } else { Hash::Sha1 };
    }
    check(&others);
}

/// ESP packets of one size: 1 to 33 at once, so that lanes are idle in every number.
#[test]
fn packets_of_one_size_are_right() {
    for (count, blocks) in (1..=33).zip((20..).step_by(7)) {
        let packet = |seed| Case {
            message: filled(seed, 24 + 16 * blocks),
            cipher: Some((filled(seed ^ 1, 16), [1; 16], 24..24 + 16 * blocks)),
            mac: Some(Authentication {
                hash: Hash::Sha1,
                key: filled(seed ^ 2, 20),
                range: 0..24 + 16 * blocks,
                front: Vec::new(),
                back: vec![7; 4],
                tag_bytes: 12,
            }),
        };
        check(&(0..count).map(packet).collect::<Vec<_>>());
    }
}
