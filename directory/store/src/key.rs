//! Posting keys: bytes that sort as their parts do, and never run into each other.
//!
//! A key is a kind byte and parts. In each part the bytes 0 and 1 are written as `01 01` and
//! `01 02`; between two parts stands `01 00`, and behind the last one `00`. So no key is the
//! beginning of another, keys of one kind sort as the list of their parts does, and an entry
//! identifier can follow directly.
//! A key over [`KEY_BYTES_MAX`] is cut to its head, the bytes `01 03` that occur in no other key,
//! and a hash of the whole.

use sha2::{Digest, Sha256};

use crate::EntryId;
use crate::limits::{HASH_BYTES, KEY_BYTES_MAX};

/// Kind of the posting lists of children, kept by the store itself.
const CHILDREN: u8 = b'c';

/// Kind of the posting lists of whole subtrees, kept by the store itself.
const SUBTREE: u8 = b's';

/// The posting lists that the store keeps itself.
pub(crate) enum Scope {
    Children,
    Subtree,
}

/// Name of one posting list.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Key(Vec<u8>);

impl Key {
    /// The key of `kind` with these parts; keys of one kind sort as the list of their parts, as far
    /// as they are not cut. No part is the same as one empty part.
    ///
    /// # Panics
    /// If `kind` is `b'c'` or `b's'`, which are the store's own.
    pub fn new(kind: u8, parts: &[&[u8]]) -> Key {
        assert!(kind != CHILDREN && kind != SUBTREE, "this kind of key is the store's own");
        let mut bytes = escape(kind, parts, &END);
        if bytes.len() > KEY_BYTES_MAX {
            let hash = Sha256::digest(&bytes);
            bytes.truncate(head_end(&bytes));
            bytes.extend_from_slice(&CUT);
            bytes.extend_from_slice(&hash);
        }
        Key(bytes)
    }

    /// The list of the children of `parent` ([`EntryId::ROOT`]: the topmost entries).
    pub fn children(parent: EntryId) -> Key {
        Key::own(CHILDREN, parent)
    }

    /// The list of `ancestor` itself and all below it; not kept for [`EntryId::ROOT`].
    pub fn subtree(ancestor: EntryId) -> Key {
        Key::own(SUBTREE, ancestor)
    }

    /// The scope that an encoded key stands for, and its entry; `None` for a key of the caller's.
    pub(crate) fn scope(key: &[u8]) -> Option<(Scope, EntryId)> {
        let (&kind, id) = key.split_first()?;
        let scope = match kind {
            CHILDREN => Scope::Children,
            SUBTREE => Scope::Subtree,
            _ => return None,
        };
        Some((scope, EntryId::from_bytes(id)?))
    }

    fn own(kind: u8, id: EntryId) -> Key {
        let mut bytes = Vec::with_capacity(9);
        bytes.push(kind);
        bytes.extend_from_slice(&id.to_bytes());
        Key(bytes)
    }

    /// The encoded key: at most [`KEY_BYTES_MAX`] bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Stands between head and hash of a cut key.
const CUT: [u8; 2] = [1, 3];

/// The bytes that are kept of a key that is cut.
const HEAD_BYTES: usize = KEY_BYTES_MAX - HASH_BYTES - CUT.len();

/// The last place up to [`HEAD_BYTES`] that is not in the middle of an escaped byte.
fn head_end(bytes: &[u8]) -> usize {
    let mut end = 1;
    loop {
        let next = end + if bytes.get(end) == Some(&1) { 2 } else { 1 };
        if next > HEAD_BYTES.min(bytes.len()) {
            return end;
        }
        end = next;
    }
}

/// A range of keys: from one byte string, inclusive, to another, exclusive (none if it is empty).
///
/// Keys that were cut sort by their head only. A range is therefore as wide as its head: it may
/// name postings outside the range asked for, and never misses one inside. Compare in full after.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyRange {
    pub(crate) low: Vec<u8>,
    pub(crate) high: Vec<u8>,
}

impl KeyRange {
    /// Whether an encoded key is in it.
    pub(crate) fn holds(&self, key: &[u8]) -> bool {
        self.low.as_slice() <= key && (self.high.is_empty() || key < self.high.as_slice())
    }

    /// Keys whose last part begins with the last of `parts`, and whose other parts are equal.
    pub fn prefix(kind: u8, parts: &[&[u8]]) -> KeyRange {
        let low = head(kind, parts, &[]);
        let high = successor(&low);
        KeyRange { low, high }
    }

    /// Keys whose last part is the last of `parts` or sorts after it, other parts equal.
    pub fn at_least(kind: u8, parts: &[&[u8]]) -> KeyRange {
        KeyRange { low: head(kind, parts, &[]), high: successor(&siblings(kind, parts)) }
    }

    /// Keys whose last part is the last of `parts` or sorts before it, other parts equal.
    pub fn at_most(kind: u8, parts: &[&[u8]]) -> KeyRange {
        KeyRange { low: siblings(kind, parts), high: successor(&head(kind, parts, &END)) }
    }

    /// All keys of this kind whose first parts are `parts`.
    pub fn all(kind: u8, parts: &[&[u8]]) -> KeyRange {
        match parts {
            [] => KeyRange { low: vec![kind], high: successor(&[kind]) },
            _ => KeyRange {
                low: head(kind, parts, &END),
                high: successor(&head(kind, parts, &BETWEEN)),
            },
        }
    }
}

