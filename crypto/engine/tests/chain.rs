//! Chains step by step, on a driver whose arithmetic can be done in one's head: encryption adds one
//! to every byte, the MAC is the sum of the bytes, and compression drops every zero.

use keyway_engine::{
    Algorithm, Direction, Driver, DriverSession, Engine, Error, Iv, Key, Parameters, Part, Request,
    Session, Step,
};
use proptest::prelude::*;
use std::ops::Range;
use std::sync::Arc;

struct Toy;

impl Driver for Toy {
    fn name(&self) -> &str {
        "chain-toy"
    }

    fn supports(&self, steps: &[Algorithm]) -> bool {
        steps.len() == 1
    }

    fn open(&self, _: &[Step<'_>]) -> Result<Box<dyn DriverSession>, Error> {
        Ok(Box::new(Toy))
    }
}

impl DriverSession for Toy {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        match request {
            Request::Encrypt { data, .. } => {
                data.iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
                Ok(data.len())
            }
            Request::Decrypt { data, .. } => {
                data.iter_mut().for_each(|byte| *byte = byte.wrapping_sub(1));
                Ok(data.len())
            }
            Request::Mac { data, out } => {
                let bytes = data.iter().flat_map(|part| part.iter());
                out.fill(bytes.fold(7, |sum: u8, byte| sum.wrapping_add(*byte)));
                Ok(out.len())
            }
            Request::Compress { data, out } => {
                let kept: Vec<u8> = data.iter().copied().filter(|byte| *byte != 0).collect();
                out.get_mut(..kept.len())
                    .ok_or(Error::invalid_request("room"))?
                    .copy_from_slice(&kept);
                Ok(kept.len())
            }
            Request::Decompress { data, out } => {
                out.get_mut(..data.len())
                    .ok_or(Error::invalid_request("room"))?
                    .copy_from_slice(data);
                Ok(data.len())
            }
            _ => Err(Error::invalid_request("not here")),
        }
    }
}

fn session(algorithms: &[Algorithm]) -> Session {
    let engine = Engine::builder().driver(Arc::new(Toy)).build();
    let key = |algorithm: &Algorithm| match algorithm.key_bytes() {
        Some(16) => Key::Secret(&[0; 16]),
        _ => Key::Secret(&[0; 20]),
    };
    let steps: Vec<_> =
        algorithms.iter().map(|one| Step { algorithm: *one, key: key(one) }).collect();
    engine.session(Parameters::chain(&steps)).unwrap()
}

const CTR: Algorithm = Algorithm::Aes128Ctr;
const MAC: Algorithm = Algorithm::HmacSha1;
const ZIP: Algorithm = Algorithm::Lz4;

fn cipher(text: Range<usize>) -> Part {
    Part::Cipher { iv: Iv::Given([0; 16]), text }
}

#[test]
fn what_lies_behind_a_compressed_text_moves_with_its_end() {
    let session = session(&[ZIP, CTR, MAC]);
    // Header, text with three zeros, tag.
    let mut data = *b"HH\x01\0\x02\0\0\x03TTTT";
    let parts =
        [Part::Compression { text: 2..8 }, cipher(2..8), Part::Mac { over: 0..8, tag: 8..12 }];
    let (direction, length) = (Direction::Protect, data.len());
    let sealed =
        session.run(&mut Request::Chain { direction, data: &mut data, length, parts: &parts });
    assert_eq!(sealed, Ok(9));
    let sum = b'H'.wrapping_mul(2).wrapping_add(7 + 2 + 3 + 4);
    assert_eq!(data, [b'H', b'H', 2, 3, 4, sum, sum, sum, sum, 0, 0, 0]);
    let parts =
        [Part::Compression { text: 2..5 }, cipher(2..5), Part::Mac { over: 0..5, tag: 5..9 }];
    let direction = Direction::Unprotect;
    let mut wrong = data;
    wrong[0] ^= 1;
    let before = wrong;
    let request = &mut Request::Chain { direction, data: &mut wrong, length: 9, parts: &parts };
    assert_eq!((session.run(request), wrong), (Err(Error::Authentication), before));
    let request = &mut Request::Chain { direction, data: &mut data, length: 9, parts: &parts };
    assert_eq!(session.run(request), Ok(9));
    assert_eq!(data[..5], [b'H', b'H', 1, 2, 3]);
}

#[test]
fn a_wrong_tag_inside_the_encryption_leaves_nothing() {
    let session = session(&[MAC, CTR]);
    let mut data = [5; 12];
    let parts = [Part::Mac { over: 0..8, tag: 8..12 }, cipher(0..12)];
    let length = data.len();
    let direction = Direction::Unprotect;
    let request = &mut Request::Chain { direction, data: &mut data, length, parts: &parts };
    assert_eq!((session.run(request), data), (Err(Error::Authentication), [0; 12]));
}

fn position() -> impl Strategy<Value = usize> {
    prop_oneof![8 => 0..40usize, 1 => Just(usize::MAX), 1 => Just(usize::MAX - 3)]
}

fn part(algorithm: Algorithm) -> BoxedStrategy<Part> {
    let range = || (position(), position()).prop_map(|(start, end)| start..end);
    let iv = prop_oneof![Just(Iv::Given([0; 16])), position().prop_map(Iv::At)];
    match algorithm {
        CTR => (iv, range()).prop_map(|(iv, text)| Part::Cipher { iv, text }).boxed(),
        MAC => (range(), range()).prop_map(|(over, tag)| Part::Mac { over, tag }).boxed(),
        _ => range().prop_map(|text| Part::Compression { text }).boxed(),
    }
}

fn request() -> impl Strategy<Value = (Vec<Algorithm>, Vec<Part>)> {
    prop::collection::vec(prop::sample::select(vec![CTR, MAC, ZIP]), 2..=4).prop_flat_map(|steps| {
        let parts: Vec<_> = steps.iter().map(|step| part(*step)).collect();
        (Just(steps), parts)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    /// Whatever the positions, there is an answer, and lengths fit the buffer.
    #[test]
    fn no_positions_do_harm(
        (steps, parts) in request(),
        mut data in prop::collection::vec(0..3u8, 0..40),
        spare in 0..10usize,
        protect in any::<bool>(),
    ) {
        let direction = if protect { Direction::Protect } else { Direction::Unprotect };
        let length = data.len().saturating_sub(spare);
        let whole = data.len();
        let request = &mut Request::Chain { direction, data: &mut data, length, parts: &parts };
        if let Ok(length) = session(&steps).run(request) {
            prop_assert!(length <= whole);
        }
    }
}
