//! Entries of the changelog.

use super::range::CHANGE_NUMBER;
use crate::feed::{DescribedChange, EntryChange, Operation, Reason};
use crate::virtual_entries::{VirtualEntry, VirtualTree};
use keyway_schema::operational::{
    ENTRY_DN, HAS_SUBORDINATES, STRUCTURAL_OBJECT_CLASS, SUBSCHEMA_DN, SUBSCHEMA_SUBENTRY,
    generalized_time,
};
use std::time::{Duration, UNIX_EPOCH};

/// The entry above all.
pub(super) fn top(has_changes: bool) -> VirtualEntry {
    let attributes = [
        ("cn", vec!["changelog".to_owned()]),
        (
            "description",
            vec!["The changes of the directory that are kept, oldest first".to_owned()],
        ),
    ];
    let dn = VirtualTree::Changelog.dn().to_owned();
    complete(VirtualEntry::new(dn, "applicationProcess", &attributes), has_changes)
}

/// Whether a change has an entry: one of an entry has, but for what a bind leaves there.
pub(super) fn is_shown(change: &DescribedChange) -> bool {
    let is_bind = change.note.as_ref().is_some_and(|note| note.reason == Reason::Bind);
    change.entry().is_some() && !is_bind
}

/// The entry of a change of an entry.
pub(super) fn of(number: u64, change: &DescribedChange, entry: &EntryChange) -> VirtualEntry {
    let one = |text: &str| vec![text.to_owned()];
    let time = change.note.as_ref().map(|note| UNIX_EPOCH + Duration::from_micros(note.at));
    let renaming = match &entry.operation {
        Operation::ModifyDn(renaming) => Some(renaming),
        _ => None,
    };
    let flag = |is_true: bool| if is_true { "TRUE" } else { "FALSE" };
    let attributes = [
        (CHANGE_NUMBER, vec![number.to_string()]),
        ("targetDN", one(&entry.dn)),
        ("changeType", one(change.kind())),
        ("changeTime", time.map(generalized_time).into_iter().collect()),
        (
            "targetEntryUUID",
            Some(entry.uuid.clone()).filter(|uuid| !uuid.is_empty()).into_iter().collect(),
        ),
        ("newRDN", renaming.map(|it| it.new_rdn.clone()).into_iter().collect()),
        (
            "deleteOldRDN",
            renaming.map(|it| flag(it.delete_old_rdn).to_owned()).into_iter().collect(),
        ),
        ("newSuperior", renaming.and_then(|it| it.new_superior.clone()).into_iter().collect()),
        // Lines of LDIF are ASCII.
        (
            "changes",
            Some(entry.ldif_lines()).filter(|lines| !lines.is_empty()).into_iter().collect(),
        ),
    ];
    let dn = format!("{CHANGE_NUMBER}={number},{}", VirtualTree::Changelog.dn());
    complete(VirtualEntry::new(dn, "changeLogEntry", &attributes), false)
}

/// Adds what follows from where an entry is.
fn complete(mut entry: VirtualEntry, has_entries_below: bool) -> VirtualEntry {
    let class = entry.attributes.first().and_then(|(_, classes)| classes.last()).cloned();
    let text = |text: &str| vec![text.as_bytes().to_vec()];
    let has = if has_entries_below { "TRUE" } else { "FALSE" };
    let dn = text(&entry.dn);
    entry.attributes.extend([
        (STRUCTURAL_OBJECT_CLASS.to_owned(), class.into_iter().collect()),
        (SUBSCHEMA_SUBENTRY.to_owned(), text(SUBSCHEMA_DN)),
        (ENTRY_DN.to_owned(), dn),
        (HAS_SUBORDINATES.to_owned(), text(has)),
    ]);
    entry
}
