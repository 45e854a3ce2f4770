//! Datagrams that come in fragments.

use crate::limits::{DATAGRAM_BYTES_MAX, DATAGRAMS_MAX, FRAGMENTS_MAX};
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

/// The datagram that a fragment is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    pub(super) identification: u32,
}

/// The part of it, in bytes, and whether others follow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fragment {
    pub(super) offset: usize,
    pub(super) more: bool,
}

#[derive(Debug, Default)]
struct Parts {
    /// By offset.
    parts: BTreeMap<usize, Vec<u8>>,
    /// How long the datagram is, once its last fragment is there.
    length: Option<usize>,
    /// The first fragment's number among all, to know the oldest.
    since: u64,
}

/// Those that are not complete yet, and the one that was completed last.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    waiting: HashMap<Key, Parts>,
    whole: Vec<u8>,
    count: u64,
}

impl Fragments {
    /// Adds one. The datagram's contents if it was the last one to be missing.
    ///
    /// A fragment that was cut by the capture spoils its datagram: that is never complete.
    pub(super) fn add(
        &mut self,
        key: Key,
        place: Fragment,
        data: &[u8],
        whole: bool,
    ) -> Option<&[u8]> {
        let end = place.offset + data.len();
        if !whole || end > DATAGRAM_BYTES_MAX {
            self.waiting.remove(&key);
            return None;
        }
        self.count += 1;
        if self.waiting.len() == DATAGRAMS_MAX && !self.waiting.contains_key(&key) {
            self.drop_oldest();
        }
        let since = self.count;
        let parts = self.waiting.entry(key).or_insert_with(|| Parts { since, ..Parts::default() });
        if !place.more {
            parts.length = Some(end);
        }
        if parts.parts.len() < FRAGMENTS_MAX {
            parts.parts.entry(place.offset).or_insert_with(|| data.to_vec());
        }
        if !parts.is_complete() {
            return None;
        }
        let parts = self.waiting.remove(&key)?;
        self.whole.clear();
        for (offset, part) in parts.parts {
            // Where fragments overlap, the earlier one's octets are kept.
            let known = self.whole.len().saturating_sub(offset);
            self.whole.extend_from_slice(part.get(known..).unwrap_or_default());
        }
        self.whole.truncate(parts.length.unwrap_or(usize::MAX));
        Some(&self.whole)
    }

    fn drop_oldest(&mut self) {
        let oldest = self.waiting.iter().min_by_key(|(_, parts)| parts.since);
        if let Some(key) = oldest.map(|(key, _)| *key) {
            self.waiting.remove(&key);
        }
    }
}

impl Parts {
    fn is_complete(&self) -> bool {
        let Some(length) = self.length else { return false };
        let mut reached = 0;
        for (offset, part) in &self.parts {
            if *offset > reached {
                return false;
            }
            reached = reached.max(offset + part.len());
        }
        reached >= length
    }
}
