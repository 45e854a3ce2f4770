//! The difference between two lists of attributes, so that one can be made of the other byte for byte.

use std::collections::HashSet;

use crate::parts::{RecordError, put_slice, put_varint, slice, text, varint};
use crate::{EntryRef, Error};

/// What became of an attribute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EditKind {
    /// It has other values.
    Changed,
    /// It is not there any more.
    Gone,
    /// It was not there before.
    New,
}

/// How an attribute differs between two states of an entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AttributeEdit {
    /// What became of it.
    pub kind: EditKind,
    /// The attribute's name.
    pub name: String,
    /// Which one it was among the entry's attributes; of a new one, which one it comes before.
    pub(crate) place: u64,
    /// Values that it has no more.
    pub removed: Vec<Vec<u8>>,
    /// Values that it has now.
    pub added: Vec<Vec<u8>>,
}

/// An attribute and its values.
type Attribute = (String, Vec<Vec<u8>>);

/// Values in their order.
type Slices<'v> = Vec<&'v [u8]>;

/// Values above which they are looked up in a set.
const COMPARED_VALUES_MAX: usize = 16;

/// Appends the edits that make `new` of the attributes of `old`: `varint edits | (kind | varint place | text name |
/// varint values | value… | varint values | value…)…`.
pub(crate) fn put_edits(out: &mut Vec<u8>, old: &EntryRef<'_>, new: &[Attribute]) {
    let old: Vec<(&str, Vec<&[u8]>)> =
        old.attributes().map(|(name, values)| (name, values.collect())).collect();
    let (mut edits, mut count) = (Vec::new(), 0u64);
    let mut put = |kind, place: usize, name: &str, removed: &[&[u8]], added: &[&[u8]]| {
        count += 1;
        edits.push(match kind {
            EditKind::Changed => 0,
            EditKind::Gone => 1,
            EditKind::New => 2,
        });
        put_varint(&mut edits, place as u64);
        put_slice(&mut edits, name.as_bytes());
        for values in [removed, added] {
            put_varint(&mut edits, values.len() as u64);
            values.iter().for_each(|value| put_slice(&mut edits, value));
        }
    };
    let mut coming = new;
    let mut place = 0;
    while let Some((name, values)) = old.get(place) {
        match coming.split_first() {
            Some(((new_name, new_values), rest)) if new_name == name => {
                if let Some((removed, added)) = difference(values, new_values) {
                    put(EditKind::Changed, place, name, &removed, &added);
                }
                coming = rest;
                place += 1;
            }
            Some(((new_name, new_values), rest))
                if coming.iter().any(|(later, _)| later == name) =>
            {
                put(EditKind::New, place, new_name, &[], &slices(new_values));
                coming = rest;
            }
            _ => {
                put(EditKind::Gone, place, name, values, &[]);
                place += 1;
            }
        }
    }
    for (name, values) in coming {
        put(EditKind::New, place, name, &[], &slices(values));
    }
    put_varint(out, count);
    out.extend_from_slice(&edits);
}

fn slices(values: &[Vec<u8>]) -> Vec<&[u8]> {
    values.iter().map(Vec::as_slice).collect()
}

/// The values that go and those that come behind the rest; `None` if the two are equal.
fn difference<'v>(old: &[&'v [u8]], new: &'v [Vec<u8>]) -> Option<(Slices<'v>, Slices<'v>)> {
    if old.len() == new.len() && old.iter().zip(new).all(|(old, new)| old == new) {
        return None;
    }
    let new = slices(new);
    let missing_in = |values: &[&'v [u8]], others: &[&'v [u8]]| -> Vec<&'v [u8]> {
        let values = values.iter().copied();
        if others.len() <= COMPARED_VALUES_MAX {
            return values.filter(|value| !others.contains(value)).collect();
        }
        let others: HashSet<&[u8]> = others.iter().copied().collect();
        values.filter(|value| !others.contains(value)).collect()
    };
    let (removed, added) = (missing_in(old, &new), missing_in(&new, old));
    // The rest has to stay in its order, and new values have to come last; else all are written again.
    let kept = old.len() - removed.len();
    let stays = kept + added.len() == new.len()
        && new.ends_with(&added)
        && missing_in(old, &removed).iter().eq(new.iter().take(kept));
    match stays {
        true => Some((removed, added)),
        false => Some((old.to_vec(), new)),
    }
}

