//! The history of one entry: its changes by whatever name it had, and those that gave it another name by giving one to
//! an entry above it.

use super::places::{Names, is_same};
use super::printer::Printer;
use super::reading::Reading;
use super::showing::{Form, Showing};
use keyway_host::failure::Failure;
use keyway_schema::EntryName;
use keyway_server::DescribedChange;
use keyway_store::{EntryId, FeedHead};
use serde_json::json;
use std::collections::{HashMap, HashSet};

/// Shows the changes of all entries that have or had this name, oldest first.
///
/// # Errors
/// If there is no feed, if no entry had the name as far as it goes back, or the output cannot be written.
pub fn show(showing: &Showing, dn: &str) -> Result<(), Failure> {
    let mut reading = Reading::open(&showing.folder, showing.passwords)?;
    let name = EntryName::parse(reading.describer.schema(), dn).map_err(Failure::usage)?;
    let (printer, head) = (Printer::new(showing.form), reading.head()?);
    let found = Found::search(&mut reading, &name, &head, &printer)?;
    if found.ids.is_empty() {
        return Err(Failure::new(format!(
            "there is no entry {dn:?}, and none had that name since position {}, from which on changes are kept",
            head.first
        )));
    }
    say_since(&reading, &head, &printer)?;
    // Their names by now, as far as a change has told them.
    let mut names: HashMap<EntryId, EntryName> = HashMap::new();
    names.extend(found.first.map(|first| (first, name)));
    // Entries that were introduced; the last one is spoken of.
    let mut told: Vec<String> = Vec::new();
    let mut is_changed = false;
    each(&mut reading, &head, &printer, |reading, change| {
        let Some(entry) = change.entry() else { return Ok(()) };
        let schema = reading.describer.schema();
        let is_one = found.ids.contains(&entry.id);
        let changed = Names::of(schema, entry);
        let mut concerns = is_one;
        for name in names.values_mut() {
            if let Some(new) = changed.follow(name).filter(|_| !is_one) {
                (*name, concerns) = (new, true);
            }
        }
        // One that was deleted and came back has another number.
        let identity = match entry.uuid.is_empty() {
            true => format!("without entryUUID, number {}", entry.id),
            false => entry.uuid.clone(),
        };
        if is_one && told.last() != Some(&identity) && showing.takes(change) {
            let is_known = told.contains(&identity);
            let which = match (told.is_empty(), is_known) {
                (true, _) => "entry",
                (_, true) => "again the entry",
                _ => "another entry of that name",
            };
            // Lines for programs say of each change which entry it is one of.
            if !is_known || showing.form != Form::Json {
                printer.remark(
                    &format!("{which}: {identity}"),
                    &json!({ "event": "entry", "id": entry.id.0, "entry_uuid": entry.uuid }),
                )?;
            }
            told.retain(|one| *one != identity);
            told.push(identity);
        }
        if is_one {
            match changed.after {
                Some(after) => drop(names.insert(entry.id, after)),
                None => drop(names.remove(&entry.id)),
            }
        }
        if !concerns || !showing.takes(change) {
            return Ok(());
        }
        is_changed = true;
        printer.change(change, schema)
    })?;
    match found.ids.iter().next().filter(|_| !is_changed) {
        None => Ok(()),
        Some(id) => printer.remark(
            "none of them is one of this entry",
            &json!({ "event": "unchanged", "id": id.0 }),
        ),
    }
}

/// Calls with each change that is kept.
fn each(
    reading: &mut Reading,
    head: &FeedHead,
    printer: &Printer,
    mut take: impl FnMut(&Reading, &DescribedChange) -> Result<(), Failure>,
) -> Result<(), Failure> {
    reading.begin(head.first);
    while let Some(changes) = reading.next(head.position).map_err(|why| printer.refuse(why))? {
        changes.iter().try_for_each(|change| take(reading, change))?;
    }
    Ok(())
}

/// Entries that have or had a name.
struct Found {
    ids: HashSet<EntryId>,
    /// The one that had it before the first change that is kept.
    first: Option<EntryId>,
}

impl Found {
    fn search(
        reading: &mut Reading,
        name: &EntryName,
        head: &FeedHead,
        printer: &Printer,
    ) -> Result<Found, Failure> {
        let mut found = Found { ids: HashSet::new(), first: None };
        // The name by now of an entry that had this one at the beginning and was not changed yet.
        let mut unchanged = Some(name.clone());
        each(reading, head, printer, |reading, change| {
            let Some(entry) = change.entry() else { return Ok(()) };
            let names = Names::of(reading.describer.schema(), entry);
            if names.have(name) {
                found.ids.insert(entry.id);
            }
            if let Some(now) = &unchanged {
                if names.before.as_ref().is_some_and(|before| is_same(before, now)) {
                    found.ids.insert(entry.id);
                    (found.first, unchanged) = (Some(entry.id), None);
                } else if names.after.as_ref().is_some_and(|after| is_same(after, now)) {
                    // There was none.
                    unchanged = None;
                } else if let Some(new) = names.follow(now) {
                    unchanged = Some(new);
                }
            }
            Ok(())
        })?;
        let there = |name: &EntryName| {
            let id = reading.describer.entry_of(&reading.store, name);
            id.map_err(|why| Failure::new(format!("cannot read the store: {why}")))
        };
        if let Some(unchanged) = unchanged {
            found.first = there(&unchanged)?;
        }
        found.ids.extend(found.first.into_iter().chain(there(name)?));
        Ok(found)
    }
}

/// Says from when on changes are kept.
fn say_since(reading: &Reading, head: &FeedHead, printer: &Printer) -> Result<(), Failure> {
    let since = reading.note(head.first).map(|note| note.time());
    let time = since.as_ref().and_then(|time| time.split_once('.'));
    let on = time.map(|(time, _)| format!(", {time}Z")).unwrap_or_default();
    let words = match (head.is_empty(), head.is_whole()) {
        (true, _) => format!("no change is kept: the last one was at position {}", head.position),
        (_, true) => "all changes since the store was made are kept".to_owned(),
        _ => format!("changes are kept since position {}{on}", head.first),
    };
    let (whole, first, last) = (head.is_whole(), head.first, head.position);
    let value = json!({ "event": "feed", "store": reading.incarnation(), "first": first, "last": last, "since": since, "whole": whole });
    printer.remark(&words, &value)
}
