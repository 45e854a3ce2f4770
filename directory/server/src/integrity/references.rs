//! References that follow the entries which they name: renamed with them, and gone with them.

use super::reference_attribute::{ReferenceAttribute, normal_dn};
use crate::failure::{Failure, Result};
use crate::limits::REFERENCES_MAX;
use crate::state::Snapshot;
use crate::write::{Draft, LargeDraft, Stamp};
use keyway_codec::message::ResultCode;
use keyway_store::{EntryId, KeyRange, ValueKey, View, Write};
use std::collections::{BTreeMap, HashMap};

/// The cleanup of the references to an entry whose name goes.
pub(crate) struct ReferenceCleanup {
    /// Its DN as it is written in the directory.
    old: String,
    normal: Vec<u8>,
    /// Its new DN, and the normal form of that; `None` if it is deleted.
    new: Option<(String, Vec<u8>)>,
}

impl ReferenceCleanup {
    /// The cleanup for an entry of this DN that gets a new one, or goes. `None` if nothing can name it.
    pub fn new(snapshot: &Snapshot, old: String, new: Option<String>) -> Option<ReferenceCleanup> {
        let normal = normal_dn(&snapshot.schema, &old)?;
        let new = match new {
            Some(new) => {
                let normal = normal_dn(&snapshot.schema, &new)?;
                Some((new, normal))
            }
            None => None,
        };
        Some(ReferenceCleanup { old, normal, new })
    }
}

/// A value to change, by the places of its attribute and of the cleanup for the entry that it names.
type Reference = (usize, usize);

/// Entries with references to be cleaned up.
pub(crate) struct ReferringEntries {
    cleanups: Vec<ReferenceCleanup>,
    by_entry: BTreeMap<EntryId, Vec<Reference>>,
}

impl Snapshot {
    /// Finds the entries with references that these cleanups are for, by the indexes of the attributes
    /// that the settings list. Cleanups without any reference are forgotten at once: they may be many.
    ///
    /// # Errors
    /// `adminLimitExceeded` if there are more than [`REFERENCES_MAX`] references, or the store's.
    pub fn referring_entries(
        &self,
        view: View<'_>,
        cleanups: impl Iterator<Item = Result<Option<ReferenceCleanup>>>,
    ) -> Result<ReferringEntries> {
        let mut found = ReferringEntries { cleanups: Vec::new(), by_entry: BTreeMap::new() };
        let mut used = Vec::new();
        for (which, attribute) in self.integrity.references.iter().enumerate() {
            if self.is_used(view, attribute)? {
                used.push((which, attribute));
            }
        }
        if used.is_empty() {
            return Ok(found);
        }
        let mut count = 0;
        for one in cleanups {
            let Some(one) = one? else { continue };
            let (before, who) = (count, found.cleanups.len());
            for (which, attribute) in &used {
                let key = self.indexes.equality(&attribute.name, &attribute.normal(&one.normal));
                let Some(key) = key else { continue };
                for id in view.postings(&key, EntryId::ROOT)? {
                    count += 1;
                    if count > REFERENCES_MAX {
                        return Err(too_many(&attribute.name));
                    }
                    found.by_entry.entry(id?).or_default().push((*which, who));
                }
            }
            if count > before {
                found.cleanups.push(one);
            }
        }
        Ok(found)
    }

    /// Whether any entry has the attribute.
    fn is_used(&self, view: View<'_>, attribute: &ReferenceAttribute) -> Result<bool> {
        let range: Option<KeyRange> = self.indexes.all(&attribute.name);
        match range {
            Some(range) => Ok(view.collect_range(&range, 0)?.is_none()),
            None => Ok(false),
        }
    }
}

fn too_many(attribute: &str) -> Failure {
    let text = format!(
        "more than {REFERENCES_MAX} values (of {attribute} and others) name what would go; \
         remove some of them first"
    );
    Failure::new(ResultCode::AdminLimitExceeded, text)
}

impl ReferringEntries {
    /// Forgets what the entry itself refers to: it goes.
    pub fn without(mut self, id: EntryId) -> ReferringEntries {
        self.by_entry.remove(&id);
        self
    }

    /// Changes all values that name an entry whose name has gone, and marks their entries as changed.
    ///
    /// # Errors
    /// The store's.
    pub fn clean_up(
        &self,
        snapshot: &Snapshot,
        write: &mut Write<'_>,
        stamp: &Stamp,
    ) -> Result<()> {
        for (id, references) in &self.by_entry {
            self.clean_up_entry(snapshot, write, stamp, *id, references)?;
        }
        Ok(())
    }

