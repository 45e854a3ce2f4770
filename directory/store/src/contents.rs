//! A digest of all entries, brought up to date by every change, by which two stores can tell that they hold the same.
//!
//! It is the sum, modulo 2^256, of a SHA-256 of each entry's record and of each value that lies apart from it. So the order
//! in which they came does not matter, and a change costs as much as it is large. It finds faults; it keeps no one out who
//! can choose entries, since sums of digests can be made equal with much work.

use sha2::{Digest, Sha256};

use crate::feed::LargeValuesEdit;
use crate::format::META_CONTENTS;
use crate::{Change, EntryId, Error, FeedDigest, MetaChange, View};

/// The name that the feed has for it, among those of [`Write::meta_put`](crate::Write::meta_put).
pub(crate) const CONTENTS: &str = "contents";

/// At positions that are multiples of this the feed has the digest.
pub(crate) const CONTENTS_EVERY: u64 = 1000;

/// The sum, its lowest 64 bits first.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Contents([u64; 4]);

impl Contents {
    pub fn from_bytes(bytes: &[u8]) -> Result<Contents, Error> {
        let wrong = || Error::damaged("the digest of the contents has a wrong length");
        let bytes: &[u8; FeedDigest::BYTES] = bytes.try_into().map_err(|_| wrong())?;
        Ok(Contents::of(bytes))
    }

    pub fn of(bytes: &[u8; FeedDigest::BYTES]) -> Contents {
        let (words, _) = bytes.as_chunks::<8>();
        let mut all = [0; 4];
        for (word, bytes) in all.iter_mut().zip(words) {
            *word = u64::from_le_bytes(*bytes);
        }
        Contents(all)
    }

    pub fn to_bytes(self) -> [u8; FeedDigest::BYTES] {
        let mut bytes = [0; FeedDigest::BYTES];
        for (place, word) in bytes.chunks_exact_mut(8).zip(self.0) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    pub fn add(&mut self, other: Contents) {
        let mut carry = false;
        for (word, other) in self.0.iter_mut().zip(other.0) {
            let (sum, over) = word.overflowing_add(other);
            let (sum, again) = sum.overflowing_add(carry.into());
            (*word, carry) = (sum, over || again);
        }
    }

    pub fn subtract(&mut self, other: Contents) {
        let mut borrow = false;
        for (word, other) in self.0.iter_mut().zip(other.0) {
            let (rest, under) = word.overflowing_sub(other);
            let (rest, again) = rest.overflowing_sub(borrow.into());
            (*word, borrow) = (rest, under || again);
        }
    }

    /// That of one entry's record.
    pub fn of_record(id: EntryId, record: &[u8]) -> Contents {
        let sum = Sha256::new().chain_update([0]).chain_update(id.to_bytes()).chain_update(record);
        Contents::of(&sum.finalize().into())
    }

    /// That of a value of a large attribute.
    fn of_value(id: EntryId, attribute: &str, value: &[u8]) -> Contents {
        let sum = Sha256::new().chain_update([1]).chain_update(id.to_bytes());
        let sum = sum.chain_update((attribute.len() as u64).to_be_bytes());
        let sum = sum.chain_update(attribute.as_bytes()).chain_update(value);
        Contents::of(&sum.finalize().into())
    }

    /// Takes what has become of an entry's large values.
    pub fn edit(&mut self, id: EntryId, edits: &[LargeValuesEdit]) {
        for edit in edits {
            for (_, value) in &edit.removed {
                self.subtract(Contents::of_value(id, &edit.name, value));
            }
            for (_, value) in &edit.added {
                self.add(Contents::of_value(id, &edit.name, value));
            }
        }
    }
}

impl<'t> View<'t> {
    /// The digest of all entries, if it is kept: see [`Write::keep_contents`](crate::Write::keep_contents).
    ///
    /// # Errors
    /// [`Error::Damaged`], or the system's.
    pub fn contents(self) -> Result<Option<FeedDigest>, Error> {
        let row = self.shared.get(self.tables.meta, self.txn, META_CONTENTS)?;
        Ok(row.map(Contents::from_bytes).transpose()?.map(|it| FeedDigest(it.to_bytes())))
    }

    /// The digest at the last position of the feed that has one; `None` if its row is not kept.
    ///
    /// # Errors
    /// As [`View::contents`].
    pub fn last_contents(self) -> Result<Option<(u64, FeedDigest)>, Error> {
        let Some(head) = self.feed_head()? else { return Ok(None) };
        let position = head.position - head.position % CONTENTS_EVERY;
        if position < head.first {
            return Ok(None);
        }
        let Some(row) = self.feed_after(position - 1)?.next() else { return Ok(None) };
        let row = row?;
        let digest = row.jobs.iter().flat_map(|job| &job.changes).find_map(|change| match change {
            Change::Meta(MetaChange { name, value: [_, Some(value)] }) if name == CONTENTS => {
                Contents::from_bytes(value).ok()
            }
            _ => None,
        });
        Ok(digest.map(|digest| (position, FeedDigest(digest.to_bytes()))))
    }

    /// The digest, made of all entries.
    ///
    /// # Errors
    /// As [`View::contents`].
    pub fn count_contents(self) -> Result<FeedDigest, Error> {
        let mut all = Contents::default();
        for entry in self.entries(EntryId::ROOT)? {
            let (id, entry) = entry?;
            let record = self.shared.get(self.tables.entry, self.txn, &id.to_bytes())?;
            all.add(Contents::of_record(id, record.unwrap_or_default()));
            for large in entry.large() {
                for value in self.large_values(id, &large)? {
                    all.add(Contents::of_value(id, large.name, value?.1));
                }
            }
        }
        Ok(FeedDigest(all.to_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_do_not_depend_on_the_order_and_can_be_taken_back() {
        let terms: Vec<Contents> =
            (1..50).map(|id| Contents::of_record(EntryId(id), b"record")).collect();
        let mut all = Contents::default();
        terms.iter().for_each(|term| all.add(*term));
        let mut backwards = Contents::default();
        terms.iter().rev().for_each(|term| backwards.add(*term));
        assert_eq!(all, backwards);
        assert_eq!(Contents::from_bytes(&all.to_bytes()).unwrap(), all);
        terms.iter().for_each(|term| all.subtract(*term));
        assert_eq!(all, Contents::default());
        all.subtract(Contents([1, 0, 0, 0]));
        assert_eq!(all, Contents([u64::MAX; 4]));
    }
}
