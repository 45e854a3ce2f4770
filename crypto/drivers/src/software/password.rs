//! Derivation from passwords, slow on purpose.

use super::{Opened, failed, misfit, opened, put};
use argon2::{Argon2, Params, Version};
use aws_lc_rs::pbkdf2;
use keyway_engine::{Algorithm, Cost, DriverSession, Error, Key, Request};
use std::num::NonZeroU32;
use zeroize::Zeroizing;

/// What an algorithm is to the libraries.
#[derive(Clone, Copy)]
pub(super) enum Named {
    Pbkdf2(pbkdf2::Algorithm),
    Argon2(argon2::Algorithm),
    Scrypt,
    Sha256Crypt,
    Sha512Crypt,
}

pub(super) fn named(algorithm: Algorithm) -> Option<Named> {
    match algorithm {
        Algorithm::Pbkdf2Sha1 => Some(Named::Pbkdf2(pbkdf2::PBKDF2_HMAC_SHA1)),
        Algorithm::Pbkdf2Sha256 => Some(Named::Pbkdf2(pbkdf2::PBKDF2_HMAC_SHA256)),
        Algorithm::Pbkdf2Sha512 => Some(Named::Pbkdf2(pbkdf2::PBKDF2_HMAC_SHA512)),
        Algorithm::Argon2id => Some(Named::Argon2(argon2::Algorithm::Argon2id)),
        Algorithm::Argon2i => Some(Named::Argon2(argon2::Algorithm::Argon2i)),
        Algorithm::Scrypt => Some(Named::Scrypt),
        Algorithm::Sha256Crypt => Some(Named::Sha256Crypt),
        Algorithm::Sha512Crypt => Some(Named::Sha512Crypt),
        _ => None,
    }
}

pub(super) fn open(algorithm: Algorithm, key: Key<'_>) -> Opened {
    match (named(algorithm), key) {
        (Some(named), Key::None) => opened(Session(named)),
        _ => Err(Error::Unsupported(algorithm)),
    }
}

struct Session(Named);

impl DriverSession for Session {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        let Request::Derive { cost, password, salt, out } = request else {
            return misfit(request);
        };
        match (self.0, *cost) {
            (Named::Pbkdf2(named), Cost::Pbkdf2 { iterations }) => {
                let iterations = NonZeroU32::new(iterations)
                    .ok_or(Error::invalid_request("it needs an iteration"))?;
                pbkdf2::derive(named, iterations, salt, password, out);
                Ok(out.len())
            }
            (Named::Argon2(named), Cost::Argon2 { memory_kib, passes, lanes }) => {
                let params = Params::new(memory_kib, passes, lanes, Some(out.len()))
                    .map_err(argon2_error)?;
                Argon2::new(named, Version::V0x13, params)
                    .hash_password_into(password, salt, out)
                    .map_err(argon2_error)?;
                Ok(out.len())
            }
            (Named::Scrypt, Cost::Scrypt { log_n, r, p }) => {
                let params = scrypt::Params::new(log_n, r, p)
                    .map_err(|_| Error::invalid_request("the cost is outside its limits"))?;
                scrypt::scrypt(password, salt, &params, out)
                    .map_err(|_| Error::invalid_request("the output length is wrong"))?;
                Ok(out.len())
            }
            (Named::Sha256Crypt, Cost::ShaCrypt { rounds }) => {
                let hash = sha_crypt::sha256_crypt(password, salt, sha_crypt_rounds(rounds)?);
                let hash = Zeroizing::new(hash);
                put(&*crypt_text::<43>(&*hash, &SHA_256_ORDER), out)
            }
            (Named::Sha512Crypt, Cost::ShaCrypt { rounds }) => {
                let hash = sha_crypt::sha512_crypt(password, salt, sha_crypt_rounds(rounds)?);
                let hash = Zeroizing::new(hash);
                put(&*crypt_text::<86>(&*hash, &SHA_512_ORDER), out)
            }
            _ => Err(Error::invalid_request("the cost is another algorithm's")),
        }
    }
}

fn argon2_error(error: argon2::Error) -> Error {
    match error {
        argon2::Error::OutOfMemory => failed("there is too little memory"),
        argon2::Error::SaltTooShort => Error::invalid_request("the salt is too short"),
        argon2::Error::OutputTooShort => Error::invalid_request("the output is too short"),
        _ => Error::invalid_request("Argon2 does not take it"),
    }
}

fn sha_crypt_rounds(rounds: u32) -> Result<sha_crypt::Params, Error> {
    sha_crypt::Params::new(rounds)
        .map_err(|_| Error::invalid_request("the cost is outside its limits"))
}

/// The order in which crypt(3) writes the bytes of the hash, three to four characters.
const SHA_256_ORDER: [u8; 32] = [
    20, 10, 0, 11, 1, 21, 2, 22, 12, 23, 13, 3, 14, 4, 24, 5, 25, 15, 26, 16, 6, 17, 7, 27, 8, 28,
    18, 29, 19, 9, 30, 31,
];

/// As [`SHA_256_ORDER`].
const SHA_512_ORDER: [u8; 64] = [
    42, 21, 0, 1, 43, 22, 23, 2, 44, 45, 24, 3, 4, 46, 25, 26, 5, 47, 48, 27, 6, 7, 49, 28, 29, 8,
    50, 51, 30, 9, 10, 52, 31, 32, 11, 53, 54, 33, 12, 13, 55, 34, 35, 14, 56, 57, 36, 15, 16, 58,
    37, 38, 17, 59, 60, 39, 18, 19, 61, 40, 41, 20, 62, 63,
];

/// The characters of crypt(3) for a hash: six bits each, low bits first.
fn crypt_text<const CHARACTERS: usize>(hash: &[u8], order: &[u8]) -> Zeroizing<[u8; CHARACTERS]> {
    const ALPHABET: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut text = Zeroizing::new([b'.'; CHARACTERS]);
    let mut places = text.iter_mut();
    for group in order.chunks(3) {
        let byte = |index: &u8| u32::from(hash.get(usize::from(*index)).copied().unwrap_or(0));
        let mut bits = group.iter().rev().fold(0, |bits, index| bits << 8 | byte(index));
        for place in places.by_ref().take(group.len() + 1) {
            if let Some(character) = ALPHABET.get((bits & 63) as usize) {
                *place = *character;
            }
            bits >>= 6;
        }
    }
    text
}
