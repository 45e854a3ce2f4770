//! The changes that make entries what they were in a backup.

use super::difference::{modifications, values};
use super::place::{Found, Place, find, no_room, place, renamed};
use super::references::{Became, References, Targets, parse};
use super::side::Side;
use crate::changing::PlannedChange;
use keyway_codec::ldif::{Modification, RecordKind};
use keyway_codec::message::ChangeOperation;
use keyway_host::failure::Failure;
use keyway_schema::operational::{ENTRY_UUID, MODIFY_TIMESTAMP, STRUCTURAL_OBJECT_CLASS};
use keyway_schema::{
    EntryAttributes, EntryName, Schema, Violation, base, check_loosely, violations,
};
use keyway_store::EntryId;
use std::collections::{HashMap, HashSet};

/// The entries that are asked for.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The DN of the entry, or of the one at the top.
    pub dn: &'a str,
    /// Whether all below it are meant, too.
    pub is_subtree: bool,
    /// Whether memberships are given back also to entries that are in their places.
    pub memberships: bool,
}

/// A plan.
#[derive(Default)]
pub struct Plan {
    /// The changes, in their order.
    pub changes: Vec<PlannedChange>,
    /// How many entries come back.
    pub added: u64,
    /// How many are changed back.
    pub modified: u64,
    /// How many values of other entries name one that comes back, and are given back.
    pub memberships: u64,
    /// How many entries are as they were.
    pub untouched: u64,
    /// The entries that are left as they are, and why.
    pub skipped: Vec<(String, String)>,
    /// How many entries below the top are not in the backup.
    pub not_in_backup: u64,
    /// How many references to entries that are gone for good do not come back.
    pub left_out: u64,
}

enum Fate {
    Added,
    There(EntryId),
    Skipped(String),
}

/// Plans it. `backup` is what the backup is called.
///
/// # Errors
/// If the backup has no such entry, or it cannot come back; and the stores'.
pub fn plan(
    (then, now): (&Side, &Side),
    references: &References,
    asked: &Asked<'_>,
    backup: &str,
) -> Result<Plan, Failure> {
    let sides = (then, now);
    let found = find(sides, (asked.dn, asked.is_subtree), backup)?;
    let mut targets = Targets::default();
    for one in &found {
        targets.look(sides, references, &then.entry(one.id)?.attributes)?;
    }
    let is_there = |one: &&Found| matches!(one.place, Place::There(_));
    let away = found.iter().filter(|one| !is_there(one)).filter_map(|one| one.uuid.as_ref());
    let elsewhere = now.find(&away.chain(targets.uuids()).cloned().collect())?;
    let fates = fates(sides, &found, &elsewhere)?;
    if let (Some(top), Some(Fate::Skipped(why))) = (found.first(), fates.first()) {
        let is_renamed = top.uuid.as_ref().is_some_and(|uuid| elsewhere.contains_key(uuid));
        if top.place == Place::Nowhere && !is_renamed {
            return Err(no_room(sides, &top.dn));
        }
        if !asked.is_subtree {
            return Err(not_restored(&top.dn, &format!("it {why}")));
        }
    }
    let back = found.iter().zip(&fates).filter(|(_, fate)| matches!(fate, Fate::Added));
    let back: HashSet<&str> = back.filter_map(|(one, _)| one.uuid.as_deref()).collect();
    let became = |uuid: &str| match elsewhere.get(uuid) {
        Some((_, dn)) => Became::Renamed(dn.clone()),
        None if back.contains(uuid) => Became::Back,
        None => Became::Gone,
    };
    let mut plan = Plan::default();
    for (one, fate) in found.iter().zip(&fates) {
        if let Fate::Skipped(why) = fate {
            plan.skipped.push((one.dn.clone(), format!("it {why}")));
            continue;
        }
        let mut was = then.entry(one.id)?.attributes;
        match fate {
            Fate::There(id) => {
                plan.left_out += targets.follow(references, &mut was, became);
                plan.back_to(now, *id, &was, backup)?;
                if let (false, Some((dn, why))) = (asked.is_subtree, plan.skipped.first()) {
                    return Err(not_restored(dn, why));
                }
            }
            _ => {
                let all = was.clone();
                let left_out = targets.follow(references, &mut was, became);
                plan.left_out += left_out - keep_demanded(now.schema(), &mut was, all);
                plan.add(one.dn.clone(), was, backup);
            }
        }
    }
    let given_back = |fate: &Fate| match fate {
        Fate::Added => true,
        Fate::There(_) => asked.memberships,
        Fate::Skipped(_) => false,
    };
    let given_back = found.iter().zip(&fates).filter(|(_, fate)| given_back(fate));
    let names = given_back.map(|(one, _)| Ok(then.name(&one.dn)?.canonical()));
    let names = names.collect::<Result<HashSet<Vec<u8>>, Failure>>()?;
    let own = found.iter().zip(&fates).filter(|(_, fate)| !matches!(fate, Fate::Skipped(_)));
    let own: HashSet<EntryId> = own.map(|(one, _)| one.id).collect();
    plan.memberships(sides, references, (&names, &own), backup)?;
    plan.not_in_backup = if asked.is_subtree { not_in_backup(now, &found, &elsewhere)? } else { 0 };
    Ok(plan)
}

