//! Changes: what a job can do inside the committer's transaction.

mod contents;
mod feed;

use std::sync::atomic::{AtomicU64, Ordering};

use heed::RwTxn;

use crate::contents::Contents;
use crate::deferred::Deferred;
use crate::feed::{Came, LargeNotes, Recorder, put_large, put_move, put_update, put_whole};
use crate::format::{
    FORMAT_WITH_LARGE, META_CONTENTS, META_FORMAT, META_NEXT_ID, META_RENAMES, meta_row, tree_row,
};
use crate::limits::{DEPTH_LEVELS_MAX, META_NAME_BYTES_MAX};
use crate::lmdb::Table;
use crate::read::{View, number};
use crate::record::{body, finish};
use crate::shared::Shared;
use crate::values::Gone;
use crate::{Entry, EntryId, Error, Key, KeyRange, Large, LargeEdit, Names, ValueKey};

/// A running change. It sees what it and the jobs before it in the same group have put.
///
/// A call that is refused ([`Error::NotFound`] and its like) has changed nothing.
pub struct Write<'e> {
    txn: RwTxn<'e>,
    shared: &'e Shared,
    next_id: Option<EntryId>,
    naming: u64,
    /// The last way to the root that was walked, so that siblings need not walk it again; forgotten
    /// when the tree loses or moves something.
    path: Option<(EntryId, Vec<EntryId>)>,
    /// Postings of the entries that it has added or listed.
    deferred: Deferred,
    /// Changes for the feed; `None` if it gets none.
    recorder: Option<Recorder>,
    /// Whether a row of another store's feed is being applied.
    is_applying: bool,
    /// The position that it puts, and whether it is another store's.
    position: Option<(u64, bool)>,
    /// The row that it puts, if others take it before the disk does.
    sealed: Option<(u64, Vec<u8>)>,
    /// Changes that the feed gets, or would get if there were one.
    recordable: u64,
    /// The digest of all entries, if it is kept, and whether it has changed.
    contents: Option<Contents>,
    contents_changed: bool,
    /// Names of the entries above those that were changed.
    names: Names,
    puts: u64,
    bytes: usize,
    growth: i64,
    changes: u64,
    broken: Option<Error>,
}

/// Numbers for the namings inside changes; see `Stamp::Pending`.
static NAMING: AtomicU64 = AtomicU64::new(0);

impl<'e> Write<'e> {
    pub(crate) fn begin(shared: &'e Shared) -> Result<Write<'e>, Error> {
        let txn = shared.env.write_txn().map_err(|e| shared.error("beginning a change", e))?;
        let naming = NAMING.fetch_add(1, Ordering::Relaxed);
        let contents = shared.get(shared.tables.meta, &txn, META_CONTENTS)?;
        let contents = contents.map(Contents::from_bytes).transpose()?;
        Ok(Write {
            txn,
            shared,
            next_id: None,
            naming,
            path: None,
            deferred: Deferred::default(),
            recorder: shared.feed.map(|_| Recorder::default()),
            is_applying: false,
            position: None,
            sealed: None,
            recordable: 0,
            contents,
            contents_changed: false,
            names: Names::new(),
            puts: 0,
            bytes: 0,
            growth: 0,
            changes: 0,
            broken: None,
        })
    }

    /// The view of the present state of this change.
    pub fn view(&self) -> View<'_> {
        View::new(&self.txn, self.shared, Some((self.naming, &self.deferred)))
    }

    /// Adds an entry below `parent` and lists it under `keys`.
    ///
    /// Errors: [`Error::NotFound`] if there is no such parent, [`Error::Exists`] if it has a child
    /// of this component, [`Error::TooDeep`], [`Error::TooLarge`].
    pub fn insert(
        &mut self,
        parent: EntryId,
        component: &[u8],
        entry: &Entry,
        keys: &[Key],
    ) -> Result<EntryId, Error> {
        let id = self.next_id()?;
        self.insert_at(id, parent, component, entry, keys)?;
        Ok(id)
    }

