//! Entries that lead to another one: whose attribute names it, or names one whose attribute does, and
//! so on.

use super::reference_attribute::{ReferenceAttribute, normal_dn};
use crate::failure::Result;
use crate::limits::CHAIN_IDS_MAX;
use crate::state::Snapshot;
use keyway_store::{EntryId, Names, View};
use std::collections::BTreeSet;

/// Those that lead to one entry.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    /// Ascending.
    pub ids: Vec<EntryId>,
    /// Whether these are all; not if there are more than [`CHAIN_IDS_MAX`].
    pub complete: bool,
}

impl Snapshot {
    /// The entries that lead to the one of this name (in its normal form) by an attribute. Circles
    /// end. `None` if the attribute names no entries, or is not indexed for equality.
    ///
    /// # Errors
    /// The store's.
    pub fn chain(&self, view: View<'_>, attribute: &str, normal: &[u8]) -> Result<Option<Chain>> {
        let Ok(attribute) = ReferenceAttribute::to_dn(&self.schema, attribute) else {
            return Ok(None);
        };
        let (mut found, mut waiting) = (BTreeSet::new(), vec![normal.to_vec()]);
        let mut names = Names::new();
        while let Some(named) = waiting.pop() {
            let key = self.indexes.equality(&attribute.name, &attribute.normal(&named));
            let Some(key) = key else { return Ok(None) };
            for id in view.postings(&key, EntryId::ROOT)? {
                let id = id?;
                if found.len() >= CHAIN_IDS_MAX && !found.contains(&id) {
                    return Ok(Some(Chain { ids: found.into_iter().collect(), complete: false }));
                }
                if found.insert(id) {
                    let dn = view.dn(id, &mut names)?;
                    waiting.extend(dn.and_then(|dn| normal_dn(&self.schema, &dn)));
                }
            }
        }
        Ok(Some(Chain { ids: found.into_iter().collect(), complete: true }))
    }
}