    fn clean_up_entry(
        &self,
        snapshot: &Snapshot,
        write: &mut Write<'_>,
        stamp: &Stamp,
        id: EntryId,
        references: &[Reference],
    ) -> Result<()> {
        let Some(entry) = write.view().entry(id)? else { return Ok(()) };
        let (rdn, mut draft) = (entry.rdn().to_owned(), Draft::of(id, &entry));
        let old = draft.attributes.clone();
        for (which, attribute) in snapshot.integrity.references.iter().enumerate() {
            let cleanups = references.iter().filter(|(by, _)| *by == which);
            let cleanups = cleanups.filter_map(|(_, who)| self.cleanups.get(*who));
            let cleanups: Vec<&ReferenceCleanup> = cleanups.collect();
            if cleanups.is_empty() {
                continue;
            }
            let is_there = |normal: &[u8]| match snapshot.indexes.equality(&attribute.name, normal)
            {
                Some(key) => write.view().contains(&key, id),
                None => Ok(false),
            };
            let mut kept = HashMap::new();
            for one in &cleanups {
                // Another value that names the new place already is enough. Where the new name is only another
                // spelling of the old one, that is the value itself.
                let new = match &one.new {
                    Some((new, normal))
                        if *normal == one.normal || !is_there(&attribute.normal(normal))? =>
                    {
                        Some(new.as_str())
                    }
                    _ => None,
                };
                kept.insert(one.old.as_bytes(), new);
            }
            let named = draft.attributes.iter_mut().filter(|(name, _)| attribute.means(name));
            for (_, values) in named {
                redirect(snapshot, attribute, &cleanups, &kept, values);
            }
            for large in draft.large.iter_mut().filter(|large| attribute.means(&large.name)) {
                redirect_large(snapshot, write.view(), attribute, &cleanups, &kept, large)?;
            }
        }
        draft.attributes.retain(|(_, values)| !values.is_empty());
        stamp.mark(&mut draft.attributes);
        let view = write.view();
        let (removed, added) = draft.difference(snapshot, view, &old, &draft.attributes)?;
        let entry = draft.finish(&snapshot.schema, view, rdn)?;
        Ok(write.update(id, &entry, &removed, &added)?)
    }
}

/// Does as [`redirect`] for an attribute with many values, of which only those that name these entries
/// are looked up.
fn redirect_large(
    snapshot: &Snapshot,
    view: View<'_>,
    attribute: &ReferenceAttribute,
    cleanups: &[&ReferenceCleanup],
    kept: &HashMap<&[u8], Option<&str>>,
    large: &mut LargeDraft,
) -> Result<()> {
    let Some(attribute_type) = large.attribute(&snapshot.schema) else { return Ok(()) };
    if !attribute_type.equality().is_some_and(|own| own.has_form_of(attribute.rule)) {
        let mut values = large.values(view)?;
        redirect(snapshot, attribute, cleanups, kept, &mut values);
        return large.replace(&snapshot.schema, view, attribute_type, values);
    }
    for one in cleanups {
        if !large.take(view, ValueKey::of(&attribute.normal(&one.normal)))? {
            continue;
        }
        let new = kept.get(one.old.as_bytes()).copied().flatten();
        let new =
            new.zip(one.new.as_ref()).map(|(new, (_, normal))| (new, attribute.normal(normal)));
        if let Some((new, normal)) = new {
            let key = ValueKey::of(&normal);
            if large.get(view, key)?.is_none() {
                large.put(key, new.as_bytes().to_vec());
            }
        }
    }
    Ok(())
}

/// Puts new names into the place of old ones, or takes them away.
///
/// A value that is spelled as the entry's name is mostly there, and no other need be understood.
fn redirect(
    snapshot: &Snapshot,
    attribute: &ReferenceAttribute,
    cleanups: &[&ReferenceCleanup],
    kept: &HashMap<&[u8], Option<&str>>,
    values: &mut Vec<Vec<u8>>,
) {
    let mut left = kept.len();
    let mut replace = |value: &mut Vec<u8>, new: Option<&str>| {
        left = left.saturating_sub(1);
        *value = new.map(|new| new.as_bytes().to_vec()).unwrap_or_default();
        new.is_some()
    };
    values.retain_mut(|value| match kept.get(value.as_slice()) {
        Some(new) => replace(value, *new),
        None => true,
    });
    if left == 0 {
        return;
    }
    let normals: HashMap<Vec<u8>, Option<&str>> = cleanups
        .iter()
        .map(|one| (attribute.normal(&one.normal), kept.get(one.old.as_bytes()).copied().flatten()))
        .collect();
    values.retain_mut(|value| {
        let normal = attribute.normalize(&snapshot.schema, value);
        match normal.and_then(|normal| normals.get(&normal)) {
            Some(new) => {
                *value = new.map(|new| new.as_bytes().to_vec()).unwrap_or_default();
                new.is_some()
            }
            None => true,
        }
    });
}
