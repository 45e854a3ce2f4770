//! The driver that does everything on the caller's processor.
//!
//! One file for each kind of algorithm; each has a table from the engine's names to the library's
//! and a session type.

mod aead;
mod cbc_mac;
mod cipher;
#[cfg(feature = "compression")]
mod compression;
mod digest;
mod encryption;
mod exchange;
#[cfg(feature = "ffdh")]
mod ffdh;
mod generate;
mod hkdf;
mod kem;
mod mac;
#[cfg(feature = "passwords")]
mod password;
mod random;
mod session;
mod signature;
#[cfg(feature = "xts")]
mod xts;

#[cfg(not(feature = "compression"))]
use absent as compression;
#[cfg(not(feature = "ffdh"))]
use absent as ffdh;
#[cfg(not(feature = "passwords"))]
use absent as password;
#[cfg(not(feature = "xts"))]
use absent as xts;

pub use generate::generate_private_key;

use crate::simd::{is_packet, open_portable};
use keyway_engine::{Algorithm, Driver, DriverSession, DriverStream, Error, Kind, Step};
use session::NAME;
use std::sync::Arc;

/// A driver, `software`, that does every algorithm for which this crate's features were left on.
///
/// It takes these keys; every other pair is [`Error::Unsupported`].
/// - AEAD, ciphers, MAC: a secret; one of XTS whose halves are the same, and one of Triple DES that
///   is weak or has two parts that are the same, is [`Error::InvalidKey`].
/// - QUIC's packets: packet keys. Its masks: a secret.
/// - HKDF: a secret or an extraction.
/// - Exchange: a generated key or a raw one (RFC 7748 § 5; SEC 1 § 2.3.7; for ffdhe groups a
///   big-endian exponent of 29, 35 or 41 bytes at least, after the group, and 48 at most). X25519
///   takes PKCS#8 too, ECDH PKCS#8 and SEC 1.
/// - Encapsulation: none, a generated key or a raw one (FIPS 203 § 7.1).
/// - Signatures: none; ECDSA PKCS#8, SEC 1 or a generated one; EdDSA and ML-DSA PKCS#8 or a
///   generated one; RSA PKCS#8 or PKCS#1, of 2,048 to 8,192 bits.
/// - Encryption: none, or as for RSA signatures.
/// - Password hashing: none, or a secret of 16 bytes at least, the pepper.
/// - The rest: none.
pub fn software() -> Arc<dyn Driver> {
    Arc::new(Software)
}

struct Software;

impl Driver for Software {
    fn name(&self) -> &str {
        NAME
    }

    fn supports(&self, steps: &[Algorithm]) -> bool {
        let [algorithm] = *steps else { return false };
        match algorithm.kind() {
            Kind::Aead => aead::named(algorithm).is_some(),
            Kind::Packet | Kind::Mask => is_packet(algorithm),
            Kind::Cipher => cipher::named(algorithm).is_some(),
            Kind::Compression => compression::named(algorithm).is_some(),
            Kind::Hash => digest::named(algorithm).is_some(),
            Kind::Mac => mac::named(algorithm).is_some(),
            Kind::Hkdf => hkdf::named(algorithm).is_some(),
            Kind::Exchange => exchange::named(algorithm).is_some(),
            Kind::Kem => kem::named(algorithm).is_some(),
            Kind::Signature => signature::named(algorithm).is_some(),
            Kind::Encryption => encryption::named(algorithm).is_some(),
            Kind::Random => true,
            Kind::Password => password::named(algorithm).is_some(),
        }
    }

    fn open(&self, steps: &[Step<'_>]) -> Result<Box<dyn DriverSession>, Error> {
        let [Step { algorithm, key }] = *steps else {
            return Err(Error::invalid_request("chains are run step by step here"));
        };
        match algorithm.kind() {
            Kind::Aead => aead::open(algorithm, key),
            Kind::Packet | Kind::Mask => open_portable(algorithm, key),
            Kind::Cipher => cipher::open(algorithm, key),
            Kind::Compression => compression::open(algorithm, key),
            Kind::Hash => digest::open(algorithm, key),
            Kind::Mac => mac::open(algorithm, key),
            Kind::Hkdf => hkdf::open(algorithm, key),
            Kind::Exchange => exchange::open(algorithm, key),
            Kind::Kem => kem::open(algorithm, key),
            Kind::Signature => signature::open(algorithm, key),
            Kind::Encryption => encryption::open(algorithm, key),
            Kind::Random => random::open(algorithm, key),
            Kind::Password => password::open(algorithm, key),
        }
    }

    fn stream(&self, algorithm: Algorithm) -> Result<Box<dyn DriverStream>, Error> {
        digest::stream(algorithm)
    }
}

/// The stand-in for a module whose feature is off.
#[allow(dead_code)]
mod absent {
    use super::session::Opened;
    use keyway_engine::{Algorithm, Error, Key};

    pub fn named(_: Algorithm) -> Option<()> {
        None
    }

    pub fn open(algorithm: Algorithm, _: Key<'_>) -> Opened {
        Err(Error::Unsupported(algorithm))
    }
}
