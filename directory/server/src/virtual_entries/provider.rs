//! Providers of virtual trees, and changes that they are asked for.

use super::entry::VirtualEntry;
use super::tree_name::VirtualTree;
use super::wanted::Wanted;
use keyway_codec::message::ChangeOperation;
use std::sync::{Arc, RwLock};

/// A change of an entry, asked for by a client that may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Modification {
    /// The entry, as it was published.
    pub dn: String,
    /// The changes, in their order.
    pub changes: Vec<ModifiedAttribute>,
}

/// A change of one attribute (RFC 4511 § 4.6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModifiedAttribute {
    /// The kind of the change.
    pub operation: ChangeOperation,
    /// The attribute's canonical name.
    pub attribute: String,
    /// The values.
    pub values: Vec<Vec<u8>>,
}

/// An entry that is to be there, or no longer, asked for by a client that may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// It is to be added.
    Add {
        /// The client's name.
        author: String,
        /// The entry, right below the tree's top, with those of its user attributes that fit the schema, under their
        /// canonical names.
        entry: VirtualEntry,
    },
    /// It is to be deleted; its name is as it was published.
    Delete {
        /// The entry's name.
        dn: String,
    },
}

/// Called once, with why it was not done if it was not; a change of a setting that was done is on the disk.
pub type Reply = Box<dyn FnOnce(Result<(), String>) + Send>;

type Entries = dyn Fn(&Wanted<'_>) -> Vec<VirtualEntry> + Send + Sync;
type Change = dyn Fn(Modification, Reply) + Send + Sync;
type Place = dyn Fn(Placement, Reply) + Send + Sync;

/// It makes the entries of a virtual tree when a client asks for them.
pub struct Provider {
    pub(crate) entries: Box<Entries>,
    pub(crate) change: Option<Box<Change>>,
    pub(crate) place: Option<Box<Place>>,
}

impl Provider {
    /// The provider of a tree that can only be read; `entries` makes those that are wanted, each after the one above
    /// it, and may make others. It is called by the thread of a connection, and must not wait.
    pub fn new(
        entries: impl Fn(&Wanted<'_>) -> Vec<VirtualEntry> + Send + Sync + 'static,
    ) -> Provider {
        Provider { entries: Box::new(entries), change: None, place: None }
    }

    /// The provider of a tree that can be changed as well. `change` must not wait either: it answers later.
    #[must_use]
    pub fn changed_by(
        mut self,
        change: impl Fn(Modification, Reply) + Send + Sync + 'static,
    ) -> Provider {
        self.change = Some(Box::new(change));
        self
    }

    /// The provider of a tree whose entries clients add and delete. `place` must not wait either.
    #[must_use]
    pub fn placed_by(
        mut self,
        place: impl Fn(Placement, Reply) + Send + Sync + 'static,
    ) -> Provider {
        self.place = Some(Box::new(place));
        self
    }
}

/// The trees that are published.
#[derive(Default)]
pub(crate) struct VirtualTrees([RwLock<Option<Arc<Provider>>>; 3]);

impl VirtualTrees {
    /// Where that of a tree is; none makes the changelog, which comes from the store.
    pub fn slot(&self, tree: VirtualTree) -> Option<&RwLock<Option<Arc<Provider>>>> {
        let [config, monitor, tasks] = &self.0;
        match tree {
            VirtualTree::Config => Some(config),
            VirtualTree::Monitor => Some(monitor),
            VirtualTree::Tasks => Some(tasks),
            VirtualTree::Changelog => None,
        }
    }
}
