//! Changes of the feed, made again.

use super::change::{Change, Updated};
use super::edits;
use super::head::FeedHead;
use super::rows::RawRow;
use crate::contents::CONTENTS;
use crate::{Error, Key, LargeEdit, Read, Store, View, Write};

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
                changes.try_for_each(|change| write.replay(change, &Relisted::default()))
            })?;
        }
        Ok(())
    }
}

impl Store {
    /// Makes the changes of a row again that another store has had, in this one, which is in the state before it, and
    /// puts the row into its feed: positions and digests go on as there. Entries keep their identifiers, and are listed below those above them and under no other key.
    /// Blocks, as [`Store::write_now`] does; no other change is to come meanwhile.
    ///
    /// # Errors
    /// [`Error::NotNext`] if the row is not the next one of this store's history; nothing is changed then.
    /// [`Error::Damaged`] if it is no change of this state, or the store is not opened with the feed.
    pub fn apply_row(&self, row: &RawRow) -> Result<(), Error> {
        let row = row.clone();
        self.write_now(move |write| write.apply_row(&row, &mut |_, _| Ok(Relisted::default())))
    }
}

/// The keys that an entry loses and gets by a change.
#[derive(Default, Debug)]
pub struct Relisted {
    /// Those under which it was listed.
    pub removed: Vec<Key>,
    /// Those under which it is to be.
    pub added: Vec<Key>,
}

/// An attribute's name and its values.
type Attribute = (String, Vec<Vec<u8>>);

impl Updated {
    /// The attributes after the change, of those before it.
    ///
    /// # Errors
    /// [`Error::Damaged`] if it is no change of these.
    pub fn edit(&self, before: Vec<Attribute>) -> Result<Vec<Attribute>, Error> {
        edits::edit(before, &self.attributes)
    }
}

impl Write<'_> {
    /// As [`Store::apply_row`], as one job or a part of one: several rows may come in one commit. `relist` says before each
    /// change under which keys its entry is listed by it. No job before it in the commit may make a change of its own that
    /// the feed has.
    ///
    /// # Errors
    /// As [`Store::apply_row`], [`Error::ContentsDiffer`], and those of `relist`.
    pub fn apply_row(
        &mut self,
        raw: &RawRow,
        relist: &mut dyn FnMut(View<'_>, &Change) -> Result<Relisted, Error>,
    ) -> Result<(), Error> {
        let row = raw.row();
        let head = self.view().feed_head()?.unwrap_or_else(FeedHead::of_an_older_store);
        if row.position != head.position + 1 || row.before != head.digest {
            return Err(Error::NotNext { position: row.position, last: head.position });
        }
        self.apply_as(head, raw, |write| {
            let mut changes = row.jobs.iter().flat_map(|job| &job.changes);
            changes.try_for_each(|change| {
                let relisted = relist(write.view(), change)?;
                write.replay(change, &relisted)
            })
        })
    }

    /// Makes a change again, in a store that is in the state in which it was made. Entries keep their identifiers.
    /// They are listed below the entries above them, and under these keys.
    ///
    /// # Errors
    /// [`Error::Damaged`] if it is not a change of this state, and those of the change itself.
    fn replay(&mut self, change: &Change, relisted: &Relisted) -> Result<(), Error> {
        let Relisted { removed, added } = relisted;
        match change {
            Change::Inserted(whole) => {
                self.insert_as(whole.id, whole.parent, &whole.component, &whole.entry, added)
            }
            Change::Deleted(whole) => self.delete(whole.id, &whole.component, removed),
            Change::Updated(updated) => self.replay_update(updated, relisted),
            Change::Moved(moved) => {
                let ([_, parent], [old, new]) = (moved.parent, &moved.component);
                self.rename(moved.id, parent, old, new)
            }
            Change::Meta(meta) if meta.name == CONTENTS => {
                let [_, value] = &meta.value;
                self.compare_contents(value.as_deref())
            }
            Change::Meta(meta) => match &meta.value {
                [_, Some(value)] => self.meta_put(&meta.name, value),
                [_, None] => self.meta_delete(&meta.name),
            },
        }
    }

    fn replay_update(&mut self, updated: &Updated, relisted: &Relisted) -> Result<(), Error> {
        let mut entry = self.view().entry(updated.id)?.ok_or(Error::NotFound)?.to_entry();
        let [_, rdn] = &updated.rdn;
        entry.rdn.clone_from(rdn);
        entry.attributes = updated.edit(entry.attributes)?;
        let named = updated.large.iter().filter(|large| large.is_named);
        let large = named.map(|large| LargeEdit {
            name: large.name.clone(),
            removed: large.removed.iter().map(|(key, _)| *key).collect(),
            added: large.added.clone(),
        });
        entry.large = large.collect();
        self.update(updated.id, &entry, &relisted.removed, &relisted.added)
    }
}
