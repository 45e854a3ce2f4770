//! Where entries are and were, by the rules of the schema.

use keyway_schema::{EntryName, Schema};
use keyway_server::{DescribedChange, EntryChange, Operation};

/// The names of an entry before and after a change, as far as it had one and they are understood.
#[derive(Clone)]
pub struct Names {
    pub before: Option<EntryName>,
    pub after: Option<EntryName>,
}

impl Names {
    pub fn of(schema: &Schema, entry: &EntryChange) -> Names {
        let name = EntryName::parse(schema, &entry.dn).ok();
        match &entry.operation {
            Operation::Add(_) => Names { before: None, after: name },
            Operation::Delete(_) => Names { before: name, after: None },
            Operation::Modify(_) => Names { before: name.clone(), after: name },
            Operation::ModifyDn(renaming) => {
                Names { before: name, after: EntryName::parse(schema, &renaming.new_dn).ok() }
            }
        }
    }

    /// Whether the entry had or got this name.
    pub fn have(&self, name: &EntryName) -> bool {
        [&self.before, &self.after].into_iter().flatten().any(|one| is_same(one, name))
    }

    /// The name that an entry gets that is at or below this one, if this one has got another.
    pub fn follow(&self, name: &EntryName) -> Option<EntryName> {
        let (before, after) = (self.before.as_ref()?, self.after.as_ref()?);
        if !name.is_within(before) || is_same(before, after) {
            return None;
        }
        let below = name.parts.len().checked_sub(before.parts.len())?;
        let mut parts = name.parts.get(..below)?.to_vec();
        parts.extend_from_slice(&after.parts);
        Some(EntryName { parts })
    }
}

/// Whether two names are one entry's.
pub fn is_same(one: &EntryName, other: &EntryName) -> bool {
    one.parts.len() == other.parts.len() && one.is_within(other)
}

/// Whether a change is one of an entry that is in this subtree or was, or takes all of the subtree elsewhere. A name
/// that the schema does not understand any more might be one of it.
pub fn is_of_subtree(schema: &Schema, top: &EntryName, change: &DescribedChange) -> bool {
    let Some(entry) = change.entry() else { return false };
    let is_renamed = matches!(entry.operation, Operation::ModifyDn(_));
    let dns = [Some(entry.dn.as_str()), entry.dn_after().filter(|_| is_renamed)];
    dns.into_iter().flatten().any(|dn| match EntryName::parse(schema, dn) {
        Ok(name) => name.is_within(top) || is_renamed && top.is_within(&name),
        Err(_) => true,
    })
}
