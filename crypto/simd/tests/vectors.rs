//! The standards' own examples, in every backend, alone and in every lane.

use keyway_simd::{CbcBackend, CbcKey, Cipher, Fault, FaultKind, Hash, HmacKey, Job, LANES, Mac};

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> =
        hex.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_digit(16).unwrap()).collect();
    digits.chunks(2).map(|pair| u8::try_from(pair[0] * 16 + pair[1]).unwrap()).collect()
}

fn array<const N: usize>(hex: &str) -> [u8; N] {
    bytes(hex).try_into().unwrap()
}

/// SP 800-38A appendix F.2: the plaintext of every mode's example.
const PLAIN: &str = "6bc1bee22e409f96e93d7e117393172a ae2d8a571e03ac9c9eb76fac45af8e51
    30c81c46a35ce411e5fbc1191a0a52ef f69f2445df4f9b17ad2b417be66c3710";

/// F.2.1 and F.2.5.
#[test]
fn cbc_is_that_of_sp_800_38a() {
    let iv = array("000102030405060708090a0b0c0d0e0f");
    let cases = [
        (
            CbcKey::aes128(&array("2b7e151628aed2a6abf7158809cf4f3c")),
            "7649abac8119b246cee98e9b12e9197d 5086cb9b507219ee95db113a917678b2
             73bed6b8e3c1743b7116e69e22229516 3ff1caa1681fac09120eca307586e1a7",
        ),
        (
            CbcKey::aes256(&array(
                "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
            )),
            "f58c4c04d6e5f1ba779eabfb5f7bfbd6 9cfc4e967edb808d679f777bc6702c7d
             39f23369a9d9bacfa530e26304231461 b2eb05e2c39be9fcda6c19078c6a9d1b",
        ),
    ];
    for (key, sealed) in &cases {
        let counts = [1, LANES, LANES + 1];
        for (backend, count) in
            CbcBackend::available().flat_map(|backend| counts.map(|n| (backend, n)))
        {
            let mut messages = vec![bytes(PLAIN); count];
            let mut jobs: Vec<_> = messages
                .iter_mut()
                .map(|message| {
                    let range = 0..message.len();
                    Job { message, cipher: Some(Cipher { key, iv, range }), mac: None }
                })
                .collect();
            backend.seal(&mut jobs).unwrap();
            for message in messages {
                assert_eq!(message, bytes(sealed), "{}, {count} at once", backend.name());
            }
        }
    }
}

/// Every way to cut the message into its three parts gives the same tag.
fn hmac(hash: Hash, key: &[u8], data: &[u8], expected: &str) {
    let (key, expected) = (HmacKey::new(hash, key), bytes(expected));
    let cuts: Vec<_> =
        (0..=data.len()).flat_map(|a| [(a, a), (a, data.len()), (0, a), (a / 2, a)]).collect();
    for backend in CbcBackend::available() {
        let mut tags = vec![vec![0; expected.len()]; cuts.len()];
        let mut messages: Vec<_> = cuts.iter().map(|(a, b)| data[*a..*b].to_vec()).collect();
        let mut jobs: Vec<_> = messages
            .iter_mut()
            .zip(&mut tags)
            .zip(&cuts)
            .map(|((message, tag), (a, b))| {
                let (front, back, range) = (&data[..*a], &data[*b..], 0..message.len());
                Job { message, cipher: None, mac: Some(Mac { key: &key, range, front, back, tag }) }
            })
            .collect();
        backend.seal(&mut jobs).unwrap();
        for (tag, cut) in tags.iter().zip(&cuts) {
            assert_eq!(tag, &expected, "{} {hash:?} {cut:?}", backend.name());
        }
    }
}

const LONG_KEY_TEXT: &[u8] = b"Test Using Larger Than Block-Size Key - Hash Key First";

