//! Random characters, bytes, telephone numbers and UUIDs; what text is in other charsets.

use crate::number::{push_hex, push_padded};
use crate::random::Random;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The characters that random text is made of.
#[derive(Clone, Debug)]
pub(crate) enum Letters {
    Ascii(Vec<u8>),
    Wide(Vec<char>),
}

/// The character set that `<base64>` encodes text in first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Charset {
    Utf8,
    Latin1,
    Utf16 { little: bool, mark: bool },
}

impl Letters {
    pub(crate) fn new(text: &str) -> Letters {
        match text.is_ascii() {
            true => Letters::Ascii(text.as_bytes().to_vec()),
            false => Letters::Wide(text.chars().collect()),
        }
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Letters::Ascii(letters) => letters.len() as u64,
            Letters::Wide(letters) => letters.len() as u64,
        }
    }

    #[inline]
    pub(crate) fn push_at(&self, out: &mut Vec<u8>, at: usize) {
        match self {
            Letters::Ascii(letters) => out.extend(letters.get(at)),
            Letters::Wide(letters) => {
                let letter = letters.get(at).copied().unwrap_or_default();
                out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
    }

    pub(crate) fn push(&self, out: &mut Vec<u8>, count: u64, random: &mut Random) {
        let size = self.len();
        let mut drawn = 0;
        for turn in 0..count {
            // One draw has enough for two of at most 2^16 letters.
            drawn = if turn % 2 == 0 { random.next() } else { drawn << 32 };
            let at = ((drawn >> 32) * size) >> 32;
            self.push_at(out, at as usize);
        }
    }
}

impl Charset {
    pub(crate) fn named(name: &str) -> Option<Charset> {
        let utf16 = |little, mark| Some(Charset::Utf16 { little, mark });
        match name.to_ascii_lowercase().replace(['-', '_'], "").as_str() {
            "utf8" | "usascii" | "ascii" => Some(Charset::Utf8),
            "iso88591" | "latin1" => Some(Charset::Latin1),
            "utf16le" | "unicodelittleunmarked" => utf16(true, false),
            "utf16be" | "unicodebigunmarked" => utf16(false, false),
            "utf16" | "unicode" | "unicodebig" => utf16(false, true),
            "unicodelittle" => utf16(true, true),
            _ => None,
        }
    }

    pub(crate) fn push(self, out: &mut Vec<u8>, text: &[u8], base64: bool) {
        let text = String::from_utf8_lossy(text);
        let bytes: Vec<u8> = match self {
            Charset::Utf8 => text.into_owned().into_bytes(),
            Charset::Latin1 => text.chars().map(|it| u8::try_from(it).unwrap_or(b'?')).collect(),
            Charset::Utf16 { little, mark } => {
                let units = mark.then_some(0xfeff).into_iter().chain(text.encode_utf16());
                let bytes =
                    |unit: u16| if little { unit.to_le_bytes() } else { unit.to_be_bytes() };
                units.flat_map(bytes).collect()
            }
        };
        match base64 {
            true => out.extend_from_slice(STANDARD.encode(bytes).as_bytes()),
            false => out.extend_from_slice(&bytes),
        }
    }
}

/// `+1 225 216 5900`
pub(crate) fn push_telephone(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(b"+1 ");
    push_padded(out, number / 10_000_000, 3);
    out.push(b' ');
    push_padded(out, number / 10_000 % 1_000, 3);
    out.push(b' ');
    push_padded(out, number % 10_000, 4);
}

/// RFC 9562, version 4.
pub(crate) fn push_guid(out: &mut Vec<u8>, high: u64, low: u64) {
    let high = high & 0xffff_ffff_ffff_0fff | 0x4000;
    let low = low & 0x3fff_ffff_ffff_ffff | 0x8000_0000_0000_0000;
    push_hex(out, high >> 32, 8);
    out.push(b'-');
    push_hex(out, high >> 16, 4);
    out.push(b'-');
    push_hex(out, high, 4);
    out.push(b'-');
    push_hex(out, low >> 48, 4);
    out.push(b'-');
    push_hex(out, low, 12);
}

pub(crate) fn push_bytes(out: &mut Vec<u8>, count: u64, base64: bool, random: &mut Random) {
    // Base64 is asked for in characters.
    let count = if base64 { count * 3 / 4 } else { count } as usize;
    let from = out.len();
    while out.len() < from + count {
        out.extend_from_slice(&random.next().to_le_bytes());
    }
    out.truncate(from + count);
    if base64 {
        let bytes = out.split_off(from);
        out.extend_from_slice(STANDARD.encode(bytes).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charsets() {
        let mut out = Vec::new();
        Charset::named("UnicodeLittleUnmarked").unwrap().push(&mut out, b"\"a\"", true);
        assert_eq!(out, b"IgBhACIA");
        assert_eq!(Charset::named("EBCDIC"), None);
    }
}
