//! The software driver, through the engine, against other people's vectors and against misuse.

mod compression;
mod encryption;
mod ffdh;
mod generate;
mod misuse;
mod signing;
mod symmetric;
mod vectors;
mod wycheproof;

use keyway_engine::{Algorithm, Engine, Error, Key, Parameters, Request, Session};
use std::sync::LazyLock;

/// With the null driver, which must not be chosen, and with what is off unless enabled.
static ENGINE: LazyLock<Engine> = LazyLock::new(|| {
    let engine = Engine::builder().legacy(true);
    engine.driver(keyway_drivers::software()).driver(keyway_test_drivers::null()).build()
});

fn open(algorithm: Algorithm, key: Key<'_>) -> Result<Session, Error> {
    ENGINE.session(Parameters::new(algorithm, key))
}

/// Bytes from hexadecimal digits; blanks are for the reader.
fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<_> = digits.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

fn digest(algorithm: Algorithm, data: &[&[u8]]) -> Vec<u8> {
    let mut out = vec![0; algorithm.output_bytes().unwrap()];
    ENGINE.digest(algorithm, data, &mut out).unwrap();
    out
}

fn mac(session: &Session, data: &[&[u8]]) -> Vec<u8> {
    let mut out = vec![0; session.algorithm().output_bytes().unwrap()];
    let used = session.run(&mut Request::Mac { data, out: &mut out }).unwrap();
    assert_eq!(used, out.len());
    out
}

fn expand(session: &Session, info: &[&[u8]], bytes: usize) -> Result<Vec<u8>, Error> {
    let mut out = vec![0; bytes];
    let used = session.run(&mut Request::Expand { info, out: &mut out })?;
    assert_eq!(used, bytes);
    Ok(out)
}

fn agree(session: &Session, peer: &[u8]) -> Result<Vec<u8>, Error> {
    let mut out = vec![0; session.algorithm().output_bytes().unwrap()];
    let used = session.run(&mut Request::Agree { peer, out: &mut out })?;
    assert_eq!(used, out.len());
    Ok(out)
}

fn verify(
    algorithm: Algorithm,
    public_key: &[u8],
    message: &[u8],
    signature: &[u8],
) -> Result<(), Error> {
    let used = ENGINE.run(
        algorithm,
        &mut Request::Verify { parameters: Default::default(), public_key, message, signature },
    )?;
    assert_eq!(used, 0);
    Ok(())
}
