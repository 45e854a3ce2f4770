//! The reverse of changes.

use super::blame::{Conflict, conflict};
use super::references::Attributes;
use super::state::{Entry, State, parse};
use crate::changes::{Names, Reading, is_same};
use crate::changing::{PlannedChange, is_left_to_server};
use keyway_codec::ldif::{Modification, RecordKind};
use keyway_codec::message::ChangeOperation;
use keyway_host::failure::Failure;
use keyway_schema::operational::{ENTRY_UUID, MODIFY_TIMESTAMP, STRUCTURAL_OBJECT_CLASS};
use keyway_schema::{EntryName, base};
use keyway_server::{
    AttributeChange, AttributeValues, DescribedChange, EntryChange, Extent, Operation, Reason,
    Renaming, Room, RowOrEntry, Values,
};
use std::collections::HashSet;

/// Values of an attribute that are asserted; of more the server sees by itself whether they are there.
const ASSERTED_MAX: usize = 8;

/// A plan that grows.
pub(super) struct Reverse {
    reading: Reading,
    state: State,
    changes: Vec<PlannedChange>,
}

impl Reverse {
    /// `references` are the attributes that follow the entries which they name.
    pub fn new(reading: Reading, references: Vec<String>) -> Reverse {
        Reverse { reading, state: State::new(references), changes: Vec::new() }
    }

    pub fn reading(&mut self) -> &mut Reading {
        &mut self.reading
    }

    pub fn end(self) -> (Reading, Vec<PlannedChange>) {
        (self.reading, self.changes)
    }

    /// Plans the reverse of the changes of one request.
    ///
    /// # Errors
    /// A conflict, or changes that cannot be undone.
    pub fn request(&mut self, request: &[DescribedChange]) -> Result<(), Failure> {
        // An entry comes before those that refer to it again; those that follow its name do so by themselves.
        let is_main = |change: &&DescribedChange| {
            let operation = change.entry().map(|entry| &entry.operation);
            !matches!(operation, Some(Operation::Modify(_)))
        };
        let follows = request.iter().any(|change| {
            matches!(change.entry().map(|entry| &entry.operation), Some(Operation::ModifyDn(_)))
        });
        let note = request.first().and_then(|change| change.note.as_ref());
        if note.is_some_and(|note| note.reason == Reason::Import) {
            // It has many records in one.
            return request.iter().rev().try_for_each(|change| self.change(change));
        }
        let (main, others): (Vec<_>, Vec<_>) = request.iter().rev().partition(is_main);
        if !follows {
            return main.into_iter().chain(others).try_for_each(|change| self.change(change));
        }
        let mut wanted = Vec::new();
        for other in &others {
            wanted.push(self.values_before(other)?);
        }
        main.into_iter().try_for_each(|change| self.change(change))?;
        others.into_iter().zip(wanted).try_for_each(|(other, wanted)| self.mend(other, wanted))
    }

    /// The values that attributes had before a change, as far as it has changed them.
    fn values_before(&mut self, change: &DescribedChange) -> Result<Attributes, Failure> {
        let mut before = Attributes::new();
        let Some((entry, Operation::Modify(attributes))) =
            change.entry().map(|entry| (entry, &entry.operation))
        else {
            return Ok(before);
        };
        let Some(now) = self.entry(entry)?.clone() else { return Ok(before) };
        for one in attributes.iter().filter(|one| !is_left_to_server(&one.name)) {
            let (removed, added) = (shown(&one.removed), shown(&one.added));
            let mut values = now.attributes.get(&one.name).cloned().unwrap_or_default();
            values.retain(|value| !added.contains(value));
            values.extend_from_slice(removed);
            before.insert(one.name.clone(), values);
        }
        Ok(before)
    }

