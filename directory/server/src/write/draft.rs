//! An entry while it is changed.

use super::edit;
use super::values::LargeDraft;
use crate::failure::Result;
use crate::index::{DirectoryState, Indexes};
use crate::large::{self, key};
use crate::state::Snapshot;
use keyway_codec::message::ChangeOperation;
use keyway_schema::{
    AttributeType, Description, EntryAttributes, Schema, check_entry, check_loosely,
};
use keyway_store::{Entry, EntryId, EntryRef, Key, View};

/// An entry while it is changed: the attributes of its record, and those whose values lie apart from it
/// and are not read for it.
pub(crate) struct Draft {
    pub attributes: EntryAttributes,
    pub large: Vec<LargeDraft>,
}

impl Draft {
    /// The entry as it is stored.
    pub fn of(id: EntryId, entry: &EntryRef<'_>) -> Draft {
        let large = entry.large().map(|large| LargeDraft::of(id, &large)).collect();
        Draft { attributes: entry.to_entry().attributes, large }
    }

    /// Adds, deletes or replaces values of an attribute, or increments it.
    ///
    /// # Errors
    /// Those of [`edit::add`], [`edit::delete`], [`edit::replace`] and [`edit::increment`], or the
    /// store's.
    pub fn change(
        &mut self,
        schema: &Schema,
        view: View<'_>,
        operation: ChangeOperation,
        description: &Description<'_>,
        values: &[Vec<u8>],
    ) -> Result<()> {
        use ChangeOperation::{Add, Delete, Increment, Replace};
        let (name, attribute) = (description.canonical(), description.attribute);
        let Draft { attributes, large } = self;
        let large = large.iter_mut().find(|large| large.name == name);
        match (operation, large) {
            (Add, Some(large)) => large.add(schema, view, attribute, values.to_vec()),
            (Add, None) => edit::add(schema, attributes, description, values.to_vec()),
            (Delete, Some(large)) => large.delete(schema, view, attribute, values),
            (Delete, None) => edit::delete(schema, attributes, description, values),
            (Replace, Some(large)) => large.replace(schema, view, attribute, values.to_vec()),
            (Replace, None) => edit::replace(schema, attributes, description, values.to_vec()),
            // Integers are never large.
            (Increment, _) => edit::increment(attributes, description, values),
        }
    }

    /// Whether the entry has a value equal to this one under a canonical description.
    pub fn has_value(
        &self,
        schema: &Schema,
        view: View<'_>,
        (name, attribute): (&str, &AttributeType),
        value: &[u8],
    ) -> Result<bool> {
        if let Some(large) = self.large.iter().find(|large| large.name == name) {
            return Ok(large.get(view, key(schema, attribute, value))?.is_some());
        }
        let held = edit::values(&self.attributes, name).map_or(&[][..], Vec::as_slice);
        Ok(edit::is_among(schema, attribute, held, value))
    }

    /// Checks it as [`check_entry`] does, or [`check_loosely`] what was not sound before.
    pub fn check(&self, schema: &Schema, was_sound: bool) -> Result<()> {
        let large: Vec<&str> = large_names(&self.large).collect();
        match was_sound {
            true => check_entry(schema, &self.attributes, &large).map(drop)?,
            false => check_loosely(schema, &self.attributes, &large).map(drop)?,
        }
        Ok(())
    }

    /// The keys that the entry loses and gets, as far as these attributes of its record, which were
    /// some before and others after, and all large ones are concerned.
    ///
    /// # Errors
    /// The store's.
    pub fn difference(
        &self,
        snapshot: &Snapshot,
        view: View<'_>,
        before: &EntryAttributes,
        after: &EntryAttributes,
    ) -> Result<(Vec<Key>, Vec<Key>)> {
        let (schema, indexes) = (&snapshot.schema, &snapshot.indexes);
        if self.large.is_empty() {
            return Ok(indexes.difference(schema, before, after));
        }
        let (mut gone, mut come) = Indexes::exchanged(before, after);
        for large in &self.large {
            let with = |values: Vec<Vec<u8>>, all: &mut EntryAttributes| {
                if !values.is_empty() {
                    all.push((large.name.clone(), values));
                }
            };
            with(large.gone().cloned().collect(), &mut gone);
            with(large.come().cloned().collect(), &mut come);
        }
        let mut after = after.clone();
        for large in self.large.iter().filter(|large| large.len() > 0) {
            if let Some(values) = sharing(snapshot, view, large, &gone)? {
                after.push((large.name.clone(), values));
            }
        }
        Ok(indexes.exchange(schema, &gone, &come, &after))
    }

    /// The entry as it is to be written; what has become many values goes apart, and what has become
    /// few comes back.
    ///
    /// # Errors
    /// The store's.
    pub fn finish(self, schema: &Schema, view: View<'_>, rdn: String) -> Result<Entry> {
        let Draft { mut attributes, large: drafts } = self;
        let keys = large::keys(schema, &attributes);
        let mut edits = large::take(&mut attributes, &keys);
        for draft in drafts {
            match draft.len() {
                0 => {}
                _ if draft.are_few() => attributes.push((draft.name.clone(), draft.values(view)?)),
                _ => edits.push(draft.into_edit()),
            }
        }
        Ok(Entry { rdn, attributes, large: edits })
    }
}

/// Descriptions of those that have values.
pub(super) fn large_names(large: &[LargeDraft]) -> impl Iterator<Item = &str> {
    large.iter().filter(|large| large.len() > 0).map(|large| large.name.as_str())
}

/// Those values of a large attribute that may have a key in common with values that go; `None` if
/// there can be none. All are read only where an index has parts of values in it.
pub(crate) fn sharing(
    snapshot: &Snapshot,
    view: View<'_>,
    large: &LargeDraft,
    gone: &EntryAttributes,
) -> Result<Option<Vec<Vec<u8>>>> {
    let mut shared = None;
    for (name, values) in gone {
        match snapshot.indexes.shared(&snapshot.schema, name, &large.name) {
            DirectoryState::Nothing => {}
            DirectoryState::Presence => drop(shared.get_or_insert_with(Vec::new)),
            DirectoryState::Parts => return large.values(view).map(Some),
            DirectoryState::Equal => {
                let Some(attribute) = large.attribute(&snapshot.schema) else { continue };
                let shared = shared.get_or_insert_with(Vec::new);
                for value in values {
                    shared.extend(large.get(view, key(&snapshot.schema, attribute, value))?);
                }
            }
        }
    }
    Ok(shared)
}
