//! Entries as they are now, and as they will be after what is planned.

use super::references::{Attributes, References};
use crate::changes::{Names, Reading, is_same};
use crate::changing::StoredEntry;
use keyway_codec::dn::{Ava, Rdn};
use keyway_host::failure::Failure;
use keyway_schema::operational::ENTRY_UUID;
use keyway_schema::{EntryName, Schema};
use keyway_server::{EntryChange, Room};
use keyway_store::EntryId;
use std::collections::HashMap;

/// An entry.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub dn: String,
    pub attributes: Attributes,
    /// How many entries are below it.
    pub below: u64,
}

/// The entries that a plan is about, by what they are.
pub(super) struct State {
    entries: HashMap<String, Option<Entry>>,
    /// As the store does not have them yet.
    references: References,
}

impl State {
    /// `references` are the attributes that follow the entries which they name.
    pub fn new(references: Vec<String>) -> State {
        State { entries: HashMap::new(), references: References::new(references) }
    }

    /// Whether the server takes a reference, since the entry that it names goes by the plan.
    pub fn takes(&self, reading: &Reading, attribute: &str, value: &[u8]) -> bool {
        self.references.follow(reading.describer.schema(), attribute, value).is_none()
    }

    /// The entry of a change, if it is there.
    ///
    /// # Errors
    /// The store's.
    pub fn entry(
        &mut self,
        reading: &Reading,
        change: &EntryChange,
    ) -> Result<&mut Option<Entry>, Failure> {
        let key = key(change);
        if !self.entries.contains_key(&key) {
            let mut found = find(reading, change)?;
            if let Some(entry) = &mut found {
                self.references.follow_all(reading.describer.schema(), &mut entry.attributes);
            }
            self.entries.insert(key.clone(), found);
        }
        Ok(self.entries.entry(key).or_default())
    }

    /// Whether an entry of this name could be added.
    ///
    /// # Errors
    /// The store's.
    pub fn room_for(&self, reading: &Reading, dn: &str) -> Result<Room, Failure> {
        let name = parse(reading, dn)?;
        let planned = || self.entries.values().flatten();
        let is_of = |entry: &Entry, wanted: &EntryName| {
            parse(reading, &entry.dn).is_ok_and(|name| is_same(&name, wanted))
        };
        let room = reading.describer.room_for(&reading.store, &name).map_err(|why| failed(&why))?;
        match room {
            Room::Nowhere if planned().any(|entry| is_of(entry, &name.parent())) => Ok(Room::Free),
            // It is the one of an entry that will have another by then, or be gone.
            Room::Taken(id)
                if !planned().any(|entry| is_of(entry, &name)) && self.has(reading, id)? =>
            {
                Ok(Room::Free)
            }
            room => Ok(room),
        }
    }

    /// Whether an entry of the store is one of those.
    fn has(&self, reading: &Reading, id: EntryId) -> Result<bool, Failure> {
        let entry = load(reading, id)?;
        let uuid = entry.as_ref().and_then(uuid_of);
        Ok(uuid.is_some_and(|uuid| self.entries.contains_key(&uuid)))
    }

    /// Gives an entry, and those below it, another name, or none any more; references follow.
    pub fn rename(&mut self, reading: &Reading, names: Names) {
        let schema = reading.describer.schema();
        let mut one = References::new(self.references.attributes().to_vec());
        one.note(names.clone());
        for entry in self.entries.values_mut().flatten() {
            let name = EntryName::parse(schema, &entry.dn).ok();
            if let Some(new) = name.and_then(|name| names.follow(&name)) {
                entry.dn = new.text();
            }
            one.follow_all(schema, &mut entry.attributes);
        }
        self.references.note(names);
    }

