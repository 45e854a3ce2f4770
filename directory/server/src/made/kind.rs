//! The trees that are made when a client asks for them.

use crate::access::Place;
use keyway_schema::EntryName;

/// One of the trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MadeTree {
    /// The configuration.
    Config,
    /// The server's activity.
    Monitor,
}

impl MadeTree {
    /// All of them.
    pub const ALL: [MadeTree; 2] = [MadeTree::Config, MadeTree::Monitor];

    /// The name of its top.
    pub const fn dn(self) -> &'static str {
        match self {
            MadeTree::Config => "cn=config",
            MadeTree::Monitor => "cn=monitor",
        }
    }

    /// What access rules call it.
    pub(crate) fn place(self) -> Place {
        match self {
            MadeTree::Config => Place::Config,
            MadeTree::Monitor => Place::Monitor,
        }
    }

    /// The tree that a name is in.
    pub(crate) fn of(name: &EntryName) -> Option<MadeTree> {
        let top = name.parts.last()?;
        MadeTree::ALL.into_iter().find(|tree| top.text.eq_ignore_ascii_case(tree.dn()))
    }
}
