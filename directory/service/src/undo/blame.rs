//! The later change that stands in the way.

use crate::changes::{Names, Reading, is_same};
use keyway_host::failure::Failure;
use keyway_schema::EntryName;
use keyway_server::{DescribedChange, EntryChange, Operation};

/// The thing that is not as a change has left it.
pub(super) enum Conflict<'a> {
    /// An attribute of the entry, or all of it.
    Attribute(&'a str),
    /// The entry is gone.
    Gone,
    /// The entry has another name.
    Renamed,
    /// Another entry has this name.
    Taken(&'a EntryName),
    /// There are entries below it, of this name.
    Below(&'a EntryName),
}

/// Says that something was changed again behind a position: where, by whom, and what to do.
///
/// # Errors
/// Always: the conflict, or the store's.
pub(super) fn conflict(
    reading: &mut Reading,
    (position, change): (u64, &EntryChange),
    conflict: &Conflict<'_>,
) -> Failure {
    let words = match conflict {
        Conflict::Attribute(name) => format!("{name} of {} has other values by now", change.dn),
        Conflict::Gone => format!("{} is gone by now", change.dn_after().unwrap_or(&change.dn)),
        Conflict::Renamed => {
            format!("{} has another name by now", change.dn_after().unwrap_or(&change.dn))
        }
        Conflict::Taken(name) => format!("another entry is {} by now", name.text()),
        Conflict::Below(name) => format!("there are entries below {} by now", name.text()),
    };
    let begin = format!("position {position} cannot be undone: {words}");
    match last(reading, (position, change), conflict) {
        Err(failure) => failure,
        Ok(Some((by, origin))) => Failure::new(format!(
            "{begin}. Position {by} has changed that since, {origin}; undo that one first, or change the entry by \
             hand. Nothing was changed"
        )),
        Ok(None) => Failure::new(format!("{begin}. Nothing was changed")),
    }
}

/// The last change that is of such a kind, and who has made it.
fn last(
    reading: &mut Reading,
    (position, change): (u64, &EntryChange),
    conflict: &Conflict<'_>,
) -> Result<Option<(u64, String)>, Failure> {
    let last = reading.head()?.position;
    let mut found = None;
    reading.begin(position.saturating_add(1));
    while let Some(changes) = reading.next(last)? {
        for later in &changes {
            if is_such(reading, later, change, conflict) {
                let time = later.note.as_ref().map(|note| format!(", {}", note.time()));
                let origin = format!("{}{}", later.origin(), time.unwrap_or_default());
                found = Some((later.position, origin));
            }
        }
    }
    Ok(found)
}

fn is_such(
    reading: &Reading,
    later: &DescribedChange,
    change: &EntryChange,
    conflict: &Conflict<'_>,
) -> bool {
    let Some(entry) = later.entry() else { return false };
    let is_it = entry.id == change.id || !change.uuid.is_empty() && entry.uuid == change.uuid;
    let names = Names::of(reading.describer.schema(), entry);
    match (conflict, &entry.operation) {
        (Conflict::Attribute(name), Operation::Modify(attributes)) => {
            is_it && attributes.iter().any(|one| one.name == *name)
        }
        (Conflict::Attribute(name), Operation::ModifyDn(renaming)) => {
            // The new name may have brought it about.
            is_it
                && (renaming.attributes.iter().any(|one| one.name == *name)
                    || renaming.brings_values)
        }
        (Conflict::Attribute(_), Operation::Add(_)) => is_it,
        (Conflict::Gone, Operation::Delete(_)) => is_it,
        (Conflict::Renamed, Operation::ModifyDn(_)) => {
            is_it
                || names.before.is_some_and(|before| {
                    let now = change.dn_after().unwrap_or(&change.dn);
                    EntryName::parse(reading.describer.schema(), now)
                        .is_ok_and(|now| now.is_within(&before))
                })
        }
        (Conflict::Taken(name), Operation::Add(_) | Operation::ModifyDn(_)) => {
            names.after.is_some_and(|after| is_same(&after, name))
        }
        (Conflict::Below(name), Operation::Add(_) | Operation::ModifyDn(_)) => {
            names.after.is_some_and(|after| is_same(&after.parent(), name))
        }
        _ => false,
    }
}