/// Decides on each entry.
fn fates(
    (then, now): (&Side, &Side),
    found: &[Found],
    elsewhere: &HashMap<String, (EntryId, String)>,
) -> Result<Vec<Fate>, Failure> {
    let mut added: HashSet<Vec<u8>> = HashSet::new();
    let mut fates = Vec::new();
    for one in found {
        let name = EntryName::parse(now.schema(), &one.dn);
        let name = name.as_ref().map(|name| (name.canonical(), name.parent().canonical()));
        let has_parent = name.as_ref().is_ok_and(|(_, above)| added.contains(above));
        let is_now = one.uuid.as_ref().and_then(|uuid| elsewhere.get(uuid));
        let fate = match (one.place, is_now) {
            (Place::There(id), _) => Fate::There(id),
            (_, Some((_, is_now))) => Fate::Skipped(renamed(is_now)),
            (Place::Taken(_), None) => Fate::Skipped(
                "is gone, and another entry has its name by now (with another entryUUID); rename or delete that one \
                 first"
                    .to_owned(),
            ),
            (Place::Nowhere, None) if !has_parent => {
                Fate::Skipped("is gone, and there is no entry any more to put it below".to_owned())
            }
            (Place::Free | Place::Nowhere, None) => {
                match check_loosely(now.schema(), &then.entry(one.id)?.attributes, &[]) {
                    Ok(_) => Fate::Added,
                    Err(why) => Fate::Skipped(unfit(&why)),
                }
            }
        };
        if let (Fate::Added, Ok((name, _))) = (&fate, name) {
            added.insert(name);
        }
        fates.push(fate);
    }
    Ok(fates)
}

fn not_restored(dn: &str, why: &str) -> Failure {
    Failure::new(format!("{dn} cannot be restored: {why}. Nothing was changed"))
}

fn unfit(why: &Violation) -> String {
    format!("does not fit the schema as it is by now: {why}")
}

/// How many entries are below the top now, itself included, that are none of those.
fn not_in_backup(
    now: &Side,
    found: &[Found],
    elsewhere: &HashMap<String, (EntryId, String)>,
) -> Result<u64, Failure> {
    let Some(Found { dn, place: Place::There(top) | Place::Taken(top), .. }) = found.first() else {
        return Ok(0);
    };
    let name = now.name(dn)?;
    let is_known = |one: &&Found| match one.place {
        Place::There(_) => true,
        _ => {
            let is_now = one.uuid.as_ref().and_then(|uuid| elsewhere.get(uuid));
            is_now.is_some_and(|(_, dn)| {
                EntryName::parse(now.schema(), dn).is_ok_and(|now| now.is_within(&name))
            })
        }
    };
    let known = found.iter().filter(is_known).count() as u64;
    Ok(now.count(*top)?.saturating_sub(known))
}

/// Takes values back that were left out of an entry that comes back, where its classes demand the attribute and none
/// would be left: without it the entry could not be there at all. Returns how many.
fn keep_demanded(schema: &Schema, was: &mut EntryAttributes, all: EntryAttributes) -> u64 {
    let mut kept = 0;
    let lacks: Vec<String> = violations(schema, was).into_iter().map(|(name, _)| name).collect();
    for (name, values) in all {
        let is_gone = !was.iter().any(|(own, _)| *own == name);
        if is_gone && lacks.iter().any(|lack| lack == base(&name)) {
            kept += values.len() as u64;
            was.push((name, values));
        }
    }
    kept
}

/// The values by which the server sees that an entry is the one that was looked at.
fn asserted(attributes: &EntryAttributes, names: &[&str]) -> Vec<(String, Vec<u8>)> {
    let first = |name: &&str| Some(((*name).to_owned(), values(attributes, name).first()?.clone()));
    names.iter().filter_map(first).collect()
}

