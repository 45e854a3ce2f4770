//! Vectors of the documents that define the algorithms.

use crate::{ENGINE, agree, digest, expand, hex, mac, open, verify};
use keyway_engine::{Algorithm, Cost, Error, Key, Request};

/// Seals and opens, and checks that every changed bit is noticed.
fn aead(algorithm: Algorithm, key: &str, nonce: &str, aad: &str, text: &[u8], sealed: &str) {
    let session = open(algorithm, Key::Secret(&hex(key))).unwrap();
    let nonce = hex(nonce).try_into().unwrap();
    let (aad, sealed) = (hex(aad), hex(sealed));
    let mut data = text.to_vec();
    let tag = session.seal(&nonce, &aad, &mut data).unwrap();
    data.extend_from_slice(&tag);
    assert_eq!(data, sealed);
    for bit in 0..8 * sealed.len() {
        let mut spoiled = sealed.clone();
        spoiled[bit / 8] ^= 1 << (bit % 8);
        let result = session.open_in_place(&nonce, &aad, &mut spoiled);
        assert_eq!(result, Err(Error::Authentication));
        let leaked = spoiled.windows(8).any(|window| text.windows(8).any(|part| part == window));
        assert!(!leaked, "plaintext is left after a failure");
    }
    let wrong_aad = session.open_in_place(&nonce, b"", &mut sealed.clone());
    assert_eq!(wrong_aad, Err(Error::Authentication));
    assert_eq!(session.open_in_place(&nonce, &aad, &mut data), Ok(text.len()));
    assert_eq!(&data[..text.len()], text);
}

#[test]
fn chacha20_poly1305_of_rfc_8439() {
    aead(
        Algorithm::ChaCha20Poly1305,
        "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f",
        "070000004041424344454647",
        "50515253c0c1c2c3c4c5c6c7",
        b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the \
          future, sunscreen would be it.",
        "d31a8d34648e60db7b86afbc53ef7ec2 a4aded51296e08fea9e2b5a736ee62d6
         3dbea45e8ca9671282fafb69da92728b 1a71de0a9e060b2905d6a5b67ecd3b36
         92ddbd7f2d778b8c9803aee328091b58 fab324e4fad675945585808b4831d7bc
         3ff4def08e4b7a9de576d26586cec64b 6116
         1ae10b594f09e26a7e902ecbd0600691",
    );
}

/// The text of test cases 4 and 16 of the submission of GCM to NIST.
const GCM_TEXT: &str = "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95
    956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39";
const GCM_AAD: &str = "feedfacedeadbeeffeedfacedeadbeefabaddad2";

#[test]
fn aes_gcm_of_nist() {
    aead(
        Algorithm::Aes128Gcm,
        "feffe9928665731c6d6a8f9467308308",
        "cafebabefacedbaddecaf888",
        GCM_AAD,
        &hex(GCM_TEXT),
        "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e
         21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091
         5bc94fbc3221a5db94fae95ae7121a47",
    );
    aead(
        Algorithm::Aes256Gcm,
        "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
        "cafebabefacedbaddecaf888",
        GCM_AAD,
        &hex(GCM_TEXT),
        "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa
         8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662
         76fc6ece0f4e1768cddf8853bb2d551b",
    );
}

#[test]
fn sha_of_fips_180() {
    let vectors = [
        (
            Algorithm::Sha1,
            "a9993e364706816aba3e25717850c26c9cd0d89d",
            "da39a3ee5e6b4b0d3255bfef95601890afd80709",
        ),
        (
            Algorithm::Sha256,
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        ),
        (
            Algorithm::Sha384,
            "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed
             8086072ba1e7cc2358baeca134c825a7",
            "38b060a751ac96384cd9327eb1b1e36a21fdb71114be07434c0cc7bf63f6e1da
             274edebfe76f65fbd51ad2f14898b95b",
        ),
        (
            Algorithm::Sha512,
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a
             2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
            "cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce
             47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e",
        ),
    ];
    for (algorithm, abc, nothing) in vectors {
        assert_eq!(digest(algorithm, &[b"abc"]), hex(abc));
        assert_eq!(digest(algorithm, &[b"a", b"", b"bc"]), hex(abc));
        assert_eq!(digest(algorithm, &[]), hex(nothing));
        assert_eq!(digest(algorithm, &[b""]), hex(nothing));

        let mut stream = ENGINE.stream(algorithm).unwrap();
        stream.update(b"a").unwrap();
        let fork = stream.fork().unwrap();
        stream.update(b"bc").unwrap();
        let (mut long, mut short) = (hex(abc), hex(abc));
        stream.finish(&mut long).unwrap();
        fork.finish(&mut short).unwrap();
        assert_eq!(long, hex(abc));
        assert_eq!(short, digest(algorithm, &[b"a"]));
    }
}

