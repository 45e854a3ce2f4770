//! The stored form of a change.

use super::edits::{AttributeEdit, read_edits};
use crate::parts::{RecordError, slice, text, varint};
use crate::record::read_body;
use crate::{Entry, EntryId, LargeEdit, ValueKey};

/// One change of an entry, or of a row of `meta_put`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// An entry was added.
    Inserted(Whole),
    /// An entry was deleted; this is what it was.
    Deleted(Whole),
    /// Relative name or attributes of an entry were changed.
    Updated(Updated),
    /// An entry was moved, with all below it.
    Moved(Moved),
    /// A row was put or removed.
    Meta(MetaChange),
}

/// All of an entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Whole {
    /// Its number.
    pub id: EntryId,
    /// The entry above it.
    pub parent: EntryId,
    /// The name of the entry above it, as it was then.
    pub above: String,
    /// By which component it hangs there.
    pub component: Vec<u8>,
    /// Its own name and its attributes; all values of a large one are *added*.
    pub entry: Entry,
}

/// How an entry was changed in its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Updated {
    /// Its number.
    pub id: EntryId,
    /// The first value of the attribute of [`crate::Options::identity`].
    pub identity: Vec<u8>,
    /// The name of the entry above it, as it was then.
    pub above: String,
    /// Its relative name before and after.
    pub rdn: [String; 2],
    /// Attributes that differ.
    pub attributes: Vec<AttributeEdit>,
    /// Large attributes that the entry has afterwards, and those that it had and that differ.
    pub large: Vec<LargeValuesEdit>,
}

/// How a large attribute was changed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LargeValuesEdit {
    /// The attribute's name.
    pub name: String,
    /// Whether the change has spoken of it; one that it has not gone with all its values.
    pub is_named: bool,
    /// Values that it has no more.
    pub removed: Vec<(ValueKey, Vec<u8>)>,
    /// Values that it has now.
    pub added: Vec<(ValueKey, Vec<u8>)>,
}

/// How an entry was moved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Moved {
    /// Its number.
    pub id: EntryId,
    /// The first value of the attribute of [`crate::Options::identity`].
    pub identity: Vec<u8>,
    /// Its relative name, which an [`Updated`] changes.
    pub rdn: String,
    /// The entry above it before and after.
    pub parent: [EntryId; 2],
    /// The name of the entry above it before and after.
    pub above: [String; 2],
    /// By which component it hung and hangs there.
    pub component: [Vec<u8>; 2],
}

/// How a row was changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MetaChange {
    /// The row's name.
    pub name: String,
    /// Its values before and after; `None` where there was none.
    pub value: [Option<Vec<u8>>; 2],
}

pub(super) const INSERTED: u8 = 1;
pub(super) const DELETED: u8 = 2;
pub(super) const UPDATED: u8 = 3;
pub(super) const MOVED: u8 = 4;
pub(super) const META: u8 = 5;

impl Change {
    /// Reads one from the front of `rest`.
    pub(super) fn read(rest: &mut &[u8]) -> Result<Change, RecordError> {
        let (kind, after) = rest.split_first().ok_or(RecordError::Length)?;
        *rest = after;
        Ok(match *kind {
            INSERTED => Change::Inserted(read_whole(rest)?),
            DELETED => Change::Deleted(read_whole(rest)?),
            UPDATED => Change::Updated(read_updated(rest)?),
            MOVED => Change::Moved(Moved {
                id: read_id(rest)?,
                identity: bytes(rest)?,
                rdn: string(rest)?,
                parent: [read_id(rest)?, read_id(rest)?],
                above: [string(rest)?, string(rest)?],
                component: [bytes(rest)?, bytes(rest)?],
            }),
            META => Change::Meta(MetaChange {
                name: string(rest)?,
                value: [read_option(rest)?, read_option(rest)?],
            }),
            _ => return Err(RecordError::Length),
        })
    }

    /// The entry that it is one of; `None` for a row.
    pub fn entry_id(&self) -> Option<EntryId> {
        match self {
            Change::Inserted(whole) | Change::Deleted(whole) => Some(whole.id),
            Change::Updated(updated) => Some(updated.id),
            Change::Moved(moved) => Some(moved.id),
            Change::Meta(_) => None,
        }
    }
}

fn read_whole(rest: &mut &[u8]) -> Result<Whole, RecordError> {
    let (id, above, component) = (read_id(rest)?, string(rest)?, bytes(rest)?);
    let record = slice(rest).ok_or(RecordError::Length)?;
    let found = read_body(record)?;
    let mut entry = found.to_entry();
    entry.large = Vec::new();
    for _ in 0..varint(rest).ok_or(RecordError::Length)? {
        let (name, added) = (string(rest)?, read_values(rest)?);
        entry.large.push(LargeEdit { name, removed: Vec::new(), added });
    }
    Ok(Whole { id, parent: found.parent(), above, component, entry })
}

fn read_updated(rest: &mut &[u8]) -> Result<Updated, RecordError> {
    let (id, identity, above) = (read_id(rest)?, bytes(rest)?, string(rest)?);
    let rdn = [string(rest)?, string(rest)?];
    let attributes = read_edits(rest)?;
    let mut large = Vec::new();
    for _ in 0..varint(rest).ok_or(RecordError::Length)? {
        let (name, is_named) = (string(rest)?, varint(rest).ok_or(RecordError::Length)? != 0);
        let (removed, added) = (read_values(rest)?, read_values(rest)?);
        large.push(LargeValuesEdit { name, is_named, removed, added });
    }
    Ok(Updated { id, identity, above, rdn, attributes, large })
}

fn read_id(rest: &mut &[u8]) -> Result<EntryId, RecordError> {
    varint(rest).map(EntryId).ok_or(RecordError::Length)
}

fn bytes(rest: &mut &[u8]) -> Result<Vec<u8>, RecordError> {
    slice(rest).map(<[u8]>::to_vec).ok_or(RecordError::Length)
}

fn string(rest: &mut &[u8]) -> Result<String, RecordError> {
    text(rest).map(str::to_owned)
}

fn read_option(rest: &mut &[u8]) -> Result<Option<Vec<u8>>, RecordError> {
    match varint(rest).ok_or(RecordError::Length)? {
        0 => Ok(None),
        _ => bytes(rest).map(Some),
    }
}

fn read_values(rest: &mut &[u8]) -> Result<Vec<(ValueKey, Vec<u8>)>, RecordError> {
    let count = varint(rest).ok_or(RecordError::Length)?;
    let mut values = Vec::new();
    for _ in 0..count {
        let (key, after) = rest.split_first_chunk().ok_or(RecordError::Length)?;
        *rest = after;
        values.push((ValueKey(*key), bytes(rest)?));
    }
    Ok(values)
}
