//! Finite-field Diffie-Hellman next to the plain arithmetic of another library.

use crate::{agree, open};
use aws_lc_rs::rand;
use keyway_engine::{Algorithm, Error, Key, Request};
use num_bigint::BigUint;

/// Each group with the shortest exponent it takes, in bytes, and the number that makes its prime.
const GROUPS: [(Algorithm, usize, u32); 3] = [
    (Algorithm::Ffdhe2048, 29, 560_316),
    (Algorithm::Ffdhe3072, 35, 2_625_351),
    (Algorithm::Ffdhe4096, 41, 5_736_041),
];

fn bytes(algorithm: Algorithm) -> usize {
    algorithm.output_bytes().unwrap()
}

/// 2^b - 2^(b-64) + (floor(2^(b-130) e) + X) 2^64 - 1 (RFC 7919 appendix A).
fn prime(algorithm: Algorithm, x: u32) -> BigUint {
    let bits = 8 * bytes(algorithm);
    let one = BigUint::from(1u8);
    // e is the sum of 1/n!, here in units of 2^-(b-130+64).
    let (mut e, mut term) = (BigUint::ZERO, &one << (bits - 130 + 64));
    for n in 1u32.. {
        if term == BigUint::ZERO {
            break;
        }
        e += &term;
        term /= n;
    }
    (&one << bits) - (&one << (bits - 64)) + (((e >> 64) + x) << 64) - one
}

fn padded(number: &BigUint, bytes: usize) -> Vec<u8> {
    let digits = number.to_bytes_be();
    [vec![0; bytes - digits.len()], digits].concat()
}

#[test]
fn parties_agree_and_so_does_plain_arithmetic() {
    for (algorithm, exponent_bytes, x) in GROUPS {
        let p = prime(algorithm, x);
        let power = |base: &BigUint, exponent: &[u8]| {
            padded(&base.modpow(&BigUint::from_bytes_be(exponent), &p), bytes(algorithm))
        };
        for length in [exponent_bytes, exponent_bytes + 3, 48] {
            let (mut ours, mut theirs) = (vec![0; length], vec![0; exponent_bytes]);
            rand::fill(&mut ours).unwrap();
            rand::fill(&mut theirs).unwrap();
            let us = open(algorithm, Key::Secret(&ours)).unwrap();
            let them = open(algorithm, Key::Secret(&theirs)).unwrap();
            let (our_share, their_share) = (us.public_key().unwrap(), them.public_key().unwrap());
            assert_eq!(our_share, power(&BigUint::from(2u8), &ours));
            let secret = agree(&us, &their_share).unwrap();
            assert_eq!(secret, power(&BigUint::from_bytes_be(&their_share), &ours));
            assert_eq!(secret, agree(&them, &our_share).unwrap());
        }
        // The exponents are not known.
        let us = open(algorithm, Key::Generate).unwrap();
        let them = open(algorithm, Key::Generate).unwrap();
        let (our_share, their_share) = (us.public_key().unwrap(), them.public_key().unwrap());
        assert_ne!(our_share, their_share);
        assert_eq!(agree(&us, &their_share).unwrap(), agree(&them, &our_share).unwrap());
    }
}

#[test]
fn shares_and_secrets_keep_their_leading_zeros() {
    for (algorithm, exponent_bytes, _) in GROUPS {
        let exponent = padded(&BigUint::from(100u8), exponent_bytes);
        let session = open(algorithm, Key::Secret(&exponent)).unwrap();
        let number = |log: usize| padded(&(BigUint::from(1u8) << log), bytes(algorithm));
        assert_eq!(session.public_key().unwrap(), number(100));
        assert_eq!(agree(&session, &number(1)).unwrap(), number(100));
        assert_eq!(agree(&session, &number(3)).unwrap(), number(300));
    }
}

#[test]
fn shares_out_of_range_fail_authentication() {
    for (algorithm, _, x) in GROUPS {
        let (p, bytes) = (prime(algorithm, x), bytes(algorithm));
        let session = open(algorithm, Key::Generate).unwrap();
        let largest = (BigUint::from(1u8) << (8 * bytes)) - 1u8;
        let number = |number: u8| BigUint::from(number);
        for share in [number(0), number(1), &p - 1u8, p.clone(), &p + 1u8, &p + 2u8, largest] {
            assert_eq!(agree(&session, &padded(&share, bytes)), Err(Error::Authentication));
        }
        for share in [number(2), number(3), &p - 2u8] {
            assert!(agree(&session, &padded(&share, bytes)).is_ok());
        }
        let share = open(algorithm, Key::Generate).unwrap().public_key().unwrap();
        for other in [&[][..], &share[1..], &[&[0], &share[..]].concat()] {
            assert_eq!(agree(&session, other), Err(Error::Authentication));
        }
        let no_room = &mut Request::PublicKey { out: &mut vec![0; bytes - 1] };
        assert!(matches!(session.run(no_room), Err(Error::InvalidRequest(_))));
    }
}

#[test]
fn exponents_have_a_length() {
    for (algorithm, exponent_bytes, _) in GROUPS {
        for length in [exponent_bytes, 48] {
            assert!(open(algorithm, Key::Secret(&vec![7; length])).is_ok());
            let zero = open(algorithm, Key::Secret(&vec![0; length]));
            assert!(matches!(zero, Err(Error::InvalidKey(_))));
        }
        for length in [0, exponent_bytes - 1, 49, bytes(algorithm)] {
            let unfit = open(algorithm, Key::Secret(&vec![7; length]));
            assert!(matches!(unfit, Err(Error::InvalidKey(_))), "{length}");
        }
        for key in [Key::None, Key::Pkcs8(&[7; 29]), Key::Sec1(&[7; 29])] {
            assert!(matches!(open(algorithm, key), Err(Error::Unsupported(_))));
        }
    }
}
