//! Elements of DER (X.690 § 10).

/// The tag of a SEQUENCE.
pub const SEQUENCE: u8 = 0x30;
/// The tag of an INTEGER.
pub const INTEGER: u8 = 0x02;
/// The tag of a BIT STRING.
pub const BIT_STRING: u8 = 0x03;

/// An element: its tag, its length, and these parts.
pub fn element(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let digits = length.to_be_bytes();
    let mut out = vec![tag];
    if length < 0x80 {
        out.push(length as u8);
    } else {
        let digits = &digits[digits.iter().take_while(|digit| **digit == 0).count()..];
        out.push(0x80 | digits.len() as u8);
        out.extend(digits);
    }
    parts.iter().for_each(|part| out.extend(*part));
    out
}

/// The content of the element of this tag that the bytes begin with, and the bytes behind it. `None` if they begin
/// with none, or it has more than 65,535 bytes, or its length a shorter form.
pub fn split(tag: u8, der: &[u8]) -> Option<(&[u8], &[u8])> {
    any(der).filter(|_| der.first() == Some(&tag))
}

/// As [`split`], whatever the tag, which has one byte.
pub fn any(der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = match *der {
        [_, short @ 0..=0x7f, ref rest @ ..] => (usize::from(short), rest),
        [_, 0x81, length @ 0x80..=0xff, ref rest @ ..] => (usize::from(length), rest),
        [_, 0x82, high @ 1..=0xff, low, ref rest @ ..] => {
            (usize::from(u16::from_be_bytes([high, low])), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}