/// Where the keys begin that have all parts but the last of these.
fn siblings(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    match parts {
        [] | [_] => vec![kind],
        [before @ .., _] => head(kind, before, &BETWEEN),
    }
}

/// Stands between two parts.
const BETWEEN: [u8; 2] = [1, 0];

/// Stands behind the last part.
const END: [u8; 1] = [0];

fn escape(kind: u8, parts: &[&[u8]], end: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(2 + parts.iter().map(|p| p.len() + 2).sum::<usize>());
    bytes.push(kind);
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            bytes.extend_from_slice(&BETWEEN);
        }
        for run in part.split_inclusive(|byte| *byte <= 1) {
            match run {
                [whole @ .., byte @ 0..=1] => {
                    bytes.extend_from_slice(whole);
                    bytes.extend_from_slice(&[1, byte + 1]);
                }
                whole => bytes.extend_from_slice(whole),
            }
        }
    }
    bytes.extend_from_slice(end);
    bytes
}

/// The parts and what stands behind them, no longer than the head of a cut key.
fn head(kind: u8, parts: &[&[u8]], end: &[u8]) -> Vec<u8> {
    let mut bytes = escape(kind, parts, end);
    bytes.truncate(HEAD_BYTES);
    bytes
}

/// The least byte string that is greater than every one that begins with `bytes`.
fn successor(bytes: &[u8]) -> Vec<u8> {
    let kept = bytes.iter().rposition(|&b| b != 0xFF).map_or(0, |at| at + 1);
    let mut next = bytes.get(..kept).unwrap_or_default().to_vec();
    if let Some(last) = next.last_mut() {
        *last += 1;
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Parts with the bytes that are escaped, sometimes long enough to be cut.
    fn part() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![Just(0u8), Just(1), Just(2), Just(3), Just(0xFF), any::<u8>()];
        let head = prop_oneof![4 => Just(0usize), 1 => Just(230), 2 => 460..480usize];
        (head, prop::collection::vec(byte, 0..6))
            .prop_map(|(head, tail)| [vec![1; head / 2], vec![b'h'; head % 2], tail].concat())
    }

    fn new(parts: &[Vec<u8>]) -> Key {
        Key::new(b'e', &parts.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    proptest! {
        #[test]
        fn keys_sort_as_their_parts_and_none_begins_another(
            a in prop::collection::vec(part(), 1..3),
            b in prop::collection::vec(part(), 1..3),
        ) {
            let (x, y) = (new(&a), new(&b));
            prop_assert!(x.as_bytes().len() <= KEY_BYTES_MAX);
            prop_assert_eq!(a == b, x == y);
            if a != b {
                prop_assert!(!x.as_bytes().starts_with(y.as_bytes()));
                let whole = |k: &Key| !k.as_bytes().ends_with(&hash_of(&a))
                    && !k.as_bytes().ends_with(&hash_of(&b));
                if whole(&x) && whole(&y) {
                    prop_assert_eq!(a.cmp(&b), x.cmp(&y));
                }
            }
        }

        #[test]
        fn ranges_miss_nothing(first in part(), a in part(), b in part(), more in part()) {
            let key = |last: &[u8]| Key::new(b'e', &[&first, last]);
            let parts: [&[u8]; 2] = [&first, &b];
            prop_assert!(KeyRange::prefix(b'e', &parts).holds(key(&[&b[..], &more].concat()).as_bytes()));
            prop_assert!(KeyRange::all(b'e', &[&first]).holds(key(&a).as_bytes()));
            if a >= b {
                prop_assert!(KeyRange::at_least(b'e', &parts).holds(key(&a).as_bytes()));
            }
            if a <= b {
                prop_assert!(KeyRange::at_most(b'e', &parts).holds(key(&a).as_bytes()));
            }
        }
    }

    fn hash_of(parts: &[Vec<u8>]) -> [u8; HASH_BYTES] {
        let parts: Vec<_> = parts.iter().map(Vec::as_slice).collect();
        Sha256::digest(escape(b'e', &parts, &END)).into()
    }

    #[test]
    fn short_ranges_are_exact() {
        let key = |attribute: &[u8], value: &[u8]| Key::new(b'e', &[attribute, value]);
        let at_least = KeyRange::at_least(b'e', &[b"cn", b"m"]);
        assert!(
            at_least.holds(key(b"cn", b"m").as_bytes())
                && at_least.holds(key(b"cn", b"\xFF\xFF").as_bytes())
        );
        assert!(
            !at_least.holds(key(b"cn", b"lz").as_bytes())
                && !at_least.holds(key(b"cn2", b"z").as_bytes())
        );
        let at_most = KeyRange::at_most(b'e', &[b"cn", b"m"]);
        assert!(
            at_most.holds(key(b"cn", b"m").as_bytes()) && at_most.holds(key(b"cn", b"").as_bytes())
        );
        assert!(
            !at_most.holds(key(b"cn", b"m\0").as_bytes())
                && !at_most.holds(key(b"c", b"a").as_bytes())
        );
        let prefix = KeyRange::prefix(b'e', &[b"cn", b"m"]);
        assert!(
            prefix.holds(key(b"cn", b"m\xFF").as_bytes())
                && !prefix.holds(key(b"cn", b"n").as_bytes())
        );
    }

    #[test]
    #[should_panic(expected = "the store's own")]
    fn the_stores_own_kinds_are_refused() {
        Key::new(b's', &[b"x"]);
    }
}