    /// Adds an entry whose identifier was given in another store.
    ///
    /// Errors: as [`Write::insert`], and [`Error::Damaged`] if the identifier is given already.
    pub(crate) fn insert_as(
        &mut self,
        id: EntryId,
        parent: EntryId,
        component: &[u8],
        entry: &Entry,
        keys: &[Key],
    ) -> Result<(), Error> {
        match id >= self.next_id()? {
            true => self.insert_at(id, parent, component, entry, keys),
            false => Err(Error::damaged(format!("the identifier {id} is given already"))),
        }
    }

    fn insert_at(
        &mut self,
        id: EntryId,
        parent: EntryId,
        component: &[u8],
        entry: &Entry,
        keys: &[Key],
    ) -> Result<(), Error> {
        let path = self.path(parent)?;
        if path.len() >= DEPTH_LEVELS_MAX {
            return Err(Error::TooDeep);
        }
        if self.view().child(parent, component)?.is_some() {
            return Err(Error::Exists);
        }
        let mut record = entry.begin(parent)?;
        let above = self.above(parent)?;
        let mut notes = self.large_notes();
        let large = self.edit_large(id, &[], &entry.large, &mut notes)?;
        finish(&mut record, id, &large);
        self.record(|| {
            put_whole(Came::Inserted, id, (&above, component), body(&record), notes.edits())
        })?;
        // Behind what may refuse it: an identifier that is not used is not given.
        self.next_id = Some(EntryId(id.0 + 1));
        self.put_entry(id, &record, &notes)?;
        self.put(self.shared.tables.tree, &tree_row(parent, component), &id.to_bytes())?;
        self.count_children(parent, 1)?;
        self.defer(&Key::children(parent), id);
        for ancestor in path.into_iter().chain([id]) {
            self.defer(&Key::subtree(ancestor), id);
        }
        for key in keys {
            self.defer(key, id);
        }
        if self.deferred.is_full() {
            self.write_deferred()?;
        }
        self.growth += 1;
        self.changes += 1;
        Ok(())
    }

    /// Replaces the entry's relative name and attributes, and changes its large ones as it says; its
    /// place in the tree stays.
    ///
    /// Errors: [`Error::NotFound`], [`Error::TooLarge`].
    pub fn update(
        &mut self,
        id: EntryId,
        entry: &Entry,
        removed: &[Key],
        added: &[Key],
    ) -> Result<(), Error> {
        let old = self.view().entry(id)?.ok_or(Error::NotFound)?;
        let (parent, renamed) = (old.parent(), old.rdn() != entry.rdn);
        let mut record = entry.begin(parent)?;
        let names: Vec<String> = old.large().map(|large| large.name.to_owned()).collect();
        let old_large = old.large().zip(&names).map(|(large, name)| Large { name, ..large });
        let old_large: Vec<Large<'_>> = old_large.collect();
        let mut change = Vec::new();
        if self.recorder.is_some() {
            let above = self.above(parent)?;
            let old = self.view().entry(id)?.ok_or(Error::NotFound)?;
            change = put_update(id, self.identity(&old), &above, &old, entry);
        }
        let mut notes = self.large_notes();
        let large = self.edit_large(id, &old_large, &entry.large, &mut notes)?;
        finish(&mut record, id, &large);
        self.record(|| {
            put_large(&mut change, notes.edits());
            change
        })?;
        self.put_entry(id, &record, &notes)?;
        if renamed {
            self.names_changed()?;
        }
        for key in removed {
            self.unpost(key, id)?;
        }
        for key in added {
            self.post(key, id)?;
        }
        self.changes += 1;
        Ok(())
    }

    /// Lists an entry under more keys; under some it may be listed already. Neither the entry nor
    /// what the store counts as changes knows of it.
    ///
    /// Errors: [`Error::NotFound`] if there is no such entry.
    pub fn list(&mut self, id: EntryId, keys: &[Key]) -> Result<(), Error> {
        if self.view().entry(id)?.is_none() {
            return Err(Error::NotFound);
        }
        for key in keys {
            self.bytes += key.as_bytes().len() + 8;
            self.defer(key, id);
        }
        match self.deferred.is_full() {
            true => self.write_deferred(),
            false => Ok(()),
        }
    }

