//! The kinds of index that an attribute can have, and those that the settings want.

use std::collections::BTreeSet;
use std::fmt;

/// A kind of index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IndexKind {
    /// Finds values that are equal, or begin alike; where the attribute's ordering rule sees values as
    /// its equality rule does, also those that are greater or less.
    Equality,
    /// Finds entries that have the attribute.
    Presence,
    /// Finds values by any part of three bytes or more.
    Substring,
    /// Finds values that are greater or less by the attribute's ordering rule.
    Ordering,
    /// Finds values whose words sound alike.
    Approximate,
}

impl IndexKind {
    /// All of them.
    pub const ALL: [IndexKind; 5] = [
        IndexKind::Equality,
        IndexKind::Presence,
        IndexKind::Substring,
        IndexKind::Ordering,
        IndexKind::Approximate,
    ];

    /// Its name, as in a configuration.
    pub fn name(self) -> &'static str {
        match self {
            IndexKind::Equality => "equality",
            IndexKind::Presence => "presence",
            IndexKind::Substring => "substring",
            IndexKind::Ordering => "ordering",
            IndexKind::Approximate => "approximate",
        }
    }

    /// The kind of a name.
    pub fn from_name(name: &str) -> Option<IndexKind> {
        IndexKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Its name in the store's rows.
    pub(super) fn word(self) -> &'static str {
        match self {
            IndexKind::Equality => "eq",
            IndexKind::Presence => "pres",
            IndexKind::Substring => "sub",
            IndexKind::Ordering => "ord",
            IndexKind::Approximate => "approx",
        }
    }

    pub(super) fn from_word(word: &str) -> Option<IndexKind> {
        IndexKind::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// The kind of its keys.
    pub(crate) fn byte(self) -> u8 {
        match self {
            IndexKind::Equality => b'e',
            IndexKind::Presence => b'p',
            IndexKind::Substring => b'i',
            IndexKind::Ordering => b'o',
            IndexKind::Approximate => b'a',
        }
    }

    /// Its place in a set of bits.
    pub(super) fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl fmt::Display for IndexKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How one attribute is indexed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexSetting {
    /// The attribute.
    pub attribute: String,
    /// By which kinds.
    pub kinds: BTreeSet<IndexKind>,
}

impl IndexSetting {
    /// An attribute and its kinds.
    pub fn new(attribute: &str, kinds: &[IndexKind]) -> IndexSetting {
        IndexSetting { attribute: attribute.into(), kinds: kinds.iter().copied().collect() }
    }

    /// The indexes that `keyway up` starts with.
    pub fn defaults() -> Vec<IndexSetting> {
        use IndexKind::{Equality, Presence, Substring};
        let names = ["uid", "cn", "sn", "givenName", "mail"];
        let names = names.map(|name| IndexSetting::new(name, &[Equality, Presence, Substring]));
        let others = [
            "objectClass",
            "member",
            "uniqueMember",
            "memberUid",
            "uidNumber",
            "gidNumber",
            "entryUUID",
            "ou",
            "o",
            "dc",
            "l",
            "telephoneNumber",
            "employeeNumber",
            "manager",
            "createTimestamp",
            "modifyTimestamp",
        ];
        let others = others.map(|name| IndexSetting::new(name, &[Equality]));
        names.into_iter().chain(others).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use keyway_schema::{AttributeType, Schema};

    #[test]
    fn defaults_are_of_the_standard_schema() {
        let schema = Schema::standard().unwrap();
        for setting in IndexSetting::defaults() {
            let attribute = schema.attribute(&setting.attribute);
            assert_eq!(attribute.map(AttributeType::name), Some(setting.attribute.as_str()));
        }
    }
}
