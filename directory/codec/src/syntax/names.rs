//! Values that hold names of the schema, and their parts.

use super::forms;
use super::rules::MatchingRule;
use crate::dn::is_numeric_oid;

/// The parts of the schema that the rules that compare names need. Names come in any case.
pub trait Descriptors {
    /// The one name of an attribute type that is given by a name or a numeric OID, and its
    /// equality rule; `None` if it is unknown or has no such rule.
    fn attribute(&self, name: &str) -> Option<(&str, MatchingRule)>;

    /// The numeric OID that a name of the schema stands for.
    fn oid(&self, name: &str) -> Option<&str>;
}

/// Appends a length (LEB128) and the bytes, so that what is joined can only be taken apart in one
/// way: a normal form of several parts.
pub fn append_part(out: &mut Vec<u8>, bytes: &[u8]) {
    let mut length = bytes.len();
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend_from_slice(bytes);
}

/// Cuts a Name And Optional UID at its last `#`, if a bit string follows that.
pub(super) fn split_uid(value: &[u8]) -> (&[u8], Option<&[u8]>) {
    match value.iter().rposition(|byte| *byte == b'#').and_then(|at| value.split_at_checked(at)) {
        Some((name, uid)) if forms::bit_string(uid.get(1..).unwrap_or_default()).is_some() => {
            (name, uid.get(1..))
        }
        _ => (value, None),
    }
}

/// The dotted form of an OID that is given in that form or by a name.
pub(super) fn object_identifier(value: &[u8], names: &dyn Descriptors) -> Option<Vec<u8>> {
    let text = str::from_utf8(value).ok()?;
    let oid = if is_numeric_oid(text) { text } else { names.oid(text)? };
    Some(oid.as_bytes().to_vec())
}

/// The first component of a description such as `( 2.5.4.3 NAME 'cn' )`; an assertion is the
/// component itself.
pub(super) fn first_component(value: &[u8]) -> Option<&[u8]> {
    let Some(inner) = value.trim_ascii_start().strip_prefix(b"(") else { return Some(value) };
    inner.split(|byte| byte.is_ascii_whitespace() || *byte == b')').find(|word| !word.is_empty())
}
