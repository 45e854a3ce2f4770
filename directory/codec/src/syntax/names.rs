//! Values that are or hold names: DNs and OIDs, which only a schema can compare.

use super::forms;
use super::rules::MatchingRule;
use crate::dn::{Dn, Rdn, is_numeric_oid};
use crate::limits::DN_NESTING_MAX;

/// What the rules that compare names need to know of the schema. Names come in any case.
pub trait Descriptors {
    /// The one name of an attribute type that is given by a name or a numeric OID, and its
    /// equality rule; `None` if it is unknown or has no such rule.
    fn attribute(&self, name: &str) -> Option<(&str, MatchingRule)>;

    /// The numeric OID that a name of the schema stands for.
    fn oid(&self, name: &str) -> Option<&str>;
}

/// Equal for equal names; `None` for a malformed one, or if a type or value is not comparable.
///
/// `nested` counts how many names this one is a value in, since every name can be a value's text.
pub(super) fn distinguished_name(
    value: &[u8],
    names: &dyn Descriptors,
    nested: usize,
) -> Option<Vec<u8>> {
    if nested > DN_NESTING_MAX {
        return None;
    }
    let dn = Dn::parse(str::from_utf8(value).ok()?).ok()?;
    let mut out = Vec::with_capacity(value.len() + 8);
    for rdn in &dn.rdns {
        append_part(&mut out, &relative_name(rdn, names, nested)?);
    }
    Some(out)
}

/// The set of an RDN's values: sorted, each once.
fn relative_name(rdn: &Rdn, names: &dyn Descriptors, nested: usize) -> Option<Vec<u8>> {
    let mut avas = Vec::with_capacity(rdn.avas.len());
    for ava in &rdn.avas {
        let (name, rule) = names.attribute(&ava.attribute)?;
        let value = match rule {
            MatchingRule::DistinguishedName => distinguished_name(&ava.value, names, nested + 1)?,
            MatchingRule::UniqueMember => name_and_uid(&ava.value, names, nested + 1)?,
            rule => rule.normalize(&ava.value, names)?,
        };
        avas.push((name.to_ascii_lowercase(), value));
    }
    avas.sort_unstable();
    avas.dedup();
    let mut out = Vec::new();
    for (name, value) in avas {
        append_part(&mut out, name.as_bytes());
        append_part(&mut out, &value);
    }
    Some(out)
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

/// A name, and the bit string that tells those who bore it one after another apart.
pub(super) fn name_and_uid(
    value: &[u8],
    names: &dyn Descriptors,
    nested: usize,
) -> Option<Vec<u8>> {
    let (name, uid) = split_uid(value);
    let name = distinguished_name(name, names, nested)?;
    let mut out = Vec::with_capacity(name.len() + 2);
    append_part(&mut out, &name);
    if let Some(uid) = uid {
        out.extend_from_slice(&forms::bit_string(uid)?);
    }
    Some(out)
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
