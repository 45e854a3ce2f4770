//! Where the bytes of a key come from: made here, or imported.

use super::error::Error;
use super::record::{Encoding, has_public_half};
use crate::limits::{MATERIAL_BYTES_MAX, PEM_BYTES_MAX, RSA_BITS};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use keyway_engine::{Algorithm, Engine, Kind, Parameters};
use keyway_token::Wanted;
use std::fmt;
use zeroize::Zeroizing;

/// A key to be.
#[derive(Clone, Copy)]
pub enum Material<'a> {
    /// A new one, at random.
    Generate {
        /// The size of an RSA key: 2,048, 3,072, 4,096 or 8,192. Other keys do not look at it.
        rsa_bits: u32,
    },
    /// A private key as PEM (RFC 7468), not encrypted: `PRIVATE KEY`, `RSA PRIVATE KEY` or
    /// `EC PRIVATE KEY`, the first one that is there.
    Pem(&'a [u8]),
    /// A private key as PKCS#8, DER.
    Pkcs8(&'a [u8]),
    /// An RSA private key as PKCS#1, DER.
    Pkcs1(&'a [u8]),
    /// A private key of an elliptic curve as SEC 1, DER.
    Sec1(&'a [u8]),
    /// The secret itself: of AEADs, ciphers, MACs and HKDF; and private keys of exchanges and KEMs
    /// that are raw.
    Secret(&'a [u8]),
    /// A new one, in the token of this label, which it never leaves.
    InToken {
        /// The token's label.
        label: &'a str,
        /// The size of an RSA key, as above.
        rsa_bits: u32,
    },
    /// One that is in all of these tokens already.
    OfTokens {
        /// The labels of the tokens.
        labels: &'a [String],
        /// Which of their keys it is.
        wanted: &'a Wanted,
    },
}

impl Material<'_> {
    /// A new key of the usual size.
    pub const NEW: Material<'static> = Material::Generate { rsa_bits: RSA_BITS };

    /// Where it lives, in words, if that is in tokens.
    pub(super) fn tokens(&self) -> Option<String> {
        match self {
            Material::InToken { label, .. } => Some(format!("in token {label}")),
            Material::OfTokens { labels, .. } => Some(format!("in token {}", labels.join(" and "))),
            _ => None,
        }
    }

    pub(super) fn is_generated(&self) -> bool {
        matches!(self, Material::Generate { .. } | Material::InToken { .. })
    }
}

impl fmt::Debug for Material<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Material::Generate { rsa_bits } => {
                return write!(f, "Generate {{ rsa_bits: {rsa_bits} }}");
            }
            Material::Pem(_) => "Pem(..)",
            Material::Pkcs8(_) => "Pkcs8(..)",
            Material::Pkcs1(_) => "Pkcs1(..)",
            Material::Sec1(_) => "Sec1(..)",
            Material::Secret(_) => "Secret(..)",
            Material::InToken { label, .. } => return write!(f, "InToken({label:?})"),
            Material::OfTokens { labels, .. } => return write!(f, "OfTokens({labels:?})"),
        })
    }
}

/// Bytes that the engine takes as a key of all the algorithms that were asked for.
pub(super) struct Checked {
    pub encoding: Encoding,
    pub material: Zeroizing<Vec<u8>>,
    /// Empty where there is none.
    pub public: Vec<u8>,
}

/// A random number is no private key of a curve once in 2^32.
const TRIES_MAX: usize = 3;

