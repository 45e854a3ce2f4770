//! The normal forms: one for each family of matching rules.

use super::names::{self, Descriptors};
use super::prep::{self, Case, Part};
use super::time;

/// How a rule looks at values. Rules of one form agree on which values are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    BitString,
    Boolean,
    CaseExact,
    CaseExactIa5,
    CaseIgnore,
    CaseIgnoreFirstComponent,
    CaseIgnoreIa5,
    CaseIgnoreList,
    DistinguishedName,
    GeneralizedTime,
    Integer,
    IntegerFirstComponent,
    NumericString,
    ObjectIdentifier,
    ObjectIdentifierFirstComponent,
    OctetString,
    TelephoneNumber,
    UniqueMember,
    Uuid,
    Words,
}

pub(super) fn normalize(form: Form, value: &[u8], names: &dyn Descriptors) -> Option<Vec<u8>> {
    match form {
        Form::BitString => bit_string(value),
        Form::Boolean => boolean(value),
        Form::CaseExact => prep::string(value, Case::Exact, Part::Whole),
        Form::CaseExactIa5 => ia5(value, Case::Exact, Part::Whole),
        Form::CaseIgnore => prep::string(value, Case::Ignore, Part::Whole),
        Form::CaseIgnoreFirstComponent => {
            prep::string(names::first_component(value)?, Case::Ignore, Part::Whole)
        }
        Form::CaseIgnoreIa5 => ia5(value, Case::Ignore, Part::Whole),
        Form::CaseIgnoreList => list(value),
        Form::DistinguishedName => names::distinguished_name(value, names, 0),
        Form::GeneralizedTime => time::generalized(value),
        Form::Integer => integer(value),
        Form::IntegerFirstComponent => integer(names::first_component(value)?),
        Form::NumericString => numeric_string(value),
        Form::ObjectIdentifier => names::object_identifier(value, names),
        Form::ObjectIdentifierFirstComponent => {
            names::object_identifier(names::first_component(value)?, names)
        }
        Form::OctetString => Some(value.to_vec()),
        Form::TelephoneNumber => prep::telephone_number(value),
        Form::UniqueMember => names::name_and_uid(value, names, 0),
        Form::Uuid => uuid(value),
        Form::Words => words(value),
    }
}

pub(super) fn normalize_substring(form: Form, piece: &[u8], part: Part) -> Option<Vec<u8>> {
    match form {
        Form::CaseExact => prep::string(piece, Case::Exact, part),
        Form::CaseExactIa5 => ia5(piece, Case::Exact, part),
        Form::CaseIgnore | Form::CaseIgnoreList => prep::string(piece, Case::Ignore, part),
        Form::CaseIgnoreIa5 => ia5(piece, Case::Ignore, part),
        Form::NumericString => numeric_string(piece),
        Form::OctetString => Some(piece.to_vec()),
        Form::TelephoneNumber => prep::telephone_number(piece),
        _ => None,
    }
}

/// The words with blanks around each, so that a word is found in others as a piece of bytes. What is
/// neither a letter nor a digit separates words.
fn words(value: &[u8]) -> Option<Vec<u8>> {
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

fn ia5(value: &[u8], case: Case, part: Part) -> Option<Vec<u8>> {
    if value.is_ascii() { prep::string(value, case, part) } else { None }
}

/// The digits. Blanks are insignificant (RFC 4518 § 2.6.2), and nothing else is allowed.
fn numeric_string(value: &[u8]) -> Option<Vec<u8>> {
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
fn list(value: &[u8]) -> Option<Vec<u8>> {
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
