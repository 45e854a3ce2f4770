//! RSAES-PKCS1-v1_5 whose padding is wrong decrypts to the message that draft-irtf-cfrg-rsa-guidance derives; the
//! vectors are those of the draft's authors, which OpenSSL 3.2 and NSS pass too.

use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::rsa::KeySize;
use keyway_rsa::{EncryptionPadding, Failed, PrivateKey, PublicKey};

fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<_> = digits.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

fn decrypt(key: &PrivateKey, ciphertext: &[u8]) -> Result<Vec<u8>, Failed> {
    let mut out = vec![0; key.modulus_bytes()];
    let used = key.decrypt(EncryptionPadding::Pkcs1, ciphertext, &mut out)?;
    assert!(out[used..].iter().all(|byte| *byte == 0), "nothing is left behind the message");
    out.truncate(used);
    Ok(out)
}

#[test]
fn the_drafts_vectors() {
    let mut lines = include_str!("rejection.txt").lines().filter(|line| !line.starts_with('#'));
    let (_, key) = lines.next().unwrap().split_once(' ').unwrap();
    let key = PrivateKey::from_pkcs1(&hex(key)).unwrap();
    let mut vectors = 0;
    while let Some(ciphertext) = lines.next() {
        let expected = match lines.next().unwrap().split_once(' ').unwrap() {
            ("text", text) => text.as_bytes().to_vec(),
            (_, digits) => hex(digits),
        };
        let (_, ciphertext) = ciphertext.split_once(' ').unwrap();
        assert_eq!(decrypt(&key, &hex(ciphertext)), Ok(expected), "{ciphertext}");
        vectors += 1;
    }
    assert_eq!(vectors, 12);
}

#[test]
fn all_ciphertexts_that_are_numbers_of_the_key_decrypt() {
    let pair = aws_lc_rs::rsa::KeyPair::generate(KeySize::Rsa2048).unwrap();
    let pkcs8: aws_lc_rs::encoding::Pkcs8V1Der<'_> = pair.as_der().unwrap();
    let key = PrivateKey::from_pkcs8(pkcs8.as_ref()).unwrap();
    let public = aws_lc_rs::signature::KeyPair::public_key(&pair).as_ref().to_vec();
    let public = PublicKey::from_der(&public).unwrap();
    for length in [0, 1, 48, 245] {
        let message = vec![7; length];
        let mut sealed = vec![0; 256];
        assert_eq!(public.encrypt(EncryptionPadding::Pkcs1, &message, &mut sealed), Ok(256));
        assert_eq!(decrypt(&key, &sealed), Ok(message.clone()));
        for bit in [0, 77, 2047] {
            let mut damaged = sealed.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            if let Ok(other) = decrypt(&key, &damaged) {
                assert_eq!(Ok(&other), decrypt(&key, &damaged).as_ref(), "it is always the same");
                assert!(other.len() <= 245 && other != message);
            }
        }
    }
    let too_long = public.encrypt(EncryptionPadding::Pkcs1, &[7; 246], &mut [0; 256]);
    assert_eq!(too_long, Err(Failed));
    for wrong in [vec![0xff; 256], vec![1; 255], vec![1; 257], vec![]] {
        assert_eq!(decrypt(&key, &wrong), Err(Failed));
    }
}
