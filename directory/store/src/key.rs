//! Posting keys: bytes that sort as their parts do, and never run into each other.
//!
//! A key is a kind byte and parts. In each part the bytes 0 and 1 are written as `01 01` and
//! `01 02`, and a part ends with a 0: so no key is the beginning of another, keys of one kind sort
//! as the list of their parts does, and the entry identifier can follow directly.
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
    /// The key of `kind` with these parts; keys of one kind sort as the list of their parts.
    ///
    /// # Panics
    /// If `kind` is `b'c'` or `b's'`, which are the store's own.
    pub fn new(kind: u8, parts: &[&[u8]]) -> Key {
        assert!(kind != CHILDREN && kind != SUBTREE, "this kind of key is the store's own");
        let mut bytes = escape(kind, parts);
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

    /// Whose children or subtree an encoded key stands for; `None` for a key of the caller's.
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

/// What is kept of a key that is cut.
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
    /// Keys whose last part begins with the last of `parts`, and whose other parts are equal.
    pub fn prefix(kind: u8, parts: &[&[u8]]) -> KeyRange {
        let low = open_head(kind, parts);
        let high = successor(&low);
        KeyRange { low, high }
    }

    /// Keys whose last part is the last of `parts` or sorts after it, other parts equal.
    pub fn at_least(kind: u8, parts: &[&[u8]]) -> KeyRange {
        let high = successor(&head(kind, siblings(parts)));
        KeyRange { low: open_head(kind, parts), high }
    }

    /// Keys whose last part is the last of `parts` or sorts before it, other parts equal.
    pub fn at_most(kind: u8, parts: &[&[u8]]) -> KeyRange {
        KeyRange { low: head(kind, siblings(parts)), high: successor(&head(kind, parts)) }
    }

    /// All keys of this kind whose first parts are `parts`.
    pub fn all(kind: u8, parts: &[&[u8]]) -> KeyRange {
        let low = head(kind, parts);
        let high = successor(&low);
        KeyRange { low, high }
    }
}

/// All parts but the last.
fn siblings<'p, 'b>(parts: &'p [&'b [u8]]) -> &'p [&'b [u8]] {
    parts.split_last().map_or(&[], |(_, before)| before)
}

fn escape(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1 + parts.iter().map(|p| p.len() + 1).sum::<usize>());
    bytes.push(kind);
    for part in parts {
        for &byte in *part {
            match byte {
                0 => bytes.extend_from_slice(&[1, 1]),
                1 => bytes.extend_from_slice(&[1, 2]),
                other => bytes.push(other),
            }
        }
        bytes.push(0);
    }
    bytes
}

/// The parts, no longer than the head of a cut key.
fn head(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = escape(kind, parts);
    bytes.truncate(HEAD_BYTES);
    bytes
}

/// The parts without the end of the last one, no longer than the head of a cut key.
fn open_head(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = escape(kind, parts);
    if !parts.is_empty() {
        bytes.pop();
    }
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
