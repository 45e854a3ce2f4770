//! Virtual trees that are published, and made when a client asks for them.

use super::provider::Provider;
use super::tree::Tree;
use super::tree_name::VirtualTree;
use super::wanted::Wanted;
use crate::directory::Directory;
use crate::state::{DirectoryState, Snapshot};
use keyway_lock::Unpoisoned;
use std::sync::Arc;

impl DirectoryState {
    pub(crate) fn provider(&self, tree: VirtualTree) -> Option<Arc<Provider>> {
        self.virtual_trees.slot(tree)?.read().unpoisoned().clone()
    }
}

impl Snapshot {
    /// The entries of a tree as they are now, those that are wanted among them.
    pub(crate) fn virtual_tree(&self, tree: VirtualTree, wanted: &Wanted<'_>) -> Tree {
        let entries = self
            .shared
            .provider(tree)
            .map(|provider| (provider.entries)(wanted))
            .unwrap_or_default();
        Tree::new(&self.schema, entries)
    }
}

impl Directory {
    /// Shows a tree from now on, in the place of one that was published before. The changelog is shown without it.
    pub fn publish(&self, tree: VirtualTree, provider: Provider) {
        if let Some(slot) = self.shared.virtual_trees.slot(tree) {
            *slot.write().unpoisoned() = Some(Arc::new(provider));
        }
    }
}
