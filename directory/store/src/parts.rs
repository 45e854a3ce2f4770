//! The parts of stored forms: numbers in LEB128, and byte strings and texts behind their lengths.

use std::fmt;

/// The fault of stored bytes that should be an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecordError {
    /// The bytes are not those that were written.
    Checksum,
    /// The bytes end too early, or go on after the end.
    Length,
    /// A text is not UTF-8.
    Text,
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RecordError::Checksum => "its checksum is wrong",
            RecordError::Length => "its lengths do not add up",
            RecordError::Text => "a text in it is not UTF-8",
        })
    }
}

impl std::error::Error for RecordError {}

pub(crate) fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// The length of a number's LEB128 form.
pub(crate) fn varint_bytes(number: u64) -> usize {
    (u64::BITS - number.leading_zeros()).div_ceil(7).max(1) as usize
}

pub(crate) fn put_slice(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads a LEB128 number of at most 64 bits.
pub(crate) fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, after) = rest.split_first()?;
        *rest = after;
        let bits = u64::from(byte & 0x7F);
        if (bits << shift) >> shift != bits {
            return None;
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

pub(crate) fn slice<'t>(rest: &mut &'t [u8]) -> Option<&'t [u8]> {
    let length = usize::try_from(varint(rest)?).ok()?;
    let (taken, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(taken)
}

pub(crate) fn text<'t>(rest: &mut &'t [u8]) -> Result<&'t str, RecordError> {
    let bytes = slice(rest).ok_or(RecordError::Length)?;
    std::str::from_utf8(bytes).map_err(|_| RecordError::Text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn varints_have_the_length_they_are_said_to_have(number in any::<u64>(), shift in 0..64) {
            let number = number >> shift;
            let mut out = Vec::new();
            put_varint(&mut out, number);
            prop_assert_eq!(out.len(), varint_bytes(number));
            let mut rest = out.as_slice();
            prop_assert_eq!(varint(&mut rest), Some(number));
            prop_assert!(rest.is_empty());
        }
    }

    #[test]
    fn a_varint_over_64_bits_is_refused() {
        let mut rest: &[u8] = &[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x02];
        assert_eq!(varint(&mut rest), None);
    }
}