    /// Counts an entry that comes, or goes, below the one of this name.
    pub fn count_below(&mut self, reading: &Reading, dn: &str, comes: bool) {
        let Ok(above) = parse(reading, dn).map(|name| name.parent()) else { return };
        for entry in self.entries.values_mut().flatten() {
            if parse(reading, &entry.dn).is_ok_and(|name| is_same(&name, &above)) {
                entry.below = match comes {
                    true => entry.below.saturating_add(1),
                    false => entry.below.saturating_sub(1),
                };
            }
        }
    }
}

impl Entry {
    /// Takes away the values of a relative name, those of another one aside, and adds those of that one: as the server
    /// does it.
    pub fn rename_values(&mut self, schema: &Schema, old: &str, new: &str, takes_old: bool) {
        let (Ok(old), Ok(new)) = (Rdn::parse(old), Rdn::parse(new)) else { return };
        for ava in old.avas.iter().filter(|ava| takes_old && !new.avas.contains(ava)) {
            let name = canonical(schema, ava);
            if let Some(values) = self.attributes.get_mut(&name) {
                values.retain(|value| !is_value(schema, ava, value));
            }
        }
        self.attributes.retain(|_, values| !values.is_empty());
        for ava in &new.avas {
            let values = self.attributes.entry(canonical(schema, ava)).or_default();
            if !values.iter().any(|value| is_value(schema, ava, value)) {
                values.push(ava.value.clone());
            }
        }
    }
}

fn canonical(schema: &Schema, ava: &Ava) -> String {
    let known = schema.attribute(&ava.attribute);
    known.map_or_else(|| ava.attribute.clone(), |known| known.name().to_owned())
}

/// Whether a value is that of a name.
fn is_value(schema: &Schema, ava: &Ava, value: &[u8]) -> bool {
    let rule = schema.attribute(&ava.attribute).and_then(|known| known.equality());
    let normal = |value: &[u8]| schema.normalize(rule?, value);
    *value == *ava.value || normal(value).is_some_and(|one| normal(&ava.value) == Some(one))
}

fn key(change: &EntryChange) -> String {
    match change.uuid.is_empty() {
        true => format!("number {}", change.id),
        false => change.uuid.clone(),
    }
}

fn uuid_of(entry: &Entry) -> Option<String> {
    let value = entry.attributes.get(ENTRY_UUID)?.first()?;
    String::from_utf8(value.clone()).ok()
}

/// The entry by its number, or by one of its names: one that was deleted and added again has another number.
fn find(reading: &Reading, change: &EntryChange) -> Result<Option<Entry>, Failure> {
    let is_it =
        |entry: &Entry| change.uuid.is_empty() || uuid_of(entry).as_ref() == Some(&change.uuid);
    if let Some(entry) = load(reading, change.id)?.filter(is_it) {
        return Ok(Some(entry));
    }
    for dn in [Some(change.dn.as_str()), change.dn_after()].into_iter().flatten() {
        let Ok(name) = parse(reading, dn) else { continue };
        let id = reading.describer.entry_of(&reading.store, &name).map_err(|why| failed(&why))?;
        let entry = id.map(|id| load(reading, id)).transpose()?.flatten();
        // Without an identity it cannot be told whether it is the one.
        if let Some(entry) = entry.filter(|entry| !change.uuid.is_empty() && is_it(entry)) {
            return Ok(Some(entry));
        }
    }
    Ok(None)
}

fn load(reading: &Reading, id: EntryId) -> Result<Option<Entry>, Failure> {
    let stored = StoredEntry::load(&reading.store, id)?;
    Ok(stored.map(|StoredEntry { dn, attributes, below }| {
        let attributes = attributes.into_iter().collect();
        Entry { dn, attributes, below }
    }))
}

pub(super) fn parse(reading: &Reading, dn: &str) -> Result<EntryName, Failure> {
    EntryName::parse(reading.describer.schema(), dn)
        .map_err(|why| Failure::new(format!("{dn}: {why}")))
}

fn failed(why: &keyway_server::Failure) -> Failure {
    Failure::new(format!("cannot read the store: {why}"))
}
