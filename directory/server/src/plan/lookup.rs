//! Posting lists that lead to all that matches a test.

use keyway_store::{EntryId, Key, KeyRange};

/// Lists of a lookup that may be walked along with others.
pub const NARROWING_LISTS_MAX: usize = 4;

/// A set of posting lists that together hold all that matches some filter.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Lookup {
    /// Lists.
    pub lists: Vec<Key>,
    /// Lists that are read whole.
    pub ranges: Vec<KeyRange>,
    /// Groups whose members they are; these are not looked up before all else.
    pub groups: Vec<EntryId>,
    /// Entries.
    pub ids: Vec<EntryId>,
}

impl Lookup {
    pub fn list(key: Key) -> Lookup {
        Lookup::lists([key])
    }

    pub fn lists(keys: impl IntoIterator<Item = Key>) -> Lookup {
        Lookup { lists: keys.into_iter().collect(), ..Lookup::default() }
    }

    pub fn range(range: KeyRange) -> Lookup {
        Lookup { ranges: vec![range], ..Lookup::default() }
    }

    pub fn add(&mut self, other: Lookup) {
        self.lists.extend(other.lists);
        self.ranges.extend(other.ranges);
        self.groups.extend(other.groups);
        self.ids.extend(other.ids);
    }

    pub fn len(&self) -> usize {
        self.lists.len() + self.ranges.len() + self.groups.len()
    }

    /// Whether it is lists and nothing else.
    pub fn is_plain(&self) -> bool {
        self.ranges.is_empty() && self.groups.is_empty() && self.ids.is_empty()
    }

    pub fn has_groups(&self) -> bool {
        !self.groups.is_empty()
    }

    /// Whether it is cheap enough to be walked along with another.
    pub fn can_narrow(&self) -> bool {
        !self.has_groups() && self.len() <= NARROWING_LISTS_MAX
    }
}
