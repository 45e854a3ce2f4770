//! Changes of the feed as LDAP has them, for people and programs.

use super::note::{ChangeNote, Reason};
use keyway_store::EntryId;

/// A change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DescribedChange {
    /// The commit that it is in.
    pub position: u64,
    /// Which one it is among the changes of that commit, from 0.
    pub index: u64,
    /// Its number; those of all commits are counted together, from 1.
    pub number: u64,
    /// Who has made it, when and why, if that was noted.
    pub note: Option<ChangeNote>,
    /// The change itself.
    pub change: RowOrEntry,
}

/// The thing that was changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RowOrEntry {
    /// A row that all entries share, by its name.
    Row(String),
    /// An entry.
    Entry(EntryChange),
}

/// The change of an entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EntryChange {
    /// The entry's number in the store.
    pub id: EntryId,
    /// The entry's `entryUUID`; empty if it had none.
    pub uuid: String,
    /// The entry's name before; that of an entry that was added is the name that it has got.
    pub dn: String,
    /// What was done.
    pub operation: Operation,
}

/// A change in LDAP's terms (RFC 4511 §§ 4.6 to 4.9).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Operation {
    /// The entry was added, with these attributes.
    Add(Vec<AttributeValues>),
    /// It was deleted, and had these.
    Delete(Vec<AttributeValues>),
    /// Attributes were changed.
    Modify(Vec<AttributeChange>),
    /// It was renamed or moved.
    ModifyDn(Renaming),
}

/// A new name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Renaming {
    /// The relative name, which may be what it was.
    pub new_rdn: String,
    /// Whether values of the relative name before it went with it.
    pub delete_old_rdn: bool,
    /// Whether the entry has got values by the new relative name, which it did not have before.
    pub brings_values: bool,
    /// The name of the entry above, if it is another one than before.
    pub new_superior: Option<String>,
    /// The whole name.
    pub new_dn: String,
    /// Changes of attributes that the new name does not bring about.
    pub attributes: Vec<AttributeChange>,
}

/// Values of an attribute.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AttributeValues {
    /// The attribute's name.
    pub name: String,
    /// Its values.
    pub values: Values,
}

/// How an attribute was changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AttributeChange {
    /// The attribute's name.
    pub name: String,
    /// How much of it.
    pub extent: Extent,
    /// Values that it has no more.
    pub removed: Values,
    /// Values that it has now.
    pub added: Values,
}

/// How much of an attribute was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// Some values went, some came; there may be others.
    Some,
    /// All went, and others came.
    Replaced,
    /// All went.
    Gone,
}

/// Values, or how many there are of an attribute whose values are not to be shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Values {
    /// The values.
    Shown(Vec<Vec<u8>>),
    /// Those of a password or a key: how many.
    Hidden(usize),
}

impl DescribedChange {
    /// A word for what was changed and how.
    pub fn kind(&self) -> &'static str {
        // Rows have the names that those give them who write them.
        match &self.change {
            RowOrEntry::Row(name) if name == "schema" || name.starts_with("schema-") => "schema",
            RowOrEntry::Row(name) if name == "naming-contexts" => "naming-contexts",
            RowOrEntry::Row(name) if name.starts_with("next-number ") => "number",
            RowOrEntry::Row(_) => "row",
            RowOrEntry::Entry(entry) => match entry.operation {
                Operation::Add(_) => "add",
                Operation::Delete(_) => "delete",
                Operation::Modify(_) => "modify",
                Operation::ModifyDn(_) => "modrdn",
            },
        }
    }

    /// That of an entry; `None` for a row.
    pub fn entry(&self) -> Option<&EntryChange> {
        match &self.change {
            RowOrEntry::Entry(entry) => Some(entry),
            RowOrEntry::Row(_) => None,
        }
    }

    /// Who has made it, or why if no client has asked for it: `by uid=ann,dc=example, connection 12, operation 3`.
    pub fn origin(&self) -> String {
        let Some(note) = &self.note else { return "by an unknown author".to_owned() };
        let by = match note.reason {
            Reason::Request if note.author.is_empty() => "a client without a name",
            Reason::Request => &note.author,
            Reason::Bind => "the server after a bind",
            Reason::Upgrade => "the server, which stored a password as new ones are",
            Reason::Import => "an import",
            Reason::Server => "the server",
        };
        match note.connection {
            0 => format!("by {by}"),
            connection => format!("by {by}, connection {connection}, operation {}", note.operation),
        }
    }
}

impl EntryChange {
    /// The entry's name after it; `None` if it is gone.
    pub fn dn_after(&self) -> Option<&str> {
        match &self.operation {
            Operation::Delete(_) => None,
            Operation::ModifyDn(renaming) => Some(&renaming.new_dn),
            Operation::Add(_) | Operation::Modify(_) => Some(&self.dn),
        }
    }
}

impl Values {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Values::Shown(values) => values.len(),
            Values::Hidden(count) => *count,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