impl Plan {
    /// An entry comes back.
    fn add(&mut self, dn: String, was: EntryAttributes, backup: &str) {
        let lines = was.into_iter().filter(|(name, _)| name != STRUCTURAL_OBJECT_CLASS);
        let lines = lines
            .flat_map(|(name, values)| values.into_iter().map(move |value| (name.clone(), value)));
        let why = format!("gone since {backup}");
        self.changes.push(PlannedChange::add(dn, lines.collect(), why));
        self.added += 1;
    }

    /// An entry that is there is made what it was.
    fn back_to(
        &mut self,
        now: &Side,
        id: EntryId,
        was: &EntryAttributes,
        backup: &str,
    ) -> Result<(), Failure> {
        let entry = now.entry(id)?;
        let modifications = modifications(now.schema(), &entry.attributes, was);
        if modifications.is_empty() {
            self.untouched += 1;
            return Ok(());
        }
        if let Err(why) = check_loosely(now.schema(), was, &[]) {
            self.skipped.push((entry.dn, format!("it {}", unfit(&why))));
            return Ok(());
        }
        let only_if = asserted(&entry.attributes, &[ENTRY_UUID, MODIFY_TIMESTAMP]);
        let (kind, why) = (RecordKind::Modify(modifications), format!("differs from {backup}"));
        self.changes.push(PlannedChange::new(entry.dn, kind, only_if, why));
        self.modified += 1;
        Ok(())
    }

    /// Entries that named some of these names in the backup, and do not now, name them again; those that are planned by
    /// themselves aside.
    fn memberships(
        &mut self,
        (then, now): (&Side, &Side),
        references: &References,
        (names, own): (&HashSet<Vec<u8>>, &HashSet<EntryId>),
        backup: &str,
    ) -> Result<(), Failure> {
        if names.is_empty() {
            return Ok(());
        }
        let mut referring = Vec::new();
        for (id, values) in references.to(then, names)? {
            if !own.contains(&id) {
                let node = then.node(id)?;
                let place = place(now, &node.dn, node.uuid.as_ref())?;
                referring.push((node.uuid, place, values));
            }
        }
        let away = referring.iter().filter(|(_, place, _)| !matches!(place, Place::There(_)));
        let away = away.filter_map(|(uuid, ..)| uuid.clone()).collect();
        let elsewhere = now.find(&away)?;
        for (uuid, place, values) in referring {
            let id = match place {
                Place::There(id) => Some(id),
                _ => uuid.and_then(|uuid| elsewhere.get(&uuid)).map(|(id, _)| *id),
            };
            // One that is gone itself has them when it is restored.
            if let Some(id) = id {
                self.name_again(now, id, values, backup)?;
            }
        }
        Ok(())
    }

    fn name_again(
        &mut self,
        now: &Side,
        id: EntryId,
        were: EntryAttributes,
        backup: &str,
    ) -> Result<(), Failure> {
        let entry = now.entry(id)?;
        let canonical = |value: &Vec<u8>| parse(now.schema(), value).map(|name| name.canonical());
        let mut again = Vec::new();
        for (name, mut comes) in were {
            let held = values(&entry.attributes, &name);
            let there: HashSet<Vec<u8>> = held.iter().filter_map(canonical).collect();
            comes.retain(|value| canonical(value).is_some_and(|it| !there.contains(&it)));
            if comes.is_empty() {
                continue;
            }
            let mut after = entry.attributes.clone();
            match after.iter_mut().find(|(own, _)| *own == name) {
                Some((_, values)) => values.extend_from_slice(&comes),
                None => after.push((name.clone(), comes.clone())),
            }
            let violation =
                violations(now.schema(), &after).into_iter().find(|(it, _)| *it == name);
            match violation {
                Some((_, why)) => {
                    self.skipped
                        .push((entry.dn.clone(), format!("{name} is not given back: {why}")));
                }
                None => again.push((name, comes)),
            }
        }
        if again.is_empty() {
            return Ok(());
        }
        self.memberships += again.iter().map(|(_, values)| values.len() as u64).sum::<u64>();
        let add = |(attribute, values)| Modification {
            operation: ChangeOperation::Add,
            attribute,
            values,
        };
        let kind = RecordKind::Modify(again.into_iter().map(add).collect());
        let only_if = asserted(&entry.attributes, &[ENTRY_UUID]);
        let why = format!("named what is restored, in {backup}");
        self.changes.push(PlannedChange::new(entry.dn, kind, only_if, why));
        Ok(())
    }
}
