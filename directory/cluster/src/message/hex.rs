//! Octets as lower-case hexadecimal digits, in texts and in JSON.

use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// `bytes` as digits.
pub fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        for nibble in [byte >> 4, byte & 15] {
            out.extend(char::from_digit(nibble.into(), 16));
        }
    }
    out
}

/// Exactly `N` octets; `None` for anything else.
pub fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != N * 2 {
        return None;
    }
    let mut out = [0; N];
    for (byte, pair) in out.iter_mut().zip(digits.chunks_exact(2)) {
        for digit in pair {
            let value = char::from(*digit).to_digit(16)?;
            *byte = (*byte << 4) | u8::try_from(value).ok()?;
        }
    }
    Some(out)
}

/// Exactly `N` octets of a JSON string.
pub fn deserialize<'de, D, const N: usize>(from: D) -> Result<[u8; N], D::Error>
where
    D: Deserializer<'de>,
{
    let text = String::deserialize(from)?;
    decode(&text).ok_or_else(|| D::Error::custom(format_args!("not {} hexadecimal digits", N * 2)))
}
