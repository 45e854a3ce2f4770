//! Changes: what a job can do inside the committer's transaction.

use std::sync::atomic::{AtomicU64, Ordering};

use heed::RwTxn;

use crate::deferred::Deferred;
use crate::format::{
    FORMAT_WITH_LARGE, META_FORMAT, META_NEXT_ID, META_RENAMES, meta_row, tree_row,
};
use crate::limits::{DEPTH_LEVELS_MAX, META_NAME_BYTES_MAX};
use crate::lmdb::Table;
use crate::read::{View, number};
use crate::record::finish;
use crate::shared::Shared;
use crate::{Entry, EntryId, EntryRef, Error, Key, KeyRange, Large, LargeEdit};

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
        Ok(Write {
            txn,
            shared,
            next_id: None,
            naming,
            path: None,
            deferred: Deferred::default(),
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
        let path = self.path(parent)?;
        if path.len() >= DEPTH_LEVELS_MAX {
            return Err(Error::TooDeep);
        }
        if self.view().child(parent, component)?.is_some() {
            return Err(Error::Exists);
        }
        let id = self.next_id()?;
        let mut record = entry.begin(parent)?;
        self.next_id = Some(EntryId(id.0 + 1));
        let large = self.edit_large(id, &[], &entry.large)?;
        finish(&mut record, id, &large);
        self.put(self.shared.tables.entry, &id.to_bytes(), &record)?;
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
        Ok(id)
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
        if !(old.large().is_empty() && entry.large.is_empty()) {
            let names: Vec<String> = old.large().map(|large| large.name.to_owned()).collect();
            let old = old.large().zip(&names).map(|(large, name)| Large { name, ..large });
            let old: Vec<Large<'_>> = old.collect();
            let large = self.edit_large(id, &old, &entry.large)?;
            finish(&mut record, id, &large);
        } else {
            finish(&mut record, id, &[]);
        }
        self.put(self.shared.tables.entry, &id.to_bytes(), &record)?;
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
            Err(error) => self.note(Err(error)).map(|()| false),
        }
    }

    /// Removes an entry without children, and its listing under `keys`.
    ///
    /// Errors: [`Error::NotFound`] if `id` is not there or not named `component`,
    /// [`Error::HasChildren`].
    pub fn delete(&mut self, id: EntryId, component: &[u8], keys: &[Key]) -> Result<(), Error> {
        let entry = self.view().entry(id)?.ok_or(Error::NotFound)?;
        let (parent, has_large) = (entry.parent(), !entry.large().is_empty());
        if self.view().child(parent, component)? != Some(id) {
            return Err(Error::NotFound);
        }
        if self.view().child_count(id)? > 0 {
            return Err(Error::HasChildren);
        }
        let path = self.path(parent)?;
        self.remove(self.shared.tables.entry, &id.to_bytes())?;
        if has_large {
            self.drop_large(id, None)?;
        }
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
        let large: Vec<_> = self.view().entry(id)?.iter().flat_map(EntryRef::large).collect();
        let record = entry.encode(id, new_parent, &large)?;
        self.remove(self.shared.tables.tree, &tree_row(old_parent, old_component))?;
        self.put(self.shared.tables.tree, &tree_row(new_parent, new_component), &id.to_bytes())?;
        self.names_changed()?;
        self.path = None;
        self.changes += 1;
        if new_parent == old_parent {
            return Ok(());
        }
        self.put(self.shared.tables.entry, &id.to_bytes(), &record)?;
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
    ) -> Result<Vec<Large<'a>>, Error> {
        let named = |name: &str| old.iter().find(|large| large.name == name).copied();
        let gone = old.iter().filter(|large| edits.iter().all(|edit| edit.name != large.name));
        for large in gone {
            self.drop_large(id, Some(large.slot))?;
        }
        let mut large: Vec<Large<'a>> = Vec::with_capacity(edits.len());
        for edit in edits {
            let mut one = named(&edit.name).unwrap_or_else(|| {
                let is_free = |slot: &u32| old.iter().chain(&large).all(|one| one.slot != *slot);
                let slot = (0..=u32::MAX).find(is_free).unwrap_or_default();
                Large { name: &edit.name, slot, count: 0, bytes: 0 }
            });
            self.edit_values(id, &mut one, edit)?;
            match one.count {
                0 => self.drop_large(id, Some(one.slot))?,
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
    ) -> Result<(), Error> {
        if edit.removed.is_empty() && edit.added.is_empty() {
            return Ok(());
        }
        self.require_format_with_large()?;
        self.puts += 1;
        let table = self.shared.values()?;
        let edited = table.edit(&mut self.txn, id, large.slot, edit);
        let change = match edited {
            Ok(change) => change,
            Err(error) => return self.note(Err(error)),
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

    /// Removes the values of one large attribute, or of all of an entry.
    fn drop_large(&mut self, id: EntryId, slot: Option<u32>) -> Result<(), Error> {
        self.puts += 1;
        let table = self.shared.values()?;
        let result = table.drop(&mut self.txn, id, slot);
        self.note(result)
    }

    /// From now on programs that know nothing of large attributes refuse the store.
    fn require_format_with_large(&mut self) -> Result<(), Error> {
        let format = FORMAT_WITH_LARGE.to_be_bytes();
        let found = self.shared.get(self.shared.tables.meta, &self.txn, META_FORMAT)?;
        match found == Some(format.as_slice()) {
            true => Ok(()),
            false => self.put(self.shared.tables.meta, META_FORMAT, &format),
        }
    }

    /// Puts a row that `View::meta_get` finds under `name`; an empty value is a value.
    ///
    /// Errors: [`Error::BadMetaName`].
    pub fn meta_put(&mut self, name: &str, value: &[u8]) -> Result<(), Error> {
        self.put(self.shared.tables.meta, &checked_meta_row(name)?, value)
    }

    /// Removes the row of `name`, if there is one.
    pub fn meta_delete(&mut self, name: &str) -> Result<(), Error> {
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
        if let Some(next) = self.next_id {
            self.put(self.shared.tables.meta, META_NEXT_ID, &next.to_bytes())?;
        }
        self.write_deferred()?;
        let (shared, bytes, version) = (self.shared, self.bytes, self.txn.id());
        let committed = self.txn.commit();
        // Whatever came of it: if the state is not there, the next commit makes it.
        shared.idle.meet(version);
        committed.map_err(|e| shared.write_error("committing", e, bytes))
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
        self.note(result)
    }

    fn unpost(&mut self, key: &Key, id: EntryId) -> Result<(), Error> {
        self.unpost_all(key, &[id])
    }

    fn unpost_all(&mut self, key: &Key, ids: &[EntryId]) -> Result<(), Error> {
        self.puts += 1;
        self.write_deferred()?;
        let (lists, txn) = (self.shared.lists(), &mut self.txn);
        let result = ids.iter().try_for_each(|&id| lists.remove(txn, key.as_bytes(), id));
        self.note(result)
    }

    fn write_deferred(&mut self) -> Result<(), Error> {
        let lists = self.shared.lists();
        let result = self.deferred.write(lists, &mut self.txn);
        self.note(result)
    }

    fn put(&mut self, table: Table<'static>, row: &[u8], value: &[u8]) -> Result<(), Error> {
        self.puts += 1;
        self.bytes += row.len() + value.len();
        let result = table.put(&mut self.txn, row, value);
        self.note(
            result.map_err(|e| self.shared.write_error("writing to the store", e, self.bytes)),
        )
    }

    fn remove(&mut self, table: Table<'static>, row: &[u8]) -> Result<(), Error> {
        self.puts += 1;
        let result = table.delete(&mut self.txn, row).map(drop);
        self.note(
            result.map_err(|e| self.shared.write_error("writing to the store", e, self.bytes)),
        )
    }

    /// Remembers the first failure, whatever the job makes of it. After it LMDB says no more than
    /// that the transaction is broken.
    fn note(&mut self, result: Result<(), Error>) -> Result<(), Error> {
        result.map_err(|error| self.broken.get_or_insert(error).clone())
    }
}

fn checked_meta_row(name: &str) -> Result<Vec<u8>, Error> {
    match name.len() {
        1..=META_NAME_BYTES_MAX => Ok(meta_row(name)),
        _ => Err(Error::BadMetaName),
    }
}