    /// Plans what is left to do for an entry whose references have followed: if it named both names, one is lost.
    fn mend(&mut self, change: &DescribedChange, wanted: Attributes) -> Result<(), Failure> {
        let Some(entry) = change.entry() else { return Ok(()) };
        let Some(mut now) = self.entry(entry)?.clone() else { return Ok(()) };
        let mut modifications = Vec::new();
        for (name, values) in wanted {
            let held = now.attributes.get(&name).cloned().unwrap_or_default();
            let without = |some: &[Vec<u8>], others: &[Vec<u8>]| -> Vec<Vec<u8>> {
                some.iter().filter(|value| !others.contains(value)).cloned().collect()
            };
            let (goes, comes) = (without(&held, &values), without(&values, &held));
            for (operation, values) in
                [(ChangeOperation::Delete, goes), (ChangeOperation::Add, comes)]
            {
                if !values.is_empty() {
                    modifications.push(modification(operation, &name, &values));
                }
            }
            now.attributes.insert(name, values);
        }
        if modifications.is_empty() {
            return Ok(());
        }
        let (kind, why) = (RecordKind::Modify(modifications), why(change, entry));
        self.changes.push(PlannedChange::new(now.dn.clone(), kind, asserted(&now, &[]), why));
        *self.entry(entry)? = Some(now);
        Ok(())
    }

    fn change(&mut self, change: &DescribedChange) -> Result<(), Failure> {
        let entry = match &change.change {
            // Numbers that were given are not given again.
            RowOrEntry::Row(_) if change.kind() == "number" => return Ok(()),
            RowOrEntry::Row(_) => {
                return Err(Failure::new(format!(
                    "position {}.{} is a change of the {}, which cannot be undone here",
                    change.position,
                    change.index,
                    change.kind()
                )));
            }
            RowOrEntry::Entry(entry) => entry,
        };
        let why = why(change, entry);
        let at = (change.position, entry);
        match &entry.operation {
            Operation::Add(attributes) => self.added(at, attributes, why),
            Operation::Delete(attributes) => self.deleted(at, attributes, why),
            Operation::Modify(attributes) => self.modified(at, attributes, why),
            Operation::ModifyDn(renaming) => self.renamed(at, renaming, why),
        }
    }

    fn conflict(&mut self, at: (u64, &EntryChange), what: &Conflict<'_>) -> Failure {
        conflict(&mut self.reading, at, what)
    }

    fn entry(&mut self, change: &EntryChange) -> Result<&mut Option<Entry>, Failure> {
        self.state.entry(&self.reading, change)
    }

    /// An entry that was added goes.
    fn added(
        &mut self,
        at: (u64, &EntryChange),
        attributes: &[AttributeValues],
        why: String,
    ) -> Result<(), Failure> {
        let (_, change) = at;
        let Some(now) = self.entry(change)?.clone() else { return Ok(()) };
        let name = parse(&self.reading, &change.dn)?;
        if !is_same(&name, &parse(&self.reading, &now.dn)?) {
            return Err(self.conflict(at, &Conflict::Renamed));
        }
        if let Some(attribute) = differing(&all(attributes), &now.attributes) {
            return Err(self.conflict(at, &Conflict::Attribute(&attribute)));
        }
        if now.below > 0 {
            return Err(self.conflict(at, &Conflict::Below(&name)));
        }
        // What is planned already changes times.
        let also = if self.changes.is_empty() { &[MODIFY_TIMESTAMP][..] } else { &[] };
        let only_if = asserted(&now, also);
        self.changes.push(PlannedChange::new(now.dn.clone(), RecordKind::Delete, only_if, why));
        *self.entry(change)? = None;
        self.state.rename(&self.reading, Names { before: Some(name), after: None });
        self.state.count_below(&self.reading, &now.dn, false);
        Ok(())
    }