/// Makes or decodes a key and has the engine open it for each algorithm.
pub(super) fn check(
    material: Material<'_>,
    algorithms: &[Algorithm],
    engine: &Engine,
) -> Result<Checked, Error> {
    let Material::Generate { rsa_bits } = material else {
        let (encoding, material) = decode(material)?;
        return accept(encoding, material, algorithms, engine);
    };
    // A key that also signs is made as one that signs: PKCS#8, which the others take too.
    let signs = algorithms.iter().find(|algorithm| algorithm.kind() == Kind::Signature);
    let Some(algorithm) = signs.or(algorithms.first()) else {
        return Err(Error::Unfit("no algorithm"));
    };
    let mut tries = 1;
    loop {
        let (encoding, material) = generate(*algorithm, rsa_bits, engine)?;
        match accept(encoding, material, algorithms, engine) {
            Err(Error::Engine(keyway_engine::Error::InvalidKey(_))) if tries < TRIES_MAX => {
                tries += 1
            }
            other => return other,
        }
    }
}

/// A private key, and its form.
pub(crate) type Generated = (Encoding, Zeroizing<Vec<u8>>);

/// A private key for a session that is to have a new one; `None` where no session makes one.
///
/// # Errors
/// Those of the engine.
pub(crate) fn generate_for_session(
    algorithm: Algorithm,
    engine: &Engine,
) -> Result<Option<Generated>, Error> {
    match algorithm.kind() {
        // To make one takes seconds, and is for a manager.
        Kind::Signature if algorithm.is_rsa() => Ok(None),
        Kind::Exchange | Kind::Kem | Kind::Signature => check(Material::NEW, &[algorithm], engine)
            .map(|Checked { encoding, material, .. }| Some((encoding, material))),
        _ => Ok(None),
    }
}

fn accept(
    encoding: Encoding,
    material: Zeroizing<Vec<u8>>,
    algorithms: &[Algorithm],
    engine: &Engine,
) -> Result<Checked, Error> {
    if material.is_empty() || material.len() > MATERIAL_BYTES_MAX {
        return Err(Error::Material("it is empty, or longer than 16,384 bytes"));
    }
    let mut public = Vec::new();
    for algorithm in algorithms {
        let session = engine.session(Parameters::new(*algorithm, encoding.key(&material, "")))?;
        if has_public_half(*algorithm) {
            public = session.public_key()?;
        }
    }
    Ok(Checked { encoding, material, public })
}

fn generate(
    algorithm: Algorithm,
    rsa_bits: u32,
    engine: &Engine,
) -> Result<(Encoding, Zeroizing<Vec<u8>>), Error> {
    let bytes = match algorithm.kind() {
        Kind::Signature | Kind::Encryption => {
            let key = keyway_drivers::generate_private_key(algorithm, rsa_bits)?;
            return Ok((Encoding::Pkcs8, key));
        }
        // Most random bytes are no number of its group, which has 521 bits: the library finds one.
        _ if algorithm == Algorithm::EcdhP521 => {
            let key = keyway_drivers::generate_private_key(Algorithm::EcdsaP521, rsa_bits)?;
            return Ok((Encoding::Pkcs8, key));
        }
        Kind::Kem => {
            let key = keyway_drivers::generate_private_key(algorithm, rsa_bits)?;
            return Ok((Encoding::Secret, key));
        }
        // RFC 7919 § 5.2 wants 225, 275 and 325 bits at least.
        _ if algorithm == Algorithm::Ffdhe2048 => 29,
        _ if algorithm == Algorithm::Ffdhe3072 => 35,
        _ if algorithm == Algorithm::Ffdhe4096 => 41,
        // A pepper is a key of HMAC-SHA-256.
        Kind::Password => 32,
        // A secret of a MAC or of HKDF is as long as its output, and so is that of a curve.
        _ => algorithm
            .key_bytes()
            .or(algorithm.output_bytes())
            .ok_or(Error::Unfit("the algorithm has no key to keep"))?,
    };
    let mut secret = Zeroizing::new(vec![0; bytes]);
    engine.random(&mut secret)?;
    Ok((Encoding::Secret, secret))
}

