//! Public keys in messages: a SubjectPublicKeyInfo (RFC 5280 § 4.1), in DER.

use crate::der::{BIT_STRING, SEQUENCE, element, split};
use keyway_engine::Algorithm;

/// A kind of public keys: the algorithms that use them, and its AlgorithmIdentifier.
type KeyKind = (&'static [Algorithm], &'static [u8]);

/// RFC 3279 § 2.3.1, RFC 5480 § 2.1.1, RFC 8410 § 3, RFC 9881 § 2, RFC 9935 § 3.
static KINDS: [KeyKind; 12] = [
    (
        &[
            Algorithm::RsaPkcs1Sha256,
            Algorithm::RsaPkcs1Sha384,
            Algorithm::RsaPkcs1Sha512,
            Algorithm::RsaPssSha256,
            Algorithm::RsaPssSha384,
            Algorithm::RsaPssSha512,
            Algorithm::RsaOaepSha1,
            Algorithm::RsaOaepSha256,
            Algorithm::RsaPkcs1,
            Algorithm::RsaPss,
            Algorithm::RsaOaep,
            Algorithm::RsaesPkcs1,
        ],
        b"\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01\x05\x00",
    ),
    (
        &[
            Algorithm::EcdsaP256Sha256,
            Algorithm::EcdsaP256Sha384,
            Algorithm::EcdsaP256,
            Algorithm::EcdhP256,
        ],
        b"\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07",
    ),
    (
        &[
            Algorithm::EcdsaP384Sha384,
            Algorithm::EcdsaP384Sha256,
            Algorithm::EcdsaP384,
            Algorithm::EcdhP384,
        ],
        b"\x30\x10\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x05\x2b\x81\x04\x00\x22",
    ),
    (
        &[Algorithm::EcdsaP521, Algorithm::EcdhP521],
        b"\x30\x10\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x05\x2b\x81\x04\x00\x23",
    ),
    (&[Algorithm::Ed25519], b"\x30\x05\x06\x03\x2b\x65\x70"),
    (&[Algorithm::X25519], b"\x30\x05\x06\x03\x2b\x65\x6e"),
    (&[Algorithm::MlDsa44], b"\x30\x0b\x06\x09\x60\x86\x48\x01\x65\x03\x04\x03\x11"),
    (&[Algorithm::MlDsa65], b"\x30\x0b\x06\x09\x60\x86\x48\x01\x65\x03\x04\x03\x12"),
    (&[Algorithm::MlDsa87], b"\x30\x0b\x06\x09\x60\x86\x48\x01\x65\x03\x04\x03\x13"),
    (&[Algorithm::MlKem512], b"\x30\x0b\x06\x09\x60\x86\x48\x01\x65\x03\x04\x04\x01"),
    (&[Algorithm::MlKem768], b"\x30\x0b\x06\x09\x60\x86\x48\x01\x65\x03\x04\x04\x02"),
    (&[Algorithm::MlKem1024], b"\x30\x0b\x06\x09\x60\x86\x48\x01\x65\x03\x04\x04\x03"),
];

/// A public key of an algorithm, as [`Session::public_key`](keyway_engine::Session::public_key) gives it, as a
/// SubjectPublicKeyInfo; `None` for an algorithm that has none here, like Diffie-Hellman in a finite field.
pub fn subject_public_key_info(algorithm: Algorithm, key: &[u8]) -> Option<Vec<u8>> {
    let (_, identifier) = KINDS.iter().find(|(algorithms, _)| algorithms.contains(&algorithm))?;
    let mut bits = vec![0];
    bits.extend(key);
    Some(element(SEQUENCE, &[identifier, &element(BIT_STRING, &[&bits])]))
}

/// Reads a SubjectPublicKeyInfo: the algorithms that its key could be for, and the key as the engine has it. `None`
/// if it is of no kind that is known here, or has anything but the one way to write it.
pub fn read_subject_public_key_info(der: &[u8]) -> Option<(&'static [Algorithm], &[u8])> {
    let (content, []) = split(SEQUENCE, der)? else { return None };
    let rest_of = |(algorithms, identifier): &KeyKind| {
        content.strip_prefix(*identifier).map(|rest| (*algorithms, rest))
    };
    let (algorithms, rest) = KINDS.iter().find_map(rest_of)?;
    match split(BIT_STRING, rest)? {
        ([0, key @ ..], []) => Some((algorithms, key)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for (kind, length) in
            (0..KINDS.len()).zip([0, 1, 90, 107, 108, 130, 200, 256, 257, 1568, 2592, 4096])
        {
            let key = vec![7; length];
            for algorithm in KINDS[kind].0 {
                let der = subject_public_key_info(*algorithm, &key).unwrap();
                let read = read_subject_public_key_info(&der).unwrap();
                assert_eq!(read, (KINDS[kind].0, &key[..]));
            }
        }
        assert_eq!(subject_public_key_info(Algorithm::Ffdhe2048, &[7]), None);
        assert_eq!(subject_public_key_info(Algorithm::HmacSha256, &[7]), None);
    }

    /// The example of RFC 8410 § 10.1.
    #[test]
    fn an_example_is_read() {
        const DER: &[u8] = b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00\
            \x19\xbf\x44\x09\x69\x84\xcd\xfe\x85\x41\xba\xc1\x67\xdc\x3b\x96\
            \xc8\x50\x86\xaa\x30\xb6\xb6\xcb\x0c\x5c\x38\xad\x70\x31\x66\xe1";
        assert_eq!(
            read_subject_public_key_info(DER),
            Some((&[Algorithm::Ed25519][..], &DER[12..]))
        );
        assert_eq!(subject_public_key_info(Algorithm::Ed25519, &DER[12..]).as_deref(), Some(DER));
        for at in 0..DER.len() {
            assert_eq!(read_subject_public_key_info(&DER[..at]), None);
        }
        assert_eq!(read_subject_public_key_info(&[DER, &[0]].concat()), None);
    }

    /// A length that has a shorter form is not DER.
    #[test]
    fn other_ways_to_write_it_are_refused() {
        let der = subject_public_key_info(Algorithm::Ed25519, &[7; 32]).unwrap();
        for long in [&b"\x30\x81\x2a"[..], b"\x30\x82\x00\x2a", b"\x30\x80"] {
            assert_eq!(read_subject_public_key_info(&[long, &der[2..]].concat()), None);
        }
    }
}