    /// An entry that was deleted comes back as it was.
    fn deleted(
        &mut self,
        at: (u64, &EntryChange),
        attributes: &[AttributeValues],
        why: String,
    ) -> Result<(), Failure> {
        let (_, change) = at;
        let (before, name) = (all(attributes), parse(&self.reading, &change.dn)?);
        if let Some(now) = self.entry(change)?.clone() {
            let is_back = is_same(&name, &parse(&self.reading, &now.dn)?)
                && differing(&before, &now.attributes).is_none();
            return match is_back {
                true => Ok(()),
                false => Err(self.conflict(at, &Conflict::Taken(&name))),
            };
        }
        match self.state.room_for(&self.reading, &change.dn)? {
            Room::Free => {}
            Room::Taken(_) => return Err(self.conflict(at, &Conflict::Taken(&name))),
            Room::Nowhere => {
                return Err(Failure::new(format!(
                    "position {} cannot be undone: there is no entry {} to put {} below; undo what became of that \
                     one first. Nothing was changed",
                    at.0,
                    name.parent().text(),
                    change.dn
                )));
            }
        }
        let lines = attributes.iter().filter(|one| one.name != STRUCTURAL_OBJECT_CLASS);
        let lines = lines.flat_map(|one| {
            shown(&one.values).iter().map(|value| (one.name.clone(), value.clone()))
        });
        self.changes.push(PlannedChange::add(change.dn.clone(), lines.collect(), why));
        let entry = Entry { dn: change.dn.clone(), attributes: before, below: 0 };
        *self.entry(change)? = Some(entry);
        self.state.count_below(&self.reading, &change.dn, true);
        Ok(())
    }

    /// Attributes get the values that they had.
    fn modified(
        &mut self,
        at: (u64, &EntryChange),
        attributes: &[AttributeChange],
        why: String,
    ) -> Result<(), Failure> {
        let (_, change) = at;
        let Some(now) = self.entry(change)?.clone() else {
            return Err(self.conflict(at, &Conflict::Gone));
        };
        let (mut modifications, mut only_if) = (Vec::new(), asserted(&now, &[]));
        let mut after = now.attributes.clone();
        for one in attributes.iter().filter(|one| !is_left_to_server(&one.name)) {
            let held = after.get(&one.name).map_or(&[][..], Vec::as_slice);
            let removed = shown(&one.removed);
            let there: HashSet<&[u8]> = held.iter().map(Vec::as_slice).collect();
            // The server has taken references to entries that go by the plan.
            let is_taken = |value: &[u8]| self.state.takes(&self.reading, &one.name, value);
            let added = shown(&one.added).iter();
            let added = added.filter(|value| there.contains(&***value) || !is_taken(value));
            let added: Vec<Vec<u8>> = added.cloned().collect();
            let added = added.as_slice();
            let has = |values: &[Vec<u8>]| values.iter().all(|value| there.contains(&**value));
            let has_none =
                |values: &[Vec<u8>]| !values.iter().any(|value| there.contains(&**value));
            let is_whole = one.extent != Extent::Some;
            let is_after =
                has(added) && has_none(removed) && (!is_whole || held.len() == added.len());
            let is_before =
                has(removed) && has_none(added) && (!is_whole || held.len() == removed.len());
            if is_before {
                continue;
            }
            if !is_after {
                return Err(self.conflict(at, &Conflict::Attribute(&one.name)));
            }
            let schema = self.reading.describer.schema();
            let has_equality =
                schema.attribute(base(&one.name)).is_some_and(|known| known.equality().is_some());
            let goes: HashSet<&[u8]> = added.iter().map(Vec::as_slice).collect();
            let mut values: Vec<Vec<u8>> =
                held.iter().filter(|value| !goes.contains(&***value)).cloned().collect();
            values.extend_from_slice(removed);
            if is_whole || !has_equality {
                if has_equality && added.len() <= ASSERTED_MAX {
                    only_if.extend(added.iter().map(|value| (one.name.clone(), value.clone())));
                }
                modifications.push(modification(ChangeOperation::Replace, &one.name, &values));
            } else {
                for (operation, values) in
                    [(ChangeOperation::Delete, added), (ChangeOperation::Add, removed)]
                {
                    if !values.is_empty() {
                        modifications.push(modification(operation, &one.name, values));
                    }
                }
            }
            match values.is_empty() {
                true => drop(after.remove(&one.name)),
                false => drop(after.insert(one.name.clone(), values)),
            }
        }
        if modifications.is_empty() {
            return Ok(());
        }
        let kind = RecordKind::Modify(modifications);
        self.changes.push(PlannedChange::new(now.dn.clone(), kind, only_if, why));
        *self.entry(change)? = Some(Entry { attributes: after, ..now });
        Ok(())
    }

