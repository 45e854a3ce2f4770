//! Under which keys an entry is found before and after another directory's change of it.

use crate::failure::Result;
use crate::index::Indexes;
use crate::large::whole;
use crate::state::Snapshot;
use crate::write::{LargeDraft, sharing};
use keyway_schema::EntryAttributes;
use keyway_store::{Change, Relisted, Updated, View, Whole};

/// The keys that a change's entry loses and gets in this directory's indexes. `view` is the state before it.
///
/// # Errors
/// The store's.
pub(super) fn relist(snapshot: &Snapshot, view: View<'_>, change: &Change) -> Result<Relisted> {
    let (schema, indexes) = (&snapshot.schema, &snapshot.indexes);
    Ok(match change {
        Change::Inserted(whole) => {
            Relisted { removed: Vec::new(), added: indexes.all_keys(schema, &all(whole)) }
        }
        Change::Deleted(deleted) => match view.entry(deleted.id)? {
            Some(entry) => {
                let attributes = whole(view, deleted.id, &entry)?;
                Relisted { removed: indexes.keys(schema, &attributes), added: Vec::new() }
            }
            None => Relisted::default(),
        },
        Change::Updated(updated) => relist_updated(snapshot, view, updated)?,
        Change::Moved(_) | Change::Meta(_) => Relisted::default(),
    })
}

/// All attributes of an entry that came.
fn all(whole: &Whole) -> EntryAttributes {
    let mut attributes = whole.entry.attributes.clone();
    for large in &whole.entry.large {
        let values = large.added.iter().map(|(_, value)| value.clone()).collect();
        attributes.push((large.name.clone(), values));
    }
    attributes
}

fn relist_updated(snapshot: &Snapshot, view: View<'_>, updated: &Updated) -> Result<Relisted> {
    let (schema, indexes) = (&snapshot.schema, &snapshot.indexes);
    // The store refuses the change of an entry that is not there.
    let Some(entry) = view.entry(updated.id)? else { return Ok(Relisted::default()) };
    let before = entry.to_entry().attributes;
    let after = updated.edit(before.clone())?;
    if updated.large.is_empty() && entry.large().next().is_none() {
        let (removed, added) = indexes.difference(schema, &before, &after);
        return Ok(Relisted { removed, added });
    }
    let (mut gone, mut come) = Indexes::exchanged(&before, &after);
    for large in &updated.large {
        put(&mut gone, &large.name, large.removed.iter().map(|(_, value)| value));
        put(&mut come, &large.name, large.added.iter().map(|(_, value)| value));
    }
    // Values that move between the record and the table of large attributes stay listed.
    let (gone, come) = Indexes::exchanged(&gone, &come);
    let mut after = after;
    let mut known = Vec::new();
    for large in entry.large() {
        let mut draft = LargeDraft::of(updated.id, &large);
        let edit = updated.large.iter().find(|edit| edit.name == large.name);
        if let Some(edit) = edit {
            draft.edit(edit);
        }
        if draft.len() > 0
            && let Some(values) = sharing(snapshot, view, &draft, &gone)?
        {
            after.push((large.name.to_owned(), values));
        }
        known.push(large.name.to_owned());
    }
    for edit in updated.large.iter().filter(|edit| !known.contains(&edit.name)) {
        put(&mut after, &edit.name, edit.added.iter().map(|(_, value)| value));
    }
    let (removed, added) = indexes.exchange(schema, &gone, &come, &after);
    Ok(Relisted { removed, added })
}

/// Adds values to an attribute.
fn put<'v>(to: &mut EntryAttributes, name: &str, values: impl Iterator<Item = &'v Vec<u8>>) {
    let mut values = values.cloned().peekable();
    if values.peek().is_none() {
        return;
    }
    match to.iter_mut().find(|(held, _)| held == name) {
        Some((_, held)) => held.extend(values),
        None => to.push((name.to_owned(), values.collect())),
    }
}
