//! Compression: what others compressed, round trips, too little room, and noise.

use crate::{hex, open};
use keyway_engine::{Algorithm, Error, Key, Request};
use proptest::prelude::*;

const ALL: [Algorithm; 3] = [Algorithm::Deflate, Algorithm::Zstd, Algorithm::Lz4];

fn compress(algorithm: Algorithm, data: &[u8], out: &mut [u8]) -> Result<usize, Error> {
    open(algorithm, Key::None).unwrap().run(&mut Request::Compress { data, out })
}

fn decompress(algorithm: Algorithm, data: &[u8], out: &mut [u8]) -> Result<usize, Error> {
    open(algorithm, Key::None).unwrap().run(&mut Request::Decompress { data, out })
}

fn compressed(algorithm: Algorithm, data: &[u8]) -> Vec<u8> {
    let mut out = vec![0; data.len() * 2 + 100];
    let used = compress(algorithm, data, &mut out).unwrap();
    out.truncate(used);
    out
}

/// Text of so many bytes that repeats itself, but not too soon.
fn some_text(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|index| (index % 97 * (index / 1_000 + 3) % 26) as u8 + b'a').collect()
}

/// Outputs of zlib, of the zstd program with its checksum, and by hand after the LZ4 block format:
/// five literals, a match of 13 from six bytes back, five literals.
#[test]
fn what_others_compressed() {
    for (algorithm, data) in [
        (Algorithm::Deflate, "cb48cdc9c957c8402701"),
        (Algorithm::Zstd, "28b52ffd0458650000 3068656c6c6f2001 00994b11175eae0d"),
        (Algorithm::Lz4, "68 68656c6c6f20 0600 50 68656c6c6f"),
    ] {
        let mut out = [0; 23];
        assert_eq!(decompress(algorithm, &hex(data), &mut out), Ok(23), "{algorithm}");
        assert_eq!(out, *b"hello hello hello hello", "{algorithm}");
    }
}

#[test]
fn round_trips_of_all_sizes() {
    for algorithm in ALL {
        for bytes in (0..40).chain([1_000, 1_500, 65_534, 65_535, 65_536, 300_000]) {
            let text = some_text(bytes);
            let small = compressed(algorithm, &text);
            assert!(bytes < 1_000 || small.len() < bytes / 2, "{algorithm} {bytes}");
            // Exactly the room it takes, either way; but zstd looks ahead by some bytes.
            let more = if algorithm == Algorithm::Zstd { 32 } else { 0 };
            let mut exact = vec![0; small.len() + more];
            assert_eq!(compress(algorithm, &text, &mut exact), Ok(small.len()), "{algorithm}");
            assert_eq!(exact[..small.len()], small, "{algorithm} {bytes}");
            let mut out = vec![0; bytes];
            assert_eq!(decompress(algorithm, &small, &mut out), Ok(bytes), "{algorithm}");
            assert_eq!(out, text, "{algorithm} {bytes}");
        }
    }
}

#[test]
fn too_little_room_is_an_error() {
    let no_room = Err(Error::invalid_request("there is too little room for the result"));
    for algorithm in ALL {
        let text = some_text(2_000);
        let small = compressed(algorithm, &text);
        for capacity in [0, 1, small.len() / 2, small.len() - 1] {
            let result = compress(algorithm, &text, &mut vec![0; capacity]);
            assert_eq!(result, no_room, "{algorithm} {capacity}");
        }
        for capacity in [0, 1, 1_000, 1_999] {
            let result = decompress(algorithm, &small, &mut vec![0; capacity]);
            assert_eq!(result, no_room, "{algorithm} {capacity}");
        }
        let bomb = compressed(algorithm, &vec![0; 10_000_000]);
        assert_eq!(decompress(algorithm, &bomb, &mut [0; 4_096]), no_room, "{algorithm}");
        // The next request finds nothing left of those that failed.
        let mut out = vec![0; 2_000];
        assert_eq!(decompress(algorithm, &small, &mut out), Ok(2_000));
        assert_eq!(out, text);
    }
}

#[test]
fn malformed_data_is_an_error() {
    let malformed = Err(Error::invalid_request("the compressed data is malformed"));
    for algorithm in ALL {
        let small = compressed(algorithm, &some_text(500));
        assert_eq!(decompress(algorithm, &[], &mut [0; 1_000]), malformed, "{algorithm}");
        for end in [1, 5, small.len() / 2, small.len() - 1] {
            let result = decompress(algorithm, &small[..end], &mut [0; 1_000]);
            assert_eq!(result, malformed, "{algorithm} cut at {end}");
        }
        let longer = [&small[..], b"!"].concat();
        assert_eq!(decompress(algorithm, &longer, &mut [0; 1_000]), malformed, "{algorithm}");
    }
    // A block of a type that is none; a match that begins before the text.
    assert_eq!(decompress(Algorithm::Deflate, &[7], &mut [0; 100]), malformed);
    assert_eq!(decompress(Algorithm::Lz4, &hex("10 61 0200 00"), &mut [0; 100]), malformed);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn noise_goes_there_and_back(text in proptest::collection::vec(any::<u8>(), 0..5_000)) {
        for algorithm in ALL {
            let small = compressed(algorithm, &text);
            let mut out = vec![0; text.len()];
            prop_assert_eq!(decompress(algorithm, &small, &mut out), Ok(text.len()));
            prop_assert_eq!(&out, &text);
        }
    }

    #[test]
    fn damaged_data_stays_within_its_room(
        at in any::<prop::sample::Index>(),
        byte: u8,
        noise in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        for algorithm in ALL {
            let mut damaged = compressed(algorithm, &some_text(700));
            let at = at.index(damaged.len());
            damaged[at] = byte;
            for data in [&damaged, &noise] {
                match decompress(algorithm, data, &mut [0; 1_000]) {
                    Ok(used) => prop_assert!(used <= 1_000),
                    Err(error) => prop_assert!(matches!(error, Error::InvalidRequest(_))),
                }
            }
        }
    }
}