    /// An entry gets the name that it had, and then the values.
    fn renamed(
        &mut self,
        at: (u64, &EntryChange),
        renaming: &Renaming,
        why: String,
    ) -> Result<(), Failure> {
        let (_, change) = at;
        let Some(now) = self.entry(change)?.clone() else {
            return Err(self.conflict(at, &Conflict::Gone));
        };
        let (old, name) = (parse(&self.reading, &change.dn)?, parse(&self.reading, &now.dn)?);
        let new = parse(&self.reading, &renaming.new_dn)?;
        let is_respelt = is_same(&old, &new);
        let is_back = is_same(&name, &old) && (!is_respelt || rdn_of(&name) == rdn_of(&old));
        if is_back {
            return self.modified(at, &renaming.attributes, why);
        }
        if !is_same(&name, &new) {
            return Err(self.conflict(at, &Conflict::Renamed));
        }
        if !is_respelt {
            match self.state.room_for(&self.reading, &change.dn)? {
                Room::Free => {}
                Room::Taken(_) => return Err(self.conflict(at, &Conflict::Taken(&old))),
                Room::Nowhere => {
                    return Err(Failure::new(format!(
                        "position {} cannot be undone: there is no entry {} any more, where {} was. Nothing was \
                         changed",
                        at.0,
                        old.parent().text(),
                        change.dn
                    )));
                }
            }
        }
        let kind = RecordKind::ModRdn {
            new_rdn: rdn_of(&old),
            delete_old_rdn: renaming.brings_values,
            new_superior: renaming.new_superior.is_some().then(|| old.parent().text()),
        };
        let only_if = asserted(&now, &[]);
        let mut after = now.clone();
        let schema = self.reading.describer.schema();
        after.rename_values(schema, &rdn_of(&name), &rdn_of(&old), renaming.brings_values);
        *self.state.entry(&self.reading, change)? = Some(after);
        self.changes.push(PlannedChange::new(now.dn, kind, only_if, why.clone()));
        self.state.rename(&self.reading, Names { before: Some(name), after: Some(old) });
        // Values that the names bring about are the server's.
        self.modified(at, &renaming.attributes, why)
    }
}

fn rdn_of(name: &EntryName) -> String {
    name.parts.first().map(|part| part.text.clone()).unwrap_or_default()
}

/// The reason for a change of a plan.
fn why(change: &DescribedChange, entry: &EntryChange) -> String {
    let (position, index, kind) = (change.position, change.index, change.kind());
    format!("undoes position {position}.{index}, {kind} of {}, {}", entry.dn, change.origin())
}

fn modification(operation: ChangeOperation, name: &str, values: &[Vec<u8>]) -> Modification {
    Modification { operation, attribute: name.to_owned(), values: values.to_vec() }
}

fn shown(values: &Values) -> &[Vec<u8>] {
    match values {
        Values::Shown(values) => values,
        // It was asked for all.
        Values::Hidden(_) => &[],
    }
}

fn all(attributes: &[AttributeValues]) -> Attributes {
    let values = |one: &AttributeValues| (one.name.clone(), shown(&one.values).to_vec());
    attributes.iter().map(values).collect()
}

/// The first attribute with other values; those that are not undone may have others.
fn differing(one: &Attributes, other: &Attributes) -> Option<String> {
    let sorted = |values: Option<&Vec<Vec<u8>>>| {
        let mut values = values.cloned().unwrap_or_default();
        values.sort_unstable();
        values
    };
    let names = one.keys().chain(other.keys()).filter(|name| !is_left_to_server(name));
    names.into_iter().find(|name| sorted(one.get(*name)) != sorted(other.get(*name))).cloned()
}

/// The values by which the server sees that an entry is the one that was looked at.
fn asserted(entry: &Entry, also: &[&str]) -> Vec<(String, Vec<u8>)> {
    let names = [ENTRY_UUID].iter().chain(also);
    let first =
        |name: &&str| Some(((*name).to_owned(), entry.attributes.get(*name)?.first()?.clone()));
    names.filter_map(first).collect()
}
