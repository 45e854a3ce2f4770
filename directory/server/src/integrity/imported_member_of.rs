//! Values of `memberOf` in an import: it is worked out here, so the values of another server are only
//! compared with the groups when all of them are in.

use super::Membership;
use crate::failure::Result;
use crate::limits::{DISAGREEMENTS_KEPT_MAX, IMPORTED_MEMBER_OF_MAX};
use crate::state::Snapshot;
use keyway_codec::ldif::Lines;
use keyway_schema::operational::MEMBER_OF;
use keyway_schema::{EntryName, base};
use keyway_store::{EntryId, Names, View};
use std::cell::RefCell;
use std::collections::HashMap;

/// An entry that says it is in a group which does not have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement {
    /// The entry.
    pub dn: String,
    /// The group.
    pub group: String,
}

/// The groups that imported entries name in `memberOf`.
#[derive(Default)]
pub(crate) struct ImportedMemberOf {
    groups: Vec<String>,
    by_text: HashMap<String, usize>,
    entries: Vec<(String, Vec<usize>)>,
    /// How many are kept.
    kept: usize,
    /// How many are not, because there are so many.
    pub unchecked: u64,
}

impl ImportedMemberOf {
    /// Takes an entry's values of `memberOf` out of its lines.
    pub fn take(&mut self, dn: &str, lines: &mut Lines) {
        let mut groups = Vec::new();
        lines.retain(|(description, value)| {
            let is_member_of = base(description).eq_ignore_ascii_case(MEMBER_OF);
            if is_member_of {
                groups.push(String::from_utf8_lossy(value).into_owned());
            }
            !is_member_of
        });
        if groups.is_empty() {
            return;
        }
        if self.kept + groups.len() > IMPORTED_MEMBER_OF_MAX {
            self.unchecked += groups.len() as u64;
            return;
        }
        self.kept += groups.len();
        let places = groups.into_iter().map(|group| self.place(group)).collect();
        self.entries.push((dn.to_owned(), places));
    }

    fn place(&mut self, group: String) -> usize {
        let next = self.groups.len();
        let place = *self.by_text.entry(group.clone()).or_insert(next);
        if place == next {
            self.groups.push(group);
        }
        place
    }

    /// How many can be checked.
    pub fn len(&self) -> usize {
        self.kept
    }
}

impl Snapshot {
    /// How many of these values the groups do not bear out, and the first of them. Groups in groups count.
    ///
    /// # Errors
    /// The store's.
    pub fn disagreements(
        &self,
        view: View<'_>,
        imported_member_of: &ImportedMemberOf,
    ) -> Result<(u64, Vec<Disagreement>)> {
        let names = RefCell::new(Names::new());
        let membership = Membership { snapshot: self, view, names: &names, nested: true };
        let ids: Vec<Option<EntryId>> = imported_member_of
            .groups
            .iter()
            .map(|group| match EntryName::parse(&self.schema, group) {
                Ok(name) => self.entry_named(view, &name),
                Err(_) => Ok(None),
            })
            .collect::<Result<_>>()?;
        let (mut count, mut first) = (0, Vec::new());
        for (dn, places) in &imported_member_of.entries {
            for place in places {
                let is_in = match ids.get(*place).copied().flatten() {
                    Some(group) => membership.is_in(dn, group)? != Some(false),
                    None => false,
                };
                if is_in {
                    continue;
                }
                count += 1;
                if first.len() < DISAGREEMENTS_KEPT_MAX {
                    let group = imported_member_of.groups.get(*place).cloned().unwrap_or_default();
                    first.push(Disagreement { dn: dn.clone(), group });
                }
            }
        }
        Ok((count, first))
    }
}
