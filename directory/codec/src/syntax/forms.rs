//! The normal forms of values that are no names: one for each family of matching rules.

use super::prep::{self, Case, Part};

/// The words with blanks around each, so that a word is found in others as a piece of bytes. Characters
/// that are neither letters nor digits separate words.
pub(super) fn words(value: &[u8]) -> Option<Vec<u8>> {
    let prepared = prep::string(value, Case::Ignore, Part::Whole)?;
    let text = String::from_utf8(prepared).ok()?;
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let mut out = Vec::with_capacity(text.len());
    for word in words {
        out.push(b' ');
        out.extend_from_slice(word.as_bytes());
        out.push(b' ');
    }
    Some(out)
}

pub(super) fn ia5(value: &[u8], case: Case, part: Part) -> Option<Vec<u8>> {
    if value.is_ascii() { prep::string(value, case, part) } else { None }
}

/// The digits. Blanks are insignificant (RFC 4518 § 2.6.2), and nothing else is allowed.
pub(super) fn numeric_string(value: &[u8]) -> Option<Vec<u8>> {
    let allowed = value.iter().all(|byte| byte.is_ascii_digit() || *byte == b' ');
    allowed.then(|| value.iter().copied().filter(u8::is_ascii_digit).collect())
}

/// `'0101'B`: the bits between the quotes.
pub(super) fn bit_string(value: &[u8]) -> Option<Vec<u8>> {
    let bits = value.strip_prefix(b"'")?.strip_suffix(b"'B")?;
    bits.iter().all(|bit| matches!(bit, b'0' | b'1')).then(|| bits.to_vec())
}

pub(super) fn boolean(value: &[u8]) -> Option<Vec<u8>> {
    let upper = value.to_ascii_uppercase();
    matches!(upper.as_slice(), b"TRUE" | b"FALSE").then_some(upper)
}

/// The digits after a head that grows with the value: 0x80 and up for zero and above, 0x7f and
/// down below zero, where the digits are complemented as well.
pub(super) fn integer(value: &[u8]) -> Option<Vec<u8>> {
    let (negative, digits) = match value.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, value),
    };
    let well_formed = match digits {
        [] => false,
        [b'0', rest @ ..] => rest.is_empty() && !negative,
        _ => digits.iter().all(u8::is_ascii_digit),
    };
    if !well_formed {
        return None;
    }
    let length = u32::try_from(digits.len()).ok()?;
    let mut out = Vec::with_capacity(digits.len() + 5);
    match u8::try_from(length) {
        Ok(short) if short < 0x7f => out.push(0x80 | short),
        _ => {
            out.push(0xff);
            out.extend_from_slice(&length.to_be_bytes());
        }
    }
    out.extend_from_slice(digits);
    if negative {
        out.iter_mut().for_each(|byte| *byte = !*byte);
    }
    Some(out)
}

/// The lines of a postal address, each prepared, with a control character between them so that no
/// piece of a substring assertion spans two.
pub(super) fn list(value: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(value.len() + 4);
    for (index, line) in value.split(|byte| *byte == b'$').enumerate() {
        if index > 0 {
            out.push(b'\n');
        }
        out.extend_from_slice(&prep::string(&unescaped(line, b'$')?, Case::Ignore, Part::Whole)?);
    }
    Some(out)
}

/// Resolves the two escapes that composed values have: `\` and two hexadecimal digits, for what
/// separates their parts and for `\` itself. `None` if another one is there.
pub(super) fn unescaped(text: &[u8], separator: u8) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        let (plain, escape) = rest.split_at_checked(at)?;
        out.extend_from_slice(plain);
        let code = str::from_utf8(escape.get(1..3)?).ok()?;
        let octet = u8::from_str_radix(code, 16).ok()?;
        if octet != separator && octet != b'\\' {
            return None;
        }
        out.push(octet);
        rest = escape.get(3..)?;
    }
    out.extend_from_slice(rest);
    Some(out)
}

/// The 16 octets of `597ae2f6-16a6-1027-98f4-d28b5365dc14` (RFC 4530 § 2.1).
pub(super) fn uuid(value: &[u8]) -> Option<Vec<u8>> {
    let mut digits = Vec::with_capacity(32);
    for (at, byte) in value.iter().enumerate() {
        match (at, char::from(*byte).to_digit(16)) {
            (8 | 13 | 18 | 23, _) if *byte == b'-' => {}
            (8 | 13 | 18 | 23 | 36.., _) | (_, None) => return None,
            (_, Some(digit)) => digits.push(digit as u8),
        }
    }
    let (pairs, []) = digits.as_chunks::<2>() else { return None };
    (pairs.len() == 16).then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}