    /// Removes the lists of the keys in `range`, at most so many rows of some hundred identifiers
    /// each; whether there are more.
    pub fn drop_lists(&mut self, range: &KeyRange, rows_max: usize) -> Result<bool, Error> {
        self.puts += 1;
        self.write_deferred()?;
        let (lists, txn) = (self.shared.lists(), &mut self.txn);
        match lists.drop_range(txn, range, rows_max) {
            Ok(more) => Ok(more),
            Err(error) => self.note_failure(Err(error)).map(|()| false),
        }
    }

    /// Removes an entry without children, and its listing under `keys`.
    ///
    /// Errors: [`Error::NotFound`] if `id` is not there or not named `component`,
    /// [`Error::HasChildren`].
    pub fn delete(&mut self, id: EntryId, component: &[u8], keys: &[Key]) -> Result<(), Error> {
        let entry = self.view().entry(id)?.ok_or(Error::NotFound)?;
        let parent = entry.parent();
        let large: Vec<(u32, String)> =
            entry.large().map(|large| (large.slot, large.name.to_owned())).collect();
        if self.view().child(parent, component)? != Some(id) {
            return Err(Error::NotFound);
        }
        if self.view().child_count(id)? > 0 {
            return Err(Error::HasChildren);
        }
        let path = self.path(parent)?;
        let above = self.above(parent)?;
        let mut notes = self.large_notes();
        for (slot, name) in &large {
            self.drop_large(id, (*slot, name), &mut notes)?;
        }
        let mut change = Vec::new();
        if self.recorder.is_some() {
            let record = self.shared.get(self.shared.tables.entry, &self.txn, &id.to_bytes())?;
            let record = body(record.unwrap_or_default());
            change = put_whole(Came::Deleted, id, (&above, component), record, notes.edits());
        }
        self.record(|| change)?;
        self.count_entry(id, None, &notes)?;
        self.remove(self.shared.tables.entry, &id.to_bytes())?;
        self.remove(self.shared.tables.tree, &tree_row(parent, component))?;
        self.count_children(parent, -1)?;
        self.unpost(&Key::children(parent), id)?;
        for ancestor in path.into_iter().chain([id]) {
            self.unpost(&Key::subtree(ancestor), id)?;
        }
        for key in keys {
            self.unpost(key, id)?;
        }
        self.path = None;
        self.growth -= 1;
        self.changes += 1;
        Ok(())
    }

    /// Moves an entry, and all below it, to `new_component` below `new_parent`.
    ///
    /// The entry's own relative name is changed with [`Write::update`].
    ///
    /// Errors: [`Error::NotFound`] if `id`, its component or the new parent is not there,
    /// [`Error::Exists`], [`Error::WouldLoop`], [`Error::TooDeep`].
    pub fn rename(
        &mut self,
        id: EntryId,
        new_parent: EntryId,
        old_component: &[u8],
        new_component: &[u8],
    ) -> Result<(), Error> {
        let old = self.view().entry(id)?.ok_or(Error::NotFound)?;
        let (old_parent, entry) = (old.parent(), old.to_entry());
        if self.view().child(old_parent, old_component)? != Some(id) {
            return Err(Error::NotFound);
        }
        let new_path = self.path(new_parent)?;
        if new_path.contains(&id) {
            return Err(Error::WouldLoop);
        }
        match self.view().child(new_parent, new_component)? {
            Some(found) if found != id => return Err(Error::Exists),
            _ => {}
        }
        let old_path = self.path(old_parent)?;
        let moved = self.subtree(id)?;
        if new_path.len() > old_path.len() {
            self.check_depth(&moved, new_path.len() - old_path.len())?;
        }
        let places = [self.above(old_parent)?, self.above(new_parent)?];
        let old = self.view().entry(id)?.ok_or(Error::NotFound)?;
        let large: Vec<_> = old.large().collect();
        let record = entry.encode(id, new_parent, &large)?;
        let mut change = Vec::new();
        if self.recorder.is_some() {
            change = put_move(
                id,
                self.identity(&old),
                old.rdn(),
                [old_parent, new_parent],
                places.each_ref().map(String::as_str),
                [old_component, new_component],
            );
        }
        self.record(|| change)?;
        self.remove(self.shared.tables.tree, &tree_row(old_parent, old_component))?;
        self.put(self.shared.tables.tree, &tree_row(new_parent, new_component), &id.to_bytes())?;
        self.names_changed()?;
        self.path = None;
        self.changes += 1;
        if new_parent == old_parent {
            return Ok(());
        }
        self.put_entry(id, &record, &LargeNotes::new(false))?;
        self.count_children(old_parent, -1)?;
        self.count_children(new_parent, 1)?;
        self.unpost(&Key::children(old_parent), id)?;
        self.post(&Key::children(new_parent), id)?;
        for ancestor in old_path.iter().filter(|a| !new_path.contains(a)) {
            self.unpost_all(&Key::subtree(*ancestor), &moved)?;
        }
        for ancestor in new_path.iter().filter(|a| !old_path.contains(a)) {
            self.post_all(&Key::subtree(*ancestor), &moved)?;
        }
        Ok(())
    }

