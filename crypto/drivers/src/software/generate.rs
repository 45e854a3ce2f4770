//! Private keys for one who keeps them. [`Key::Generate`](keyway_engine::Key::Generate) is for
//! those that end with their session: they cannot be had from it.

use super::kem;
use super::session::failed;
use super::signature::{self, Signing};
use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::kem::DecapsulationKey;
use aws_lc_rs::rsa::{self, KeySize};
use aws_lc_rs::signature::{EcdsaKeyPair, Ed25519KeyPair, PqdsaKeyPair};
use keyway_engine::limits::STACK_BYTES;
use keyway_engine::{Algorithm, Error, Kind};
use zeroize::{Zeroizing, zeroize_stack};

/// Makes a private key that an engine can be given again. For signatures and encryption it is
/// PKCS#8 version 1, which [`Key::Pkcs8`](keyway_engine::Key::Pkcs8) takes; of ML-DSA the seed is
/// in it (RFC 9881 § 6). For encapsulation it is raw (FIPS 203 § 7.1), for
/// [`Key::Secret`](keyway_engine::Key::Secret). `rsa_bits` is 2,048, 3,072, 4,096 or 8,192; other
/// algorithms do not look at it. RSA takes a second or, with 8,192 bits, up to a minute.
///
/// All other keys are random bytes, which [`Algorithm::Random`] makes.
///
/// # Errors
/// [`Error::InvalidKey`] for another size of RSA, [`Error::Unsupported`] if the algorithm has no
/// such key, [`Error::Driver`] if none could be made.
pub fn generate_private_key(
    algorithm: Algorithm,
    rsa_bits: u32,
) -> Result<Zeroizing<Vec<u8>>, Error> {
    let key = generate(algorithm, rsa_bits);
    zeroize_stack::<STACK_BYTES>();
    key
}

/// With a frame of its own, which is overwritten afterwards.
#[inline(never)]
fn generate(algorithm: Algorithm, rsa_bits: u32) -> Result<Zeroizing<Vec<u8>>, Error> {
    let not_made = |_: Unspecified| failed("no key was generated");
    let keep = |bytes: &[u8]| Zeroizing::new(bytes.to_vec());
    let unsupported = Error::Unsupported(algorithm);
    let signing = match algorithm.kind() {
        Kind::Kem => {
            let named = kem::named(algorithm).ok_or(unsupported)?;
            let key = DecapsulationKey::generate(named).map_err(not_made)?;
            return Ok(keep(key.key_bytes().map_err(not_made)?.as_ref()));
        }
        Kind::Encryption => None,
        _ => Some(signature::named(algorithm).and_then(|it| it.signing).ok_or(unsupported)?),
    };
    match signing {
        Some(Signing::Ecdsa(named, _)) => {
            let pair = EcdsaKeyPair::generate(named).map_err(not_made)?;
            Ok(keep(pair.to_pkcs8v1().map_err(not_made)?.as_ref()))
        }
        Some(Signing::Ed25519) => {
            let pair = Ed25519KeyPair::generate().map_err(not_made)?;
            Ok(keep(pair.to_pkcs8v1().map_err(not_made)?.as_ref()))
        }
        Some(Signing::MlDsa(named)) => {
            let pair = PqdsaKeyPair::generate(named).map_err(not_made)?;
            Ok(keep(pair.to_pkcs8v1().map_err(not_made)?.as_ref()))
        }
        Some(Signing::Rsa(_) | Signing::RsaPadded) | None => {
            let size = match rsa_bits {
                2_048 => KeySize::Rsa2048,
                3_072 => KeySize::Rsa3072,
                4_096 => KeySize::Rsa4096,
                8_192 => KeySize::Rsa8192,
                _ => return Err(Error::InvalidKey("RSA has 2,048, 3,072, 4,096 or 8,192 bits")),
            };
            let pair = rsa::KeyPair::generate(size).map_err(not_made)?;
            let der: Pkcs8V1Der<'_> = pair.as_der().map_err(not_made)?;
            Ok(keep(der.as_ref()))
        }
    }
}
