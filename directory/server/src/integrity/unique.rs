//! Values that two entries may not share.

use super::unique_set::UniqueSet;
use crate::access::{Rights, View as Permissions};
use crate::candidate::Candidate;
use crate::evaluate::{Evaluator, Truth};
use crate::failure::{Failure, Result};
use crate::naming::{self};
use crate::state::Snapshot;
use crate::write::LargeDraft;
use keyway_codec::message::ResultCode;
use keyway_schema::operational::ENTRY_UUID;
use keyway_schema::{AttributeType, EntryAttributes, EntryName, base};
use keyway_store::{EntryId, Key, Names, View};
use std::borrow::Cow;
use std::cell::RefCell;

impl UniqueSet {
    /// Whether an entry counts.
    fn counts(&self, candidate: &Candidate<'_, '_>) -> Result<bool> {
        let Some(filter) = &self.filter else { return Ok(true) };
        let unrestricted = Permissions::unrestricted();
        let evaluator = Evaluator::search(&candidate.snapshot().schema, &unrestricted);
        Ok(evaluator.matches(filter, candidate)? == Truth::True)
    }
}

/// An entry that is about to be written.
#[derive(Clone, Copy)]
pub(crate) struct Proposed<'a> {
    /// Its number, if it has one already.
    pub id: Option<EntryId>,
    /// Its name.
    pub name: &'a EntryName,
    /// Its name up to now, if it had one.
    pub was: Option<&'a EntryName>,
    /// The attributes that it will have.
    pub attributes: &'a EntryAttributes,
    /// Its attributes with many values, and how they change.
    pub large: &'a [LargeDraft],
    /// Ranges of which it is still to get a number.
    pub numbers: &'a [usize],
    /// Who wants it: he is told whose a value is if he may read that entry.
    pub rights: &'a Permissions,
}

impl Snapshot {
    /// Whether any value must be unique.
    pub fn has_unique(&self) -> bool {
        !self.integrity.unique.is_empty()
    }

    /// Whether the first attribute is the second, or a subtype of it.
    pub fn is_kind_of(&self, name: &str, above: &str) -> bool {
        let (name, above) = (self.schema.attribute(name), self.schema.attribute(above));
        let (Some(name), Some(above)) = (name, above) else { return false };
        self.schema.family(above).any(|one| one == name)
    }

    /// Checks that no other entry has a value that must be unique: of all attributes where the entry
    /// was not before, elsewhere of those that change.
    ///
    /// # Errors
    /// `constraintViolation` with the attribute and, for those who may read it, the entry; or the
    /// store's.
    pub fn check_unique(
        &self,
        view: View<'_>,
        proposed: &Proposed<'_>,
        changes: impl Fn(&str) -> bool,
    ) -> Result<()> {
        for set in &self.integrity.unique {
            let scope = match &set.below {
                Some(below) if !proposed.name.is_within(below) => continue,
                Some(below) => self.entry_named(view, below)?.into_iter().collect(),
                None => naming::tops(view, &self.shared.contexts())?,
            };
            let scope: Vec<Key> = scope.into_iter().map(Key::subtree).collect();
            if !set.counts(&Candidate::unstored(
                self,
                &proposed.name.text(),
                proposed.attributes,
            ))? {
                continue;
            }
            let is_within =
                |was: &EntryName| set.below.as_ref().is_none_or(|top| was.is_within(top));
            let was_within = proposed.was.is_some_and(is_within);
            let was_here = was_within && self.counted(view, set, proposed.id)?;
            let is_given = |name: &str| !self.numbered(proposed.numbers).any(|one| one == name);
            let asked = set
                .attributes
                .iter()
                .filter(|(name, _)| is_given(name) && (!was_here || changes(name)));
            for (name, rule) in asked {
                for value in self.values_of(view, proposed, name, was_here)? {
                    let normal = self.schema.normalize(*rule, &value);
                    let key = normal.and_then(|normal| self.indexes.equality(name, &normal));
                    let Some(key) = key else { continue };
                    if let Some(other) = self.another(view, &key, &scope, set, proposed.id)? {
                        return Err(self.taken(view, proposed, set, name, other)?);
                    }
                }
            }
        }
        Ok(())
    }

