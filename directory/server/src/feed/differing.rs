//! How attributes of an entry differ: the store's edits put together by attribute, wherever its values lie.

use keyway_store::{AttributeEdit, EditKind, LargeValuesEdit};
use std::collections::HashSet;

/// How an attribute differs.
#[derive(Debug, Default)]
pub(super) struct Differing {
    pub name: String,
    /// Values that it has no more.
    pub removed: Vec<Vec<u8>>,
    /// Values that it has now.
    pub added: Vec<Vec<u8>>,
    /// None of its values stays: all that it had are `removed`, and all that it has are `added`.
    pub is_whole: bool,
}

/// Attributes that differ. One whose values only came to lie elsewhere does not.
pub(super) fn differing(
    attributes: Vec<AttributeEdit>,
    large: Vec<LargeValuesEdit>,
) -> Vec<Differing> {
    let mut all: Vec<Differing> = Vec::new();
    let mut put = |name: String, is_gone: bool, removed: Vec<_>, added: Vec<_>| {
        let at = all.iter().position(|one| one.name == name).unwrap_or_else(|| {
            all.push(Differing { name, ..Differing::default() });
            all.len() - 1
        });
        let Some(one) = all.get_mut(at) else { return };
        one.is_whole |= is_gone;
        one.removed.extend(removed);
        one.added.extend(added);
    };
    for AttributeEdit { kind, name, removed, added, .. } in attributes {
        put(name, kind == EditKind::Gone, removed, added);
    }
    for LargeValuesEdit { name, is_named, removed, added } in large {
        let values = |values: Vec<(_, Vec<u8>)>| values.into_iter().map(|(_, value)| value);
        put(name, !is_named, values(removed).collect(), values(added).collect());
    }
    all.iter_mut().for_each(Differing::cancel);
    all.retain(|one| !one.is_empty());
    all
}

impl Differing {
    /// Whether nothing is left of it.
    pub fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.added.is_empty()
    }

    /// Values that went and came stay.
    fn cancel(&mut self) {
        if self.removed.is_empty() || self.added.is_empty() {
            return;
        }
        let added: HashSet<&Vec<u8>> = self.added.iter().collect();
        let stay: HashSet<Vec<u8>> =
            self.removed.iter().filter(|value| added.contains(value)).cloned().collect();
        if !stay.is_empty() {
            self.removed.retain(|value| !stay.contains(value));
            self.added.retain(|value| !stay.contains(value));
            self.is_whole = false;
        }
    }
}
