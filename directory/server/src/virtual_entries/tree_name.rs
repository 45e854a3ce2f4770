//! The virtual trees.

use crate::access::Place;
use keyway_schema::EntryName;

/// One of the trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VirtualTree {
    /// The configuration.
    Config,
    /// The server's activity.
    Monitor,
    /// The changes that the feed keeps.
    Changelog,
    /// Work that clients have the server do.
    Tasks,
}

impl VirtualTree {
    /// All of them.
    pub const ALL: [VirtualTree; 4] =
        [VirtualTree::Config, VirtualTree::Monitor, VirtualTree::Changelog, VirtualTree::Tasks];

    /// The name of its top.
    pub const fn dn(self) -> &'static str {
        match self {
            VirtualTree::Config => "cn=config",
            VirtualTree::Monitor => "cn=monitor",
            VirtualTree::Changelog => "cn=changelog",
            VirtualTree::Tasks => "cn=tasks",
        }
    }

    /// The place that access rules name it by.
    pub(crate) fn place(self) -> Place {
        match self {
            VirtualTree::Config => Place::Config,
            VirtualTree::Monitor => Place::Monitor,
            VirtualTree::Changelog => Place::Changelog,
            VirtualTree::Tasks => Place::Tasks,
        }
    }

    /// The tree that a name is in.
    pub(crate) fn of(name: &EntryName) -> Option<VirtualTree> {
        let top = name.parts.last()?;
        VirtualTree::ALL.into_iter().find(|tree| top.text.eq_ignore_ascii_case(tree.dn()))
    }
}
