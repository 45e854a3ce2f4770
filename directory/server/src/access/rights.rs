//! The rights that rules grant.

use std::fmt;
use std::ops::BitOr;

/// A set of things that may be done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rights(u16);

impl Rights {
    /// None of them.
    pub const NONE: Rights = Rights(0);
    /// Return the attribute in a search or a read entry control.
    pub const READ: Rights = Rights(1);
    /// Use the attribute in a filter.
    pub const SEARCH: Rights = Rights(2);
    /// Compare the attribute.
    pub const COMPARE: Rights = Rights(4);
    /// Change the attribute.
    pub const WRITE: Rights = Rights(8);
    /// Add entries below the entry. It is not bound to attributes.
    pub const ADD: Rights = Rights(16);
    /// Delete the entry, likewise.
    pub const DELETE: Rights = Rights(32);
    /// Rename the entry, likewise; to move it takes [`Rights::ADD`] where it goes as well.
    pub const RENAME: Rights = Rights(64);
    /// Give the entry a new password, and change nothing else.
    pub const RESET: Rights = Rights(128);
    /// Add and remove one's own DN as a value of the attribute, and change nothing else of it.
    pub const SELF_WRITE: Rights = Rights(256);
    /// Add, delete and rename.
    pub const MANAGE: Rights = Rights(16 | 32 | 64);
    /// All of them.
    pub const ALL: Rights = Rights(0x1ff);

    /// Each by itself, under its name in a configuration.
    pub const EACH: [(&str, Rights); 9] = [
        ("read", Rights::READ),
        ("search", Rights::SEARCH),
        ("compare", Rights::COMPARE),
        ("write", Rights::WRITE),
        ("add", Rights::ADD),
        ("delete", Rights::DELETE),
        ("rename", Rights::RENAME),
        ("reset", Rights::RESET),
        ("selfwrite", Rights::SELF_WRITE),
    ];

    /// All names that a configuration may use.
    pub const NAMES: &str = "read, search, compare, write, add, delete, rename, reset, selfwrite, manage (add, delete, rename), all";

    /// Whether all of `other` are in it.
    pub fn contains(self, other: Rights) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether one of `others` is in it.
    pub fn has_one_of(self, others: Rights) -> bool {
        self.0 & others.0 != 0
    }

    /// Whether it is bound to attributes: those that are not speak of whole entries.
    pub fn is_of_attributes(self) -> bool {
        !self.has_one_of(Rights::MANAGE)
    }

    /// Those that are in it and not in `others`.
    #[must_use]
    pub fn without(self, others: Rights) -> Rights {
        Rights(self.0 & !others.0)
    }

    /// The right of a name, as in a configuration.
    pub fn from_name(name: &str) -> Option<Rights> {
        let one = Self::EACH.iter().find(|(known, _)| *known == name).map(|(_, rights)| *rights);
        one.or(match name {
            "manage" => Some(Rights::MANAGE),
            "all" => Some(Rights::ALL),
            _ => None,
        })
    }
}

impl BitOr for Rights {
    type Output = Rights;

    fn bitor(self, other: Rights) -> Rights {
        Rights(self.0 | other.0)
    }
}

impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names = Self::EACH.iter().filter(|(_, right)| self.contains(*right));
        if let Some((first, _)) = names.next() {
            f.write_str(first)?;
        }
        names.try_for_each(|(name, _)| write!(f, ", {name}"))
    }
}