    /// Checks that no entry has the `entryUUID` that a new one is to have.
    ///
    /// # Errors
    /// `constraintViolation`, or the store's.
    pub fn require_free_uuid(&self, view: View<'_>, attributes: &EntryAttributes) -> Result<()> {
        let given = attributes.iter().find(|(name, _)| name == ENTRY_UUID);
        let Some(given) = given.and_then(|(_, values)| values.first()) else { return Ok(()) };
        let rule = self.schema.attribute(ENTRY_UUID).and_then(AttributeType::equality);
        let normal = |value: &[u8]| self.schema.normalize(rule?, value);
        let Some(wanted) = normal(given) else { return Ok(()) };
        let other = match self.indexes.equality(ENTRY_UUID, &wanted) {
            Some(key) => view.postings(&key, EntryId::ROOT)?.next().transpose()?,
            // Not many settings lack this index.
            None => {
                let mut found = None;
                for entry in view.entries(EntryId::ROOT)? {
                    let (id, entry) = entry?;
                    if entry.values(ENTRY_UUID).any(|value| normal(value).as_ref() == Some(&wanted))
                    {
                        found = Some(id);
                        break;
                    }
                }
                found
            }
        };
        let Some(other) = other else { return Ok(()) };
        let dn = view.dn(other, &mut Names::new())?.unwrap_or_default();
        let text = format!("entry \"{dn}\" has this {ENTRY_UUID} already");
        Err(Failure::new(ResultCode::ConstraintViolation, text))
    }

    /// The values of an attribute; of many, where the entry was before, those that are new.
    fn values_of<'v>(
        &self,
        view: View<'_>,
        proposed: &Proposed<'v>,
        name: &str,
        was_here: bool,
    ) -> Result<Vec<Cow<'v, [u8]>>> {
        let family: Vec<&str> = match self.schema.attribute(name) {
            Some(known) => self.schema.family(known).map(|member| member.name()).collect(),
            None => Vec::new(),
        };
        let is_meant = |stored: &str| family.contains(&base(stored));
        let meant = proposed.attributes.iter().filter(|(stored, _)| is_meant(stored));
        let values = meant.flat_map(|(_, values)| values);
        let mut values: Vec<_> = values.map(|value| Cow::Borrowed(value.as_slice())).collect();
        for large in proposed.large.iter().filter(|large| is_meant(&large.name)) {
            match was_here {
                true => values.extend(large.come().map(|value| Cow::Borrowed(value.as_slice()))),
                false => values.extend(large.values(view)?.into_iter().map(Cow::Owned)),
            }
        }
        Ok(values)
    }

    fn taken(
        &self,
        view: View<'_>,
        proposed: &Proposed<'_>,
        set: &UniqueSet,
        name: &str,
        other: EntryId,
    ) -> Result<Failure> {
        let names = RefCell::new(Names::new());
        let mut who = "another entry".to_owned();
        if let Some(entry) = view.entry(other)? {
            let candidate = Candidate::stored(self, other, entry, view, &names);
            if proposed.rights.may_something(Rights::READ, &candidate)? {
                who = format!("entry \"{}\"", candidate.dn()?);
            }
        }
        let scope = match &set.below {
            Some(below) => format!("below \"{}\"", below.text()),
            None => "everywhere".to_owned(),
        };
        let text = format!("attribute {name} must be unique {scope}, and {who} has this value");
        Ok(Failure::new(ResultCode::ConstraintViolation, text))
    }

    /// Whether an entry counted as it is in the store.
    fn counted(&self, view: View<'_>, set: &UniqueSet, id: Option<EntryId>) -> Result<bool> {
        if set.filter.is_none() {
            return Ok(true);
        }
        let Some(id) = id else { return Ok(false) };
        let Some(entry) = view.entry(id)? else { return Ok(false) };
        let names = RefCell::new(Names::new());
        set.counts(&Candidate::stored(self, id, entry, view, &names))
    }

    /// An entry of the scope in the list that counts and is not this one.
    fn another(
        &self,
        view: View<'_>,
        list: &Key,
        scope: &[Key],
        set: &UniqueSet,
        own: Option<EntryId>,
    ) -> Result<Option<EntryId>> {
        for id in view.postings(list, EntryId::ROOT)? {
            let id = id?;
            if Some(id) == own {
                continue;
            }
            for top in scope {
                if view.contains(top, id)? && self.counted(view, set, Some(id))? {
                    return Ok(Some(id));
                }
            }
        }
        Ok(None)
    }
}
