//! Large attributes: those whose values lie in a table of their own and not in the entry's record,
//! because they are too many to read them all to find or change one.
//!
//! A value has a key there, made of the form in which equal values are equal bytes. Which attributes
//! are large, and what that form is, the caller says.

use sha2::{Digest, Sha256};

/// The part of a record that stands for an attribute whose values lie in a table of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Large<'t> {
    /// The attribute's name.
    pub name: &'t str,
    /// Its number within the entry, which its values' rows begin with.
    pub slot: u32,
    /// How many values it has.
    pub count: u64,
    /// Bytes of all values together.
    pub bytes: u64,
}

/// By what a value of a large attribute is found: 16 B of a hash of its normal form.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ValueKey(pub(crate) [u8; ValueKey::BYTES]);

impl ValueKey {
    /// Its length.
    pub const BYTES: usize = 16;

    /// No key is less.
    pub(crate) const LEAST: ValueKey = ValueKey([0; ValueKey::BYTES]);

    /// The key of the value with this normal form.
    pub fn of(normal: &[u8]) -> ValueKey {
        let hash = Sha256::digest(normal);
        ValueKey(std::array::from_fn(|at| hash.get(at).copied().unwrap_or_default()))
    }
}

/// How a large attribute changes; one that the entry did not have begins without values.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LargeEdit {
    /// The attribute's name.
    pub name: String,
    /// Values that go, if they are there.
    pub removed: Vec<ValueKey>,
    /// Values that come, after those have gone; one whose key is there takes that one's place.
    pub added: Vec<(ValueKey, Vec<u8>)>,
}

impl LargeEdit {
    /// No change of this attribute.
    pub fn none(name: &str) -> LargeEdit {
        LargeEdit { name: name.to_owned(), ..LargeEdit::default() }
    }

    /// For each key that is spoken of the value that it has afterwards, ascending by key.
    pub(crate) fn outcomes(&self) -> Vec<(ValueKey, Option<&[u8]>)> {
        let removed = self.removed.iter().map(|key| (*key, None));
        let added = self.added.iter().map(|(key, value)| (*key, Some(value.as_slice())));
        let mut all: Vec<_> = removed.chain(added).collect();
        // Stable, so that of several for one key the last comes last, and is kept.
        all.sort_by_key(|(key, _)| *key);
        all.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                earlier.1 = later.1;
            }
            same
        });
        all
    }
}