/// The bytes that are imported, and what they are.
fn decode(material: Material<'_>) -> Result<(Encoding, Zeroizing<Vec<u8>>), Error> {
    let (encoding, bytes) = match material {
        Material::Pem(text) => return decode_pem(text).map_err(Error::Material),
        Material::Pkcs8(der) => (Encoding::Pkcs8, der),
        Material::Pkcs1(der) => (Encoding::Pkcs1, der),
        Material::Sec1(der) => (Encoding::Sec1, der),
        Material::Secret(secret) => (Encoding::Secret, secret),
        Material::Generate { .. } | Material::InToken { .. } | Material::OfTokens { .. } => {
            (Encoding::Secret, &[][..])
        }
    };
    // A longer one is refused for its length, and not copied before.
    let bytes = bytes.get(..=MATERIAL_BYTES_MAX).unwrap_or(bytes);
    Ok((encoding, Zeroizing::new(bytes.to_vec())))
}

/// The first private key of a text of PEM (RFC 7468), with its encoding. The usual readers leave
/// their copies unwiped. At most [`PEM_BYTES_MAX`] bytes are read.
///
/// # Errors
/// Why there is none.
pub fn decode_pem(text: &[u8]) -> Result<(Encoding, Zeroizing<Vec<u8>>), &'static str> {
    const NONE: &str = "it has no `PRIVATE KEY`, `RSA PRIVATE KEY` or `EC PRIVATE KEY` in PEM";
    if text.len() > PEM_BYTES_MAX {
        return Err("it is longer than 65,536 bytes");
    }
    let mut lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let (encoding, end) = lines
        .find_map(|line| match line {
            b"-----BEGIN PRIVATE KEY-----" => {
                Some(Ok((Encoding::Pkcs8, "-----END PRIVATE KEY-----")))
            }
            b"-----BEGIN RSA PRIVATE KEY-----" => {
                Some(Ok((Encoding::Pkcs1, "-----END RSA PRIVATE KEY-----")))
            }
            b"-----BEGIN EC PRIVATE KEY-----" => {
                Some(Ok((Encoding::Sec1, "-----END EC PRIVATE KEY-----")))
            }
            b"-----BEGIN ENCRYPTED PRIVATE KEY-----" => Some(Err(ENCRYPTED)),
            _ => None,
        })
        .ok_or(NONE)??;
    let mut digits = Zeroizing::new(Vec::with_capacity(text.len()));
    loop {
        let line = lines.next().ok_or("the PEM text is cut off")?;
        if line == end.as_bytes() {
            break;
        }
        // RFC 1421's headers say that it is encrypted.
        if line.contains(&b':') {
            return Err(ENCRYPTED);
        }
        digits.extend_from_slice(line);
    }
    let mut der = Zeroizing::new(vec![0; digits.len()]);
    let bytes = BASE64_STANDARD.decode_slice(&*digits, &mut der);
    der.truncate(bytes.map_err(|_| "what is in the PEM text is not base64")?);
    Ok((encoding, der))
}

const ENCRYPTED: &str = "it is encrypted; openssl pkcs8 -in FILE -out NEW takes the encryption off";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_private_key_of_a_text_is_taken() {
        let text = b"words\r\n-----BEGIN EC PRIVATE KEY-----\r\nAQ\r\nID\r\n-----END EC PRIVATE KEY-----\r\n\
            -----BEGIN PRIVATE KEY-----\nBA==\n-----END PRIVATE KEY-----";
        let (encoding, der) = decode_pem(text).unwrap();
        assert_eq!((encoding, &der[..]), (Encoding::Sec1, &[1, 2, 3][..]));
        for cut in 0..60 {
            assert!(decode_pem(&text[..cut]).is_err(), "{cut}");
        }
    }

    #[test]
    fn what_is_encrypted_is_said_to_be() {
        for text in [
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAQID\n-----END ENCRYPTED PRIVATE KEY-----\n",
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAQID\n-----END RSA PRIVATE KEY-----\n",
        ] {
            assert_eq!(decode_pem(text.as_bytes()).map(drop), Err(ENCRYPTED));
        }
    }
}
