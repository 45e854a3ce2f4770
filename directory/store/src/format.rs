//! The numbers of the format on disk, and the keys of the rows in the tables `meta` and `tree`.

use sha2::{Digest, Sha256};

use crate::EntryId;
use crate::limits::{COMPONENT_BYTES_MAX, COMPONENT_HEAD_BYTES};

/// The format of a store without large attributes. It can have the table for their values.
pub(crate) const FORMAT_FIRST: u32 = 1;

/// The format of a store that has had one.
pub(crate) const FORMAT_WITH_LARGE: u32 = 2;

/// The format of a store that has a feed of changes.
pub(crate) const FORMAT_WITH_FEED: u32 = 3;

/// Rows of the table `meta` that are the store's own. Those of the caller begin with `u`.
pub(crate) const META_FORMAT: &[u8] = b"format";
/// The digest of all entries; see `contents`.
pub(crate) const META_CONTENTS: &[u8] = b"contents";
pub(crate) const META_FEED: &[u8] = b"feed";
/// How often the store, or the one that it was restored from, was restored; 1 if it never was, also without the row.
pub(crate) const META_EPOCH: &[u8] = b"epoch";
pub(crate) const META_INCARNATION: &[u8] = b"incarnation";
pub(crate) const META_NEXT_ID: &[u8] = b"next-id";
pub(crate) const META_RENAMES: &[u8] = b"renames";

pub(crate) fn meta_row(name: &str) -> Vec<u8> {
    [b"u", name.as_bytes()].concat()
}

/// The table's row for the child of `parent` named `component`.
pub(crate) fn tree_row(parent: EntryId, component: &[u8]) -> Vec<u8> {
    let mut row = Vec::with_capacity(8 + component.len().min(COMPONENT_BYTES_MAX));
    row.extend_from_slice(&parent.to_bytes());
    if component.len() <= COMPONENT_BYTES_MAX {
        row.extend_from_slice(component);
        return row;
    }
    row.extend(component.iter().take(COMPONENT_HEAD_BYTES));
    row.extend_from_slice(&Sha256::digest(component));
    // Longer than every component that is kept whole, so that the two never meet.
    row.resize(8 + COMPONENT_BYTES_MAX + 1, 0);
    row
}