/// RFC 2202 § 3: all seven, the fifth cut to 96 bits as well.
#[test]
fn hmac_sha1_is_that_of_rfc_2202() {
    let hmac = |key: &[u8], data: &[u8], tag| hmac(Hash::Sha1, key, data, tag);
    hmac(&[0x0b; 20], b"Hi There", "b617318655057264e28bc0b6fb378c8ef146be00");
    hmac(b"Jefe", b"what do ya want for nothing?", "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79");
    hmac(&[0xaa; 20], &[0xdd; 50], "125d7342b9ac11cd91a39af48aa17b4f63f175d3");
    let counted: Vec<u8> = (1..=25).collect();
    hmac(&counted, &[0xcd; 50], "4c9007f4026250c6bc8414f9bf50c86c2d7235da");
    hmac(&[0x0c; 20], b"Test With Truncation", "4c1a03424b55e07fe7f27be1d58bb9324a9a5a04");
    hmac(&[0x0c; 20], b"Test With Truncation", "4c1a03424b55e07fe7f27be1");
    hmac(&[0xaa; 80], LONG_KEY_TEXT, "aa4ae5e15272d00e95705637ce8a3b55ed402112");
    let longer = b"Test Using Larger Than Block-Size Key and Larger Than One Block-Size Data";
    hmac(&[0xaa; 80], longer, "e8e99d0f45237d786d6bbaa7965c7808bbff1a91");
}

/// RFC 4231 § 4: all seven.
#[test]
fn hmac_sha256_is_that_of_rfc_4231() {
    let hmac = |key: &[u8], data: &[u8], tag| hmac(Hash::Sha256, key, data, tag);
    hmac(
        &[0x0b; 20],
        b"Hi There",
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
    );
    hmac(
        b"Jefe",
        b"what do ya want for nothing?",
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
    );
    hmac(
        &[0xaa; 20],
        &[0xdd; 50],
        "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe",
    );
    let counted: Vec<u8> = (1..=25).collect();
    hmac(&counted, &[0xcd; 50], "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
    hmac(&[0x0c; 20], b"Test With Truncation", "a3b6167473100ee06e0c796c2955552b");
    hmac(
        &[0xaa; 131],
        LONG_KEY_TEXT,
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
    );
    let longer = b"This is a test using a larger than block-size key and a larger than block-size \
        data. The key needs to be hashed before being used by the HMAC algorithm.";
    hmac(&[0xaa; 131], longer, "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

#[test]
fn a_request_that_does_not_fit_is_named_and_nothing_is_touched() {
    let (aes, sha1) = (CbcKey::aes128(&[1; 16]), HmacKey::new(Hash::Sha1, b"key"));
    let cases = [
        (0..33, 0..32, 12, FaultKind::CipherRange),
        (8..31, 0..32, 12, FaultKind::CipherBlocks),
        (0..32, 0..33, 12, FaultKind::MacRange),
        (0..32, 0..32, 0, FaultKind::TagLength),
        (0..32, 0..32, 21, FaultKind::TagLength),
    ];
    for (encrypted, range, tag_bytes, kind) in cases {
        for backend in CbcBackend::available() {
            let (mut good, mut bad, mut tag) = ([7; 32], [7; 32], [7; 32]);
            let cipher = |range| Some(Cipher { key: &aes, iv: [0; 16], range });
            let tag_cut = &mut tag[..tag_bytes];
            let mac = Mac { key: &sha1, range: range.clone(), front: &[], back: &[], tag: tag_cut };
            let mut jobs = [
                Job { message: &mut good, cipher: cipher(0..32), mac: None },
                Job { message: &mut bad, cipher: cipher(encrypted.clone()), mac: Some(mac) },
            ];
            let fault = Fault { job: 1, kind };
            assert_eq!(backend.seal(&mut jobs), Err(fault));
            assert!(fault.to_string().starts_with("request 1 of the batch: "));
            assert_eq!((good, bad, tag), ([7; 32], [7; 32], [7; 32]));
        }
    }
}

#[test]
fn an_empty_batch_and_a_request_for_nothing_are_done() {
    let key = CbcKey::aes256(&[1; 32]);
    for backend in CbcBackend::available() {
        assert_eq!(backend.seal(&mut []), Ok(()));
        let mut message = [7; 20];
        let cipher = Some(Cipher { key: &key, iv: [0; 16], range: 20..20 });
        let mut jobs = [Job { message: &mut message, cipher, mac: None }];
        assert_eq!(backend.seal(&mut jobs), Ok(()));
        jobs[0].cipher = None;
        assert_eq!(backend.seal(&mut jobs), Ok(()));
        assert_eq!(message, [7; 20]);
    }
}
