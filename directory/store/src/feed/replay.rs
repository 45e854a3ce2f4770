//! Changes of the feed, made again.

use super::change::{Change, Updated};
use super::edits;
use crate::{Error, LargeEdit, Read, Store, Write};

impl Store {
    /// Makes all changes again that the feed of another store has, in this one, which is empty. `progress` hears of
    /// each position. Blocks, as [`Store::write_now`] does.
    ///
    /// # Errors
    /// [`Error::FeedTrimmed`] if the feed does not begin with the first change of its store, [`Error::Damaged`] if a
    /// row of it is, or is no change of the state before it.
    pub fn replay(&self, of: &Read, progress: &mut dyn FnMut(u64)) -> Result<(), Error> {
        for row in of.view().feed_after(0)? {
            let row = row?;
            progress(row.position);
            self.write_now(move |write| {
                let mut changes = row.jobs.iter().flat_map(|job| &job.changes);
                changes.try_for_each(|change| write.replay(change))
            })?;
        }
        Ok(())
    }
}

impl Write<'_> {
    /// Makes a change again, in a store that is in the state in which it was made. Entries keep their identifiers.
    /// They are listed below the entries above them, and under no other key.
    ///
    /// # Errors
    /// [`Error::Damaged`] if it is not a change of this state, and those of the change itself.
    pub fn replay(&mut self, change: &Change) -> Result<(), Error> {
        match change {
            Change::Inserted(whole) => {
                self.insert_as(whole.id, whole.parent, &whole.component, &whole.entry)
            }
            Change::Deleted(whole) => self.delete(whole.id, &whole.component, &[]),
            Change::Updated(updated) => self.replay_update(updated),
            Change::Moved(moved) => {
                let ([_, parent], [old, new]) = (moved.parent, &moved.component);
                self.rename(moved.id, parent, old, new)
            }
            Change::Meta(meta) => match &meta.value {
                [_, Some(value)] => self.meta_put(&meta.name, value),
                [_, None] => self.meta_delete(&meta.name),
            },
        }
    }

    fn replay_update(&mut self, updated: &Updated) -> Result<(), Error> {
        let mut entry = self.view().entry(updated.id)?.ok_or(Error::NotFound)?.to_entry();
        let [_, rdn] = &updated.rdn;
        entry.rdn.clone_from(rdn);
        entry.attributes = edits::edit(entry.attributes, &updated.attributes)?;
        let named = updated.large.iter().filter(|large| large.is_named);
        let large = named.map(|large| LargeEdit {
            name: large.name.clone(),
            removed: large.removed.iter().map(|(key, _)| *key).collect(),
            added: large.added.clone(),
        });
        entry.large = large.collect();
        self.update(updated.id, &entry, &[], &[])
    }
}
