//! Making the keys of a store's entries anew when the index settings have changed.

use crate::directory::{Directory, OpenError};
use crate::failure::Failure;
use crate::index::{IndexSetting, Indexes};
use crate::limits::REINDEX_GROUP_ENTRIES_MAX;
use keyway_store::{EntryId, Key, Write};
use std::sync::Arc;

/// Row of the store's meta table: the settings that its keys were made with.
const META_INDEXES: &str = "indexes";

impl Directory {
    /// Brings the store's keys in line with the settings. It can be interrupted and begins anew.
    ///
    /// # Errors
    /// The store's, or that its keys were made in a form that is not understood.
    pub(crate) fn reindex(&self) -> Result<(), OpenError> {
        let core = self.core();
        let read = self.store.read()?;
        let row = read.view().meta_get(META_INDEXES)?.unwrap_or_default().to_vec();
        let fresh = core.indexes.fingerprint().as_bytes();
        if row == fresh {
            return Ok(());
        }
        if !row.is_empty() {
            let old = Arc::new(self.indexes_of(&row)?);
            let mut after = Some(EntryId::ROOT);
            while let Some(from) = after {
                let (core, old) = (core.clone(), old.clone());
                after = self.store.write_now(move |write| {
                    let keys = |indexes: &Indexes, entry: &keyway_store::Entry| {
                        indexes.keys(&core.schema, &entry.attributes)
                    };
                    group(write, from, &|entry| {
                        difference(keys(&old, entry), keys(&core.indexes, entry))
                    })
                })?;
            }
        }
        let fresh = fresh.to_vec();
        let put =
            move |write: &mut Write<'_>| Ok::<_, Failure>(write.meta_put(META_INDEXES, &fresh)?);
        self.store.write_now(put)?;
        Ok(())
    }

    /// Whether the store's keys are those of the settings.
    pub(crate) fn is_indexed(&self) -> Result<bool, OpenError> {
        let read = self.store.read()?;
        let row = read.view().meta_get(META_INDEXES)?.unwrap_or_default();
        Ok(row == self.core().indexes.fingerprint().as_bytes())
    }

    fn indexes_of(&self, row: &[u8]) -> Result<Indexes, OpenError> {
        let unknown = || {
            let text = "the store was indexed by another version; export it there, import it here";
            OpenError::Store(text.into())
        };
        let text = str::from_utf8(row).map_err(|_| unknown())?;
        let settings = IndexSetting::from_fingerprint(text).ok_or_else(unknown)?;
        Indexes::new(&settings, &self.core().schema).map_err(|_| unknown())
    }
}

type Keys = Vec<Key>;

/// Gives the next entries their keys, and returns the last of them if there may be more.
fn group(
    write: &mut Write<'_>,
    from: EntryId,
    keys: &dyn Fn(&keyway_store::Entry) -> (Keys, Keys),
) -> Result<Option<EntryId>, Failure> {
    let mut entries = Vec::new();
    for entry in write.view().entries(from)?.take(REINDEX_GROUP_ENTRIES_MAX) {
        let (id, entry) = entry?;
        entries.push((id, entry.to_entry()));
    }
    for (id, entry) in &entries {
        let (removed, added) = keys(entry);
        if !removed.is_empty() || !added.is_empty() {
            write.update(*id, entry, &removed, &added)?;
        }
    }
    let full = entries.len() == REINDEX_GROUP_ENTRIES_MAX;
    Ok(entries.last().map(|(id, _)| *id).filter(|_| full))
}

/// What is only in the first and what is only in the second; both are sorted.
fn difference(old: Keys, new: Keys) -> (Keys, Keys) {
    let only = |these: &[Key], those: &[Key]| {
        let gone = these.iter().filter(|key| those.binary_search(key).is_err());
        gone.cloned().collect()
    };
    (only(&old, &new), only(&new, &old))
}
