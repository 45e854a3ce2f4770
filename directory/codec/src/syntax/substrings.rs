//! The assertion syntax of the substring rules in an extensible match, RFC 4517 § 3.3.30.

use super::forms::unescaped;
use super::prep::Part;

/// The pieces of an assertion such as `initial*any*final`, with escapes resolved.
///
/// `None` if it is malformed: without `*`, with an empty piece, with another escape than `\2A` and
/// `\5C`, or not UTF-8.
#[must_use]
pub fn substring_assertion(value: &[u8]) -> Option<Vec<(Part, Vec<u8>)>> {
    str::from_utf8(value).ok()?;
    let parts: Vec<&[u8]> = value.split(|byte| *byte == b'*').collect();
    let last = parts.len().checked_sub(1).filter(|last| *last > 0)?;
    let mut pieces = Vec::new();
    for (index, part) in parts.into_iter().enumerate() {
        let kind = match index {
            0 => Part::Initial,
            index if index == last => Part::Final,
            _ => Part::Any,
        };
        match (kind, part) {
            (Part::Initial | Part::Final, []) => {}
            (_, []) => return None,
            (kind, part) => pieces.push((kind, unescaped(part, b'*')?)),
        }
    }
    Some(pieces)
}
