//! Derivation from passwords, slow on purpose.

use super::session::{Opened, failed, misfit, opened, put};
use argon2::{Argon2, Params, Version};
use aws_lc_rs::hmac;
use aws_lc_rs::pbkdf2;
use blowfish::Blowfish;
use keyway_engine::limits::{DERIVED_BYTES_MAX, PEPPER_BYTES_MIN};
use keyway_engine::{Algorithm, Cost, DriverSession, Effort, Error, Key, Request};
use md5::{Digest, Md5};
use std::num::NonZeroU32;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// The input of the derivation where there is a pepper: an HMAC-SHA-256, in bytes.
const PEPPERED_BYTES: usize = 32;

/// The libraries' form of an algorithm.
#[derive(Clone, Copy)]
pub(super) enum Named {
    Pbkdf2(pbkdf2::Algorithm),
    Argon2(argon2::Algorithm),
    Scrypt,
    Bcrypt,
    Md5Crypt,
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
        Algorithm::Bcrypt => Some(Named::Bcrypt),
        Algorithm::Md5Crypt => Some(Named::Md5Crypt),
        Algorithm::Sha256Crypt => Some(Named::Sha256Crypt),
        Algorithm::Sha512Crypt => Some(Named::Sha512Crypt),
        _ => None,
    }
}

pub(super) fn open(algorithm: Algorithm, key: Key<'_>) -> Opened {
    match (named(algorithm), key) {
        (Some(named), Key::None) => opened(Session { named, pepper: None }),
        (Some(_), Key::Secret(pepper)) if pepper.len() < PEPPER_BYTES_MIN => {
            Err(Error::InvalidKey("a pepper has 16 bytes at least"))
        }
        (Some(named), Key::Secret(pepper)) => {
            let pepper = Some(hmac::Key::new(hmac::HMAC_SHA256, pepper));
            opened(Session { named, pepper })
        }
        _ => Err(Error::Unsupported(algorithm)),
    }
}

struct Session {
    named: Named,
    pepper: Option<hmac::Key>,
}

impl DriverSession for Session {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        match request {
            Request::Derive { cost, password, salt, out } => {
                self.derive(*cost, password, salt, out)
            }
            // It remembers nothing.
            Request::VerifyPassword { effort: Effort::Recall, .. } => Ok(0),
            Request::VerifyPassword { cost, password, salt, expected, .. } => {
                let mut derived = Zeroizing::new([0; DERIVED_BYTES_MAX]);
                let derived = derived.get_mut(..expected.len()).unwrap_or_default();
                let used = self.derive(*cost, password, salt, derived)?;
                match used == expected.len() && bool::from(derived.ct_eq(expected)) {
                    true => Ok(1),
                    false => Err(Error::Authentication),
                }
            }
            request => misfit(request),
        }
    }
}

impl Session {
    fn derive(
        &self,
        cost: Cost,
        password: &[u8],
        salt: &[u8],
        out: &mut [u8],
    ) -> Result<usize, Error> {
        let mut peppered = Zeroizing::new([0; PEPPERED_BYTES]);
        let password = match &self.pepper {
            None => password,
            Some(pepper) => &*hmac::sign_to_buffer(pepper, password, &mut *peppered)
                .map_err(|_| failed("HMAC failed"))?,
        };
        match (self.named, cost) {
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
            (Named::Bcrypt, Cost::Bcrypt { log_rounds }) => bcrypt(log_rounds, password, salt, out),
            (Named::Md5Crypt, Cost::Md5Crypt) => {
                put(&*crypt_text::<22>(&*md5_crypt(password, salt), &MD5_ORDER), out)
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

/// The text that bcrypt encrypts, as numbers: "OrpheanBeholderScryDoubt".
const BCRYPT_TEXT: [[u32; 2]; 3] =
    [[0x4f72_7068, 0x6561_6e42], [0x6568_6f6c, 0x6465_7253], [0x6372_7944, 0x6f75_6274]];

/// "A Future-Adaptable Password Scheme", § 5; the key as OpenBSD's `$2b$` makes it.
fn bcrypt(log_rounds: u32, password: &[u8], salt: &[u8], out: &mut [u8]) -> Result<usize, Error> {
    let mut key = Zeroizing::new([0; 72]);
    let length = password.len().min(key.len());
    for (place, byte) in key.iter_mut().zip(password) {
        *place = *byte;
    }
    // The NUL at a shorter one's end is part of the key.
    let key = key.get(..(length + 1).min(72)).unwrap_or_default();
    let mut state: Blowfish = Blowfish::bc_init_state();
    state.salted_expand_key(salt, key);
    for _ in 0..1_u64 << log_rounds {
        state.bc_expand_key(key);
        state.bc_expand_key(salt);
    }
    let mut hash = Zeroizing::new([0; 24]);
    for (pair, place) in BCRYPT_TEXT.iter().zip(hash.chunks_exact_mut(8)) {
        let [left, right] = (0..64).fold(*pair, |pair, _| state.bc_encrypt(pair));
        place.copy_from_slice(&(u64::from(left) << 32 | u64::from(right)).to_be_bytes());
    }
    // The last byte is left out, by all who write it down.
    put(hash.get(..23).unwrap_or_default(), out)
}

/// Poul-Henning Kamp's, of FreeBSD 2.0: 1,000 rounds of MD5.
fn md5_crypt(password: &[u8], salt: &[u8]) -> Zeroizing<[u8; 16]> {
    let md5 = |parts: &[&[u8]]| {
        let mut context = Md5::new();
        parts.iter().for_each(|part| context.update(part));
        Zeroizing::new(<[u8; 16]>::from(context.finalize()))
    };
    let inner = md5(&[password, salt, password]);
    let mut context = Md5::new();
    context.update(password);
    context.update(b"$1$");
    context.update(salt);
    for chunk in password.chunks(16) {
        context.update(inner.get(..chunk.len()).unwrap_or_default());
    }
    let mut bits = password.len();
    while bits > 0 {
        let first = password.get(..1).unwrap_or_default();
        context.update(if bits & 1 == 1 { &[0][..] } else { first });
        bits >>= 1;
    }
    let mut hash = Zeroizing::new(<[u8; 16]>::from(context.finalize()));
    for round in 0..1_000 {
        let (hashed, odd) = (hash.as_slice(), round % 2 == 1);
        hash = md5(&[
            if odd { password } else { hashed },
            if round % 3 == 0 { &[] } else { salt },
            if round % 7 == 0 { &[] } else { password },
            if odd { hashed } else { password },
        ]);
    }
    hash
}

/// The order in which crypt(3) writes the bytes of the hash, three to four characters.
const MD5_ORDER: [u8; 16] = [12, 6, 0, 13, 7, 1, 14, 8, 2, 15, 9, 3, 5, 10, 4, 11];

/// As [`MD5_ORDER`].
const SHA_256_ORDER: [u8; 32] = [
    20, 10, 0, 11, 1, 21, 2, 22, 12, 23, 13, 3, 14, 4, 24, 5, 25, 15, 26, 16, 6, 17, 7, 27, 8, 28,
    18, 29, 19, 9, 30, 31,
];

/// As [`MD5_ORDER`].
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