/// Reads edits; those behind each other are at ascending places.
pub(super) fn read_edits(rest: &mut &[u8]) -> Result<Vec<AttributeEdit>, RecordError> {
    let count = varint(rest).ok_or(RecordError::Length)?;
    let mut edits = Vec::new();
    for _ in 0..count {
        let (kind, after) = rest.split_first().ok_or(RecordError::Length)?;
        *rest = after;
        let kind = match kind {
            0 => EditKind::Changed,
            1 => EditKind::Gone,
            2 => EditKind::New,
            _ => return Err(RecordError::Length),
        };
        let place = varint(rest).ok_or(RecordError::Length)?;
        let name = text(rest)?.to_owned();
        let (removed, added) = (read_values(rest)?, read_values(rest)?);
        edits.push(AttributeEdit { kind, name, place, removed, added });
    }
    Ok(edits)
}

fn read_values(rest: &mut &[u8]) -> Result<Vec<Vec<u8>>, RecordError> {
    let count = varint(rest).ok_or(RecordError::Length)?;
    let mut values = Vec::new();
    for _ in 0..count {
        values.push(slice(rest).ok_or(RecordError::Length)?.to_vec());
    }
    Ok(values)
}

/// Does the edits to the attributes that they were made for.
pub(super) fn edit(
    attributes: Vec<Attribute>,
    edits: &[AttributeEdit],
) -> Result<Vec<Attribute>, Error> {
    let misplaced = || Error::damaged("a change of the feed is not one of the entry that it names");
    let (mut out, mut place) = (Vec::with_capacity(attributes.len()), 0);
    let mut old = attributes.into_iter();
    for edit in edits {
        while place < edit.place {
            out.push(old.next().ok_or_else(misplaced)?);
            place += 1;
        }
        if edit.kind == EditKind::New {
            out.push((edit.name.clone(), edit.added.clone()));
            continue;
        }
        let (name, mut values) =
            old.next().filter(|(name, _)| *name == edit.name).ok_or_else(misplaced)?;
        place += 1;
        for value in &edit.removed {
            let at = values.iter().position(|found| found == value).ok_or_else(misplaced)?;
            values.remove(at);
        }
        values.extend_from_slice(&edit.added);
        if edit.kind == EditKind::Changed {
            out.push((name, values));
        }
    }
    out.extend(old);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Entry, EntryId};
    use proptest::prelude::*;

    /// Few names and values, so that they meet, repeat and change places.
    fn attributes() -> impl Strategy<Value = Vec<Attribute>> {
        let value = prop::collection::vec(0..4u8, 0..2);
        let values = prop::collection::vec(value, 0..24);
        prop::collection::vec(("[a-d]", values), 0..7)
    }

    proptest! {
        #[test]
        fn the_edits_of_two_lists_make_one_of_the_other(old in attributes(), new in attributes()) {
            let entry = Entry { attributes: old.clone(), ..Entry::default() };
            let record = entry.encode(EntryId(1), EntryId::ROOT, &[]).unwrap();
            let mut bytes = Vec::new();
            put_edits(&mut bytes, &EntryRef::decode(EntryId(1), &record).unwrap(), &new);
            let mut rest = bytes.as_slice();
            let edits = read_edits(&mut rest).unwrap();
            prop_assert!(rest.is_empty());
            prop_assert_eq!(edits.is_empty(), old == new);
            prop_assert_eq!(edit(old, &edits).unwrap(), new);
        }

        #[test]
        fn edits_of_another_entry_are_refused_or_done(
            old in attributes(), new in attributes(), other in attributes(),
        ) {
            let entry = Entry { attributes: old, ..Entry::default() };
            let record = entry.encode(EntryId(1), EntryId::ROOT, &[]).unwrap();
            let mut bytes = Vec::new();
            put_edits(&mut bytes, &EntryRef::decode(EntryId(1), &record).unwrap(), &new);
            let edits = read_edits(&mut bytes.as_slice()).unwrap();
            // No panic.
            let _ = edit(other, &edits);
        }
    }
}