    /// Changes the large attributes of an entry; what is to stand in its record for them.
    fn edit_large<'a>(
        &mut self,
        id: EntryId,
        old: &[Large<'a>],
        edits: &'a [LargeEdit],
        notes: &mut LargeNotes,
    ) -> Result<Vec<Large<'a>>, Error> {
        let named = |name: &str| old.iter().find(|large| large.name == name).copied();
        let gone = old.iter().filter(|large| edits.iter().all(|edit| edit.name != large.name));
        for large in gone {
            self.drop_large(id, (large.slot, large.name), notes)?;
        }
        let mut large: Vec<Large<'a>> = Vec::with_capacity(edits.len());
        for edit in edits {
            let mut one = named(&edit.name).unwrap_or_else(|| {
                let is_free = |slot: &u32| old.iter().chain(&large).all(|one| one.slot != *slot);
                let slot = (0..=u32::MAX).find(is_free).unwrap_or_default();
                Large { name: &edit.name, slot, count: 0, bytes: 0 }
            });
            self.edit_values(id, &mut one, edit, notes)?;
            match one.count {
                0 => self.drop_values(id, one.slot, None)?,
                _ => large.push(one),
            }
        }
        Ok(large)
    }

    fn edit_values(
        &mut self,
        id: EntryId,
        large: &mut Large<'_>,
        edit: &LargeEdit,
        notes: &mut LargeNotes,
    ) -> Result<(), Error> {
        let mut noted = notes.attribute(large.name, true);
        if edit.removed.is_empty() && edit.added.is_empty() {
            return Ok(());
        }
        self.require_format(FORMAT_WITH_LARGE)?;
        self.puts += 1;
        let table = self.shared.values()?;
        let mut changed = |key: ValueKey, old: Option<&[u8]>, new: Option<&[u8]>| {
            let Some(noted) = &mut noted else { return };
            noted.removed.extend(old.map(|value| (key, value.to_vec())));
            noted.added.extend(new.map(|value| (key, value.to_vec())));
        };
        let edited = table.edit(&mut self.txn, id, large.slot, edit, &mut changed);
        let change = match edited {
            Ok(change) => change,
            Err(error) => return self.note_failure(Err(error)),
        };
        self.bytes += change.put_bytes;
        let by = |number: u64, by| {
            let miscounted = || Error::damaged(format!("entry {id} counts too few values"));
            number.checked_add_signed(by).ok_or_else(miscounted)
        };
        large.count = by(large.count, change.count)?;
        large.bytes = by(large.bytes, change.bytes)?;
        Ok(())
    }

    /// Removes all values of a large attribute.
    fn drop_large(
        &mut self,
        id: EntryId,
        (slot, name): (u32, &str),
        notes: &mut LargeNotes,
    ) -> Result<(), Error> {
        let Some(noted) = notes.attribute(name, false) else {
            return self.drop_values(id, slot, None);
        };
        self.drop_values(
            id,
            slot,
            Some(&mut |key, value| noted.removed.push((key, value.to_vec()))),
        )
    }

    fn drop_values(&mut self, id: EntryId, slot: u32, gone: Option<Gone<'_>>) -> Result<(), Error> {
        self.puts += 1;
        let table = self.shared.values()?;
        let result = table.drop(&mut self.txn, id, slot, gone);
        self.note_failure(result)
    }

    /// From now on programs that know no later format than those before this one refuse the store.
    fn require_format(&mut self, format: u32) -> Result<(), Error> {
        let found = self.shared.get(self.shared.tables.meta, &self.txn, META_FORMAT)?;
        match found.is_some_and(|found| found >= format.to_be_bytes().as_slice()) {
            true => Ok(()),
            false => self.put(self.shared.tables.meta, META_FORMAT, &format.to_be_bytes()),
        }
    }

    /// Puts a row that `View::meta_get` finds under `name`; an empty value is a value. It is a change that the feed
    /// has.
    ///
    /// Errors: [`Error::BadMetaName`].
    pub fn meta_put(&mut self, name: &str, value: &[u8]) -> Result<(), Error> {
        let row = checked_meta_row(name)?;
        self.record_meta(name, &row, Some(value))?;
        self.put(self.shared.tables.meta, &row, value)
    }

    /// Removes the row of `name`, if there is one. As [`Write::meta_put`].
    pub fn meta_delete(&mut self, name: &str) -> Result<(), Error> {
        let row = checked_meta_row(name)?;
        self.record_meta(name, &row, None)?;
        self.remove(self.shared.tables.meta, &row)
    }

    /// Puts a row that is of this store alone: as [`Write::meta_put`], but the feed does not have it.
    ///
    /// Errors: [`Error::BadMetaName`].
    pub fn local_put(&mut self, name: &str, value: &[u8]) -> Result<(), Error> {
        self.put(self.shared.tables.meta, &checked_meta_row(name)?, value)
    }

    /// Removes a row of [`Write::local_put`], if there is one.
    pub fn local_delete(&mut self, name: &str) -> Result<(), Error> {
        self.remove(self.shared.tables.meta, &checked_meta_row(name)?)
    }

    /// How many entries there are more than when the change began.
    pub(crate) fn growth(&self) -> i64 {
        self.growth
    }

    /// How many entries were added, changed, moved or deleted.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// How many rows were put or removed so far; tells the committer whether a refusal is clean.
    pub(crate) fn puts(&self) -> u64 {
        self.puts
    }

    /// Roughly how much the change has put, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The first failure of the transaction itself, after which it cannot be committed.
    pub(crate) fn broken(&self) -> Option<&Error> {
        self.broken.as_ref()
    }

    pub(crate) fn commit(mut self) -> Result<(), Error> {
        self.write_feed()?;
        self.write_contents()?;
        if let Some(next) = self.next_id {
            self.put(self.shared.tables.meta, META_NEXT_ID, &next.to_bytes())?;
        }
        self.write_deferred()?;
        if let (Some((position, row)), Some(append)) = (self.sealed.take(), self.shared.append()) {
            append.append(position, &row)?;
        }
        let (shared, bytes, version) = (self.shared, self.bytes, self.txn.id());
        let committed = self.txn.commit();
        // Whatever came of it: if the state is not there, the next commit makes it.
        shared.idle.meet(version);
        committed.map_err(|e| shared.write_error("committing", e, bytes))?;
        if let Some((position, is_applied)) = self.position {
            shared.say(position, is_applied);
            if !is_applied {
                shared.confirm()?;
            }
        }
        Ok(())
    }

    pub(crate) fn abort(self) {
        self.txn.abort();
    }

    fn next_id(&self) -> Result<EntryId, Error> {
        if let Some(id) = self.next_id {
            return Ok(id);
        }
        let stored = self.shared.get(self.shared.tables.meta, &self.txn, META_NEXT_ID)?;
        Ok(EntryId(stored.map_or(Ok(1), number)?))
    }

    /// `id` and the entries above it; nothing for the root.
    fn path(&mut self, id: EntryId) -> Result<Vec<EntryId>, Error> {
        if let Some((known, path)) = &self.path
            && *known == id
        {
            return Ok(path.clone());
        }
        let path = self.walk(id)?;
        self.path = Some((id, path.clone()));
        Ok(path)
    }

    fn walk(&self, id: EntryId) -> Result<Vec<EntryId>, Error> {
        let mut path = Vec::new();
        let mut at = id;
        while at != EntryId::ROOT {
            if path.len() > DEPTH_LEVELS_MAX {
                return Err(Error::damaged(format!("entry {id} has no end of parents")));
            }
            path.push(at);
            at = match self.view().entry(at)? {
                Some(entry) => entry.parent(),
                None if at == id => return Err(Error::NotFound),
                None => return Err(Error::damaged(format!("entry {at} is missing"))),
            };
        }
        Ok(path)
    }

    fn subtree(&self, id: EntryId) -> Result<Vec<EntryId>, Error> {
        self.view().postings(&Key::subtree(id), EntryId::ROOT)?.collect()
    }

    /// Whether every moved entry may lie `deeper` levels below where it is.
    fn check_depth(&self, moved: &[EntryId], deeper: usize) -> Result<(), Error> {
        for &id in moved {
            if self.walk(id)?.len() + deeper > DEPTH_LEVELS_MAX {
                return Err(Error::TooDeep);
            }
        }
        Ok(())
    }

    fn count_children(&mut self, parent: EntryId, by: i64) -> Result<(), Error> {
        let count = self.view().child_count(parent)?;
        let count = count
            .checked_add_signed(by)
            .ok_or_else(|| Error::damaged(format!("entry {parent} counts too few children")))?;
        match count {
            0 => self.remove(self.shared.tables.children, &parent.to_bytes()),
            _ => self.put(self.shared.tables.children, &parent.to_bytes(), &count.to_be_bytes()),
        }
    }

    fn names_changed(&mut self) -> Result<(), Error> {
        let changes = self.shared.get(self.shared.tables.meta, &self.txn, META_RENAMES)?;
        let changes = changes.map_or(Ok(0), number)?.wrapping_add(1);
        self.naming = NAMING.fetch_add(1, Ordering::Relaxed);
        self.put(self.shared.tables.meta, META_RENAMES, &changes.to_be_bytes())
    }

    fn defer(&mut self, key: &Key, id: EntryId) {
        self.puts += 1;
        self.deferred.push(key.as_bytes(), id);
    }

    fn post(&mut self, key: &Key, id: EntryId) -> Result<(), Error> {
        self.post_all(key, &[id])
    }

    fn post_all(&mut self, key: &Key, ids: &[EntryId]) -> Result<(), Error> {
        self.puts += 1;
        self.bytes += key.as_bytes().len() + 8 * ids.len();
        let lists = self.shared.lists();
        let result = lists.add(&mut self.txn, key.as_bytes(), ids);
        self.note_failure(result)
    }

    fn unpost(&mut self, key: &Key, id: EntryId) -> Result<(), Error> {
        self.unpost_all(key, &[id])
    }

    fn unpost_all(&mut self, key: &Key, ids: &[EntryId]) -> Result<(), Error> {
        self.puts += 1;
        self.write_deferred()?;
        let (lists, txn) = (self.shared.lists(), &mut self.txn);
        let result = ids.iter().try_for_each(|&id| lists.remove(txn, key.as_bytes(), id));
        self.note_failure(result)
    }

    fn write_deferred(&mut self) -> Result<(), Error> {
        let lists = self.shared.lists();
        let result = self.deferred.write(lists, &mut self.txn);
        self.note_failure(result)
    }

    fn put(&mut self, table: Table<'static>, row: &[u8], value: &[u8]) -> Result<(), Error> {
        self.puts += 1;
        self.bytes += row.len() + value.len();
        let result = table.put(&mut self.txn, row, value);
        self.note_failure(
            result.map_err(|e| self.shared.write_error("writing to the store", e, self.bytes)),
        )
    }

    fn remove(&mut self, table: Table<'static>, row: &[u8]) -> Result<(), Error> {
        self.puts += 1;
        let result = table.delete(&mut self.txn, row).map(drop);
        self.note_failure(
            result.map_err(|e| self.shared.write_error("writing to the store", e, self.bytes)),
        )
    }

    /// Remembers the first failure, whatever the job makes of it. After it LMDB says no more than
    /// that the transaction is broken.
    fn note_failure(&mut self, result: Result<(), Error>) -> Result<(), Error> {
        result.map_err(|error| self.broken.get_or_insert(error).clone())
    }
}

fn checked_meta_row(name: &str) -> Result<Vec<u8>, Error> {
    match name.len() {
        1..=META_NAME_BYTES_MAX => Ok(meta_row(name)),
        _ => Err(Error::BadMetaName),
    }
}