#[test]
fn hmac_of_rfc_4231() {
    let vectors = [
        (
            Algorithm::HmacSha256,
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
        ),
        (
            Algorithm::HmacSha384,
            "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e
             8e2240ca5e69e2c78b3239ecfab21649",
            "4ece084485813e9088d2c63a041bc5b44f9ef1012a2b588f3cd11f05033ac4c6
             0c2ef6ab4030fe8296248df163f44952",
        ),
        (
            Algorithm::HmacSha512,
            "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554
             9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737",
            "80b24263c7c1a3ebb71493c1dd7be8b49b46d1f41b4aeec1121b013783f8f352
             6b56d037e05f2598bd0fd2215d6a1e5295e64f73f63f0aec8b915a985d786598",
        ),
    ];
    for (algorithm, jefe, long_key) in vectors {
        let session = open(algorithm, Key::Secret(b"Jefe")).unwrap();
        assert_eq!(mac(&session, &[b"what do ya want for nothing?"]), hex(jefe));
        assert_eq!(mac(&session, &[b"what do ya ", b"want for nothing?", b""]), hex(jefe));
        let session = open(algorithm, Key::Secret(&[0xaa; 131])).unwrap();
        let text = b"Test Using Larger Than Block-Size Key - Hash Key First";
        assert_eq!(mac(&session, &[text]), hex(long_key));
    }
}

