//! Entries that nobody has stored: the trees `cn=config` and `cn=monitor`, made when somebody asks.
//!
//! What is in a tree is for whoever publishes it: the program for the configuration, the network half for
//! the monitor. Here they are found, and changes of them handed over.

mod change;
mod tree;
mod wanted;

pub(crate) use change::Handover;
pub(crate) use tree::Tree;
pub use wanted::Wanted;

use crate::access::Place;
use crate::directory::{Core, Directory, Shared};
use keyway_codec::message::ChangeOperation;
use keyway_schema::{EntryAttributes, EntryName};
use std::sync::{Arc, PoisonError, RwLock};

/// One of the trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MadeTree {
    /// The configuration.
    Config,
    /// What the server is doing.
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

/// An entry of such a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeEntry {
    /// Its name.
    pub dn: String,
    /// Its attributes, under their canonical names; what follows from its place is added to them, but for the
    /// number of those below it where it is there already, since not all of them are made.
    pub attributes: EntryAttributes,
}

impl MadeEntry {
    /// An entry of a structural class, with these values; attributes without any are left out.
    pub fn new(dn: String, class: &str, attributes: &[(&str, Vec<String>)]) -> MadeEntry {
        let classes = ["top", class].map(|class| class.as_bytes().to_vec());
        let mut all: EntryAttributes = vec![("objectClass".to_owned(), classes.to_vec())];
        for (name, values) in attributes.iter().filter(|(_, values)| !values.is_empty()) {
            let values = values.iter().map(|value| value.as_bytes().to_vec()).collect();
            all.push(((*name).to_owned(), values));
        }
        MadeEntry { dn, attributes: all }
    }
}

/// What somebody who may wants to be changed of an entry.
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
    /// What is done.
    pub operation: ChangeOperation,
    /// The attribute's canonical name.
    pub attribute: String,
    /// The values.
    pub values: Vec<Vec<u8>>,
}

/// Called once, with why it was not done if it was not; what was done is on the disk.
pub type Reply = Box<dyn FnOnce(Result<(), String>) + Send>;

type Entries = dyn Fn(&Wanted<'_>) -> Vec<MadeEntry> + Send + Sync;
type Change = dyn Fn(Modification, Reply) + Send + Sync;

/// What makes a tree.
pub struct Maker {
    entries: Box<Entries>,
    change: Option<Box<Change>>,
}

impl Maker {
    /// Of a tree that can only be read; `entries` makes those that are wanted, each after the one above it, and
    /// may make others. It is called by the thread of a connection, and must not wait.
    pub fn new(entries: impl Fn(&Wanted<'_>) -> Vec<MadeEntry> + Send + Sync + 'static) -> Maker {
        Maker { entries: Box::new(entries), change: None }
    }

    /// The same of one that can be changed. `change` must not wait either: it answers later.
    #[must_use]
    pub fn changed_by(
        mut self,
        change: impl Fn(Modification, Reply) + Send + Sync + 'static,
    ) -> Maker {
        self.change = Some(Box::new(change));
        self
    }
}

/// The trees that are published.
#[derive(Default)]
pub(crate) struct MadeTrees([RwLock<Option<Arc<Maker>>>; MadeTree::ALL.len()]);

impl MadeTrees {
    fn slot(&self, tree: MadeTree) -> &RwLock<Option<Arc<Maker>>> {
        let [config, monitor] = &self.0;
        match tree {
            MadeTree::Config => config,
            MadeTree::Monitor => monitor,
        }
    }
}

impl Shared {
    pub(crate) fn maker(&self, tree: MadeTree) -> Option<Arc<Maker>> {
        self.made.slot(tree).read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Core {
    /// The entries of a tree as they are now, those that are wanted among them.
    pub(crate) fn made(&self, tree: MadeTree, wanted: &Wanted<'_>) -> Tree {
        let entries =
            self.shared.maker(tree).map(|maker| (maker.entries)(wanted)).unwrap_or_default();
        Tree::new(&self.schema, entries)
    }
}

impl Directory {
    /// Shows a tree from now on, in the place of one that was published before.
    pub fn publish(&self, tree: MadeTree, maker: Maker) {
        let slot = self.shared.made.slot(tree);
        *slot.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(maker));
    }
}
