//! Trees that are published, and made when a client asks for them.

use super::kind::MadeTree;
use super::maker::Maker;
use super::tree::Tree;
use super::wanted::Wanted;
use crate::directory::Directory;
use crate::state::{DirectoryState, Snapshot};
use std::sync::{Arc, PoisonError};

impl DirectoryState {
    pub(crate) fn maker(&self, tree: MadeTree) -> Option<Arc<Maker>> {
        self.made.slot(tree).read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Snapshot {
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