#[test]
fn hkdf_of_rfc_5869() {
    let algorithm = Algorithm::HkdfSha256;
    let secret = [0x0b; 22];
    let salt = hex("000102030405060708090a0b0c");
    let info = hex("f0f1f2f3f4f5f6f7f8f9");
    let okm =
        hex("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b88718
        5865");
    let extracted = open(algorithm, Key::Extract { salt: &salt, secret: &secret }).unwrap();
    assert_eq!(expand(&extracted, &[&info], 42).unwrap(), okm);
    assert_eq!(expand(&extracted, &[&info[..3], b"", &info[3..]], 42).unwrap(), okm);

    let prk = hex("077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5");
    let given = open(algorithm, Key::Secret(&prk)).unwrap();
    assert_eq!(expand(&given, &[&info], 42).unwrap(), okm);

    let no_salt = open(algorithm, Key::Extract { salt: b"", secret: &secret }).unwrap();
    let okm =
        hex("8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a
        96c8");
    assert_eq!(expand(&no_salt, &[], 42).unwrap(), okm);
    assert_eq!(expand(&no_salt, &[], 255 * 32).unwrap()[..42], okm);
    assert!(expand(&no_salt, &[], 0).unwrap().is_empty());
}

#[test]
fn x25519_of_rfc_7748() {
    let alice = hex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a");
    let bob_public = hex("de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f");
    let shared = hex("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742");
    let alice = open(Algorithm::X25519, Key::Secret(&alice)).unwrap();
    let alice_public = hex("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a");
    assert_eq!(alice.public_key().unwrap(), alice_public);
    assert_eq!(agree(&alice, &bob_public).unwrap(), shared);
}

/// Two integers as a DER signature.
fn der(r: &str, s: &str) -> Vec<u8> {
    let mut body = Vec::new();
    for number in [hex(r), hex(s)] {
        let sign = (number[0] & 0x80 != 0).then_some(0);
        body.extend([2, (number.len() + sign.iter().len()) as u8]);
        body.extend(sign);
        body.extend(number);
    }
    [vec![0x30, body.len() as u8], body].concat()
}

#[test]
fn ecdsa_of_rfc_6979() {
    let p256 = hex("04 60FED4BA255A9D31C961EB74C6356D68C049B8923B61FA6CE669622E60F29FB6
        7903FE1008B8BC99A41AE9E95628BC64F2F1B20C2D7E9F5177A3C294D4462299");
    let p384 =
        hex("04 EC3A4E415B4E19A4568618029F427FA5DA9A8BC4AE92E02E06AAE5286B300C64DEF8F0EA9055
        866064A254515480BC13 8015D9B72D7D57244EA8EF9AC0C621896708A59367F9DFB9F54CA84B3F1C9DB1288B23
        1C3AE0D4FE7344FD2533264720");
    let vectors = [
        (
            Algorithm::EcdsaP256Sha256,
            &p256,
            "EFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716",
            "F7CB1C942D657C41D436C7A1B6E29F65F3E900DBB9AFF4064DC4AB2F843ACDA8",
        ),
        (
            Algorithm::EcdsaP256Sha384,
            &p256,
            "0EAFEA039B20E9B42309FB1D89E213057CBF973DC0CFC8F129EDDDC800EF7719",
            "4861F0491E6998B9455193E34E7B0D284DDD7149A74B95B9261F13ABDE940954",
        ),
        (
            Algorithm::EcdsaP384Sha256,
            &p384,
            "21B13D1E013C7FA1392D03C5F99AF8B30C570C6F98D4EA8E354B63A21D3DAA33
             BDE1E888E63355D92FA2B3C36D8FB2CD",
            "F3AA443FB107745BF4BD77CB3891674632068A10CA67E3D45DB2266FA7D1FEEB
             EFDC63ECCD1AC42EC0CB8668A4FA0AB0",
        ),
        (
            Algorithm::EcdsaP384Sha384,
            &p384,
            "94EDBB92A5ECB8AAD4736E56C691916B3F88140666CE9FA73D64C4EA95AD133C
             81A648152E44ACF96E36DD1E80FABE46",
            "99EF4AEB15F178CEA1FE40DB2603138F130E740A19624526203B6351D0A3A94F
             A329C145786E679E7B82C71A38628AC8",
        ),
    ];
    for (algorithm, key, r, s) in vectors {
        let signature = der(r, s);
        verify(algorithm, key, b"sample", &signature).unwrap();
        let swapped = verify(algorithm, key, b"sample", &der(s, r));
        assert_eq!(swapped, Err(Error::Authentication));
        assert_eq!(verify(algorithm, key, b"test", &signature), Err(Error::Authentication));
    }
}

#[test]
fn ed25519_of_rfc_8032() {
    let seed = "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7";
    let public = hex("fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025");
    let signature =
        hex("6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d1
        6f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a");
    verify(Algorithm::Ed25519, &public, &[0xaf, 0x82], &signature).unwrap();
    let pkcs8 = hex(&format!("302e020100300506032b657004220420{seed}"));
    let session = open(Algorithm::Ed25519, Key::Pkcs8(&pkcs8)).unwrap();
    assert_eq!(session.public_key().unwrap(), public);
    assert_eq!(session.sign(&[0xaf, 0x82]).unwrap(), signature);
}

fn derive(algorithm: Algorithm, cost: Cost, password: &[u8], salt: &[u8], bytes: usize) -> Vec<u8> {
    let mut out = vec![0; bytes];
    let request = &mut Request::Derive { cost, password, salt, out: &mut out };
    assert_eq!(ENGINE.run(algorithm, request), Ok(bytes));
    out
}

#[test]
fn pbkdf2_of_rfc_6070_and_rfc_7914() {
    let sha_1 = |iterations| {
        let cost = Cost::Pbkdf2 { iterations };
        derive(Algorithm::Pbkdf2Sha1, cost, b"password", b"salt", 20)
    };
    assert_eq!(sha_1(1), hex("0c60c80f961f0e71f3a9b524af6012062fe037a6"));
    assert_eq!(sha_1(4096), hex("4b007901b765489abead49d926f721d065a429c1"));
    let cost = Cost::Pbkdf2 { iterations: 1 };
    assert_eq!(
        derive(Algorithm::Pbkdf2Sha256, cost, b"passwd", b"salt", 64),
        hex("55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc
             49ca9cccf179b645991664b39d77ef317c71b845b1e30bd509112041d3a19783")
    );
    let cost = Cost::Pbkdf2 { iterations: 2 };
    assert_eq!(
        derive(Algorithm::Pbkdf2Sha512, cost, b"password", b"salt", 64),
        hex("e1d9c16aa681708a45f5c7c4e215ceb66e011a2e9f0040713f18aefdb866d53c
             f76cab2868a39b9f7840edce4fef5a82be67335c77a6068e04112754f27ccf4e")
    );
}

/// The vectors of RFC 9106 need a key and associated data, which no stored password value has;
/// these are of the reference implementation.
#[test]
fn scrypt_of_rfc_7914() {
    // The fourth vector of § 12 takes 1 GiB.
    let vectors: [(&[u8], &[u8], Cost, &str); 3] = [
        (
            b"",
            b"",
            Cost::Scrypt { log_n: 4, r: 1, p: 1 },
            "77d6576238657b203b19ca42c18a0497f16b4844e3074ae8dfdffa3fede21442
             fcd0069ded0948f8326a753a0fc81f17e8d3e0fb2e0d3628cf35e20c38d18906",
        ),
        (
            b"password",
            b"NaCl",
            Cost::Scrypt { log_n: 10, r: 8, p: 16 },
            "fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b373162
             2eaf30d92e22a3886ff109279d9830dac727afb94a83ee6d8360cbdfa2cc0640",
        ),
        (
            b"pleaseletmein",
            b"SodiumChloride",
            Cost::Scrypt { log_n: 14, r: 8, p: 1 },
            "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2
             d5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887",
        ),
    ];
    for (password, salt, cost, expected) in vectors {
        assert_eq!(derive(Algorithm::Scrypt, cost, password, salt, 64), hex(expected));
    }
}

#[test]
fn argon2_of_its_reference() {
    let cost = |lanes| Cost::Argon2 { memory_kib: 256, passes: 2, lanes };
    let vectors = [
        (
            Algorithm::Argon2id,
            cost(1),
            "9dfeb910e80bad0311fee20f9c0e2b12c17987b4cac90c2ef54d5b3021c68bfe",
        ),
        (
            Algorithm::Argon2id,
            cost(2),
            "6d093c501fd5999645e0ea3bf620d7b8be7fd2db59c20d9fff9539da2bf57037",
        ),
        (
            Algorithm::Argon2i,
            cost(1),
            "89e9029f4637b295beb027056a7336c414fadd43f6b208645281cb214a56452f",
        ),
        (
            Algorithm::Argon2i,
            cost(2),
            "4ff5ce2769a1d7f4c8a491df09d41a9fbe90e5eb02155a13e4c01e20cd4eab61",
        ),
    ];
    for (algorithm, cost, expected) in vectors {
        assert_eq!(derive(algorithm, cost, b"password", b"somesalt", 32), hex(expected));
    }
}

#[test]
fn sha_crypt_of_its_specification_and_glibc() {
    let long = b"long".repeat(50);
    let vectors: [(&[u8], &str, u32, &str, &str); 4] = [
        (
            b"Hello world!",
            "saltstring",
            5_000,
            "5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5",
            "svn8UoSVapNtMuq1ukKS4tPQd8iKwSMHWjl/O817G3uBnIFNjnQJuesI68u4OTLiBFdcbYEdFCoEOfaS35inz1",
        ),
        (
            b"Hello world!",
            "saltstringsaltstring",
            10_000,
            "3xv.VbSHBb41AL9AvLeujZkZRBAwqFMz2.opqey6IcA",
            "OW1/O6BYHV6BcXZu8QVeXbDWra3Oeqh0sbHbbMCVNSnCM/UrjmM0Dp8vOuZeHBy/YTBmSK6H9qs/y3RnOaw5v.",
        ),
        (
            &long,
            "x",
            1_000,
            "NgltIfyIJdXeyzR5Ppo3jrlZhSK5nJ.jRcmPUqgcK5A",
            "h0B6iyaXjzaWTwtLOa08oXgbeWrAQuTDnd9948CCmtLigHuE2ai6p./HBWyz.UZ4YWoFkle6H8rkQAE07JlgP1",
        ),
        (
            b"",
            "saltstring",
            5_000,
            "FdNfA4gXqvCeO6iZs7G/.wwwoywYZqo0l1pwmfWaBA7",
            "kyGrqt6gmjAdtFLPrflEFifSYLCWWq1pyx95SvqinLDy2UHmj0sTF0MSLMwxPFZc3tu5kQckI8fks0zOPda3n1",
        ),
    ];
    for (password, salt, rounds, sha_256, sha_512) in vectors {
        let cost = Cost::ShaCrypt { rounds };
        let text = |algorithm, bytes| {
            String::from_utf8(derive(algorithm, cost, password, salt.as_bytes(), bytes)).unwrap()
        };
        assert_eq!(text(Algorithm::Sha256Crypt, 43), sha_256);
        assert_eq!(text(Algorithm::Sha512Crypt, 86), sha_512);
    }
}
