//! The values of a large attribute while they are being changed: what is stored of them is only
//! looked up, and what comes and goes is kept beside it.

use super::edit::{exists, limit, missing};
use crate::failure::Result;
use crate::large::key;
use crate::limits::{LARGE_BYTES_KEPT_MIN, LARGE_VALUES_KEPT_MIN};
use keyway_schema::{AttributeType, Schema, base};
use keyway_store::{EntryId, Large, LargeEdit, LargeValuesEdit, ValueKey, View};
use std::collections::{BTreeMap, HashMap};

/// A large attribute of an entry, and how it changes.
pub(crate) struct LargeDraft {
    id: EntryId,
    /// The canonical description.
    pub name: String,
    slot: u32,
    count: u64,
    bytes: u64,
    /// The stored values that go.
    gone: BTreeMap<ValueKey, Vec<u8>>,
    /// The values that come, also with a key of one that goes.
    come: BTreeMap<ValueKey, Vec<u8>>,
}

impl LargeDraft {
    pub fn of(id: EntryId, stored: &Large<'_>) -> LargeDraft {
        let Large { name, slot, count, bytes } = *stored;
        let (gone, come) = (BTreeMap::new(), BTreeMap::new());
        LargeDraft { id, name: name.to_owned(), slot, count, bytes, gone, come }
    }

    fn stored(&self) -> Large<'_> {
        let LargeDraft { name, slot, count, bytes, .. } = self;
        Large { name, slot: *slot, count: *count, bytes: *bytes }
    }

    /// How many values there are now.
    pub fn len(&self) -> usize {
        (self.count as usize + self.come.len()).saturating_sub(self.gone.len())
    }

    /// The values that go.
    pub fn gone(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.gone.values()
    }

    /// The values that come.
    pub fn come(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.come.values()
    }

    /// The value of this key.
    pub fn get(&self, view: View<'_>, key: ValueKey) -> Result<Option<Vec<u8>>> {
        if let Some(value) = self.come.get(&key) {
            return Ok(Some(value.clone()));
        }
        if self.gone.contains_key(&key) {
            return Ok(None);
        }
        Ok(view.large_value(self.id, &self.stored(), key)?.map(<[u8]>::to_vec))
    }

    /// Puts a value in; of its key there is none.
    pub fn put(&mut self, key: ValueKey, value: Vec<u8>) {
        if self.gone.get(&key) == Some(&value) {
            self.gone.remove(&key);
        } else {
            self.come.insert(key, value);
        }
    }

    /// Takes the value of this key away; whether there was one.
    pub fn take(&mut self, view: View<'_>, key: ValueKey) -> Result<bool> {
        if self.come.remove(&key).is_some() {
            return Ok(true);
        }
        let Some(value) = self.get(view, key)? else { return Ok(false) };
        self.gone.insert(key, value);
        Ok(true)
    }

    /// Takes a change that was made of it elsewhere.
    pub fn edit(&mut self, edit: &LargeValuesEdit) {
        self.gone.extend(edit.removed.iter().cloned());
        edit.added.iter().for_each(|(key, value)| self.put(*key, value.clone()));
    }

    /// Adds values. Their syntax has been checked.
    ///
    /// # Errors
    /// `attributeOrValueExists`, `adminLimitExceeded`, or the store's.
    pub fn add(
        &mut self,
        schema: &Schema,
        view: View<'_>,
        attribute: &AttributeType,
        added: Vec<Vec<u8>>,
    ) -> Result<()> {
        limit(&self.name, self.len() + added.len())?;
        for value in added {
            let key = key(schema, attribute, &value);
            if self.get(view, key)?.is_some() {
                return Err(exists(&self.name));
            }
            self.put(key, value);
        }
        Ok(())
    }

    /// Deletes values, or all of them if none are given.
    ///
    /// # Errors
    /// `noSuchAttribute`, or the store's.
    pub fn delete(
        &mut self,
        schema: &Schema,
        view: View<'_>,
        attribute: &AttributeType,
        deleted: &[Vec<u8>],
    ) -> Result<()> {
        if self.len() == 0 {
            return Err(missing(&self.name, "attribute "));
        }
        if deleted.is_empty() {
            return self.replace(schema, view, attribute, Vec::new());
        }
        for value in deleted {
            if !self.take(view, key(schema, attribute, value))? {
                return Err(missing(&self.name, "such value of attribute "));
            }
        }
        Ok(())
    }

    /// Puts these values into the place of all. A value that is in both stays as it is stored.
    ///
    /// # Errors
    /// `attributeOrValueExists` if a value is given twice, `adminLimitExceeded`, or the store's.
    pub fn replace(
        &mut self,
        schema: &Schema,
        view: View<'_>,
        attribute: &AttributeType,
        new: Vec<Vec<u8>>,
    ) -> Result<()> {
        limit(&self.name, new.len())?;
        let mut come = HashMap::with_capacity(new.len());
        for value in new {
            if come.insert(key(schema, attribute, &value), value).is_some() {
                return Err(exists(&self.name));
            }
        }
        let mut gone = BTreeMap::new();
        for stored in view.large_values(self.id, &self.stored())? {
            let (key, stored) = stored?;
            match come.get(&key) {
                Some(new) if new == stored => drop(come.remove(&key)),
                _ => drop(gone.insert(key, stored.to_vec())),
            }
        }
        (self.gone, self.come) = (gone, come.into_iter().collect());
        Ok(())
    }

    /// All values as they are now.
    ///
    /// # Errors
    /// The store's.
    pub fn values(&self, view: View<'_>) -> Result<Vec<Vec<u8>>> {
        let mut values = Vec::with_capacity(self.len());
        for stored in view.large_values(self.id, &self.stored())? {
            let (key, stored) = stored?;
            if !self.gone.contains_key(&key) {
                values.push(stored.to_vec());
            }
        }
        values.extend(self.come().cloned());
        Ok(values)
    }

    /// Whether the values are so few that they belong into the record.
    pub fn are_few(&self) -> bool {
        let sum =
            |values: &BTreeMap<ValueKey, Vec<u8>>| values.values().map(Vec::len).sum::<usize>();
        let bytes = (self.bytes as usize + sum(&self.come)).saturating_sub(sum(&self.gone));
        self.len() < LARGE_VALUES_KEPT_MIN && bytes < LARGE_BYTES_KEPT_MIN
    }

    /// The attribute type.
    pub fn attribute<'s>(&self, schema: &'s Schema) -> Option<&'s AttributeType> {
        schema.attribute(base(&self.name))
    }

    /// The edit that the store is to make.
    pub fn into_edit(self) -> LargeEdit {
        let removed = self.gone.into_keys().filter(|key| !self.come.contains_key(key)).collect();
        LargeEdit { name: self.name, removed, added: self.come.into_iter().collect() }
    }
}
