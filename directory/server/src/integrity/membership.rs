//! Which groups an entry is in, and who is in a group.

use super::reference_attribute::{ReferenceAttribute, normal_dn};
use super::resolve::Resolver;
use super::setting::MemberOf;
use crate::directory::Directory;
use crate::failure::Result;
use crate::limits::{MEMBER_IDS_MAX, MEMBERSHIPS_MAX};
use crate::state::Snapshot;
use keyway_schema::EntryName;
use keyway_store::{EntryId, EntryRef, Names, View};
use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};

/// The attribute that `memberUid` speaks of.
const UID: &str = "uid";

/// The groups that an entry is in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Groups {
    /// Ascending.
    pub ids: Vec<EntryId>,
    /// Whether these are all; not if there are more than [`MEMBERSHIPS_MAX`].
    pub complete: bool,
}

impl Groups {
    /// Whether this group is among them.
    pub fn contain(&self, group: EntryId) -> bool {
        self.ids.binary_search(&group).is_ok()
    }
}

/// Asks one state of the store for groups.
#[derive(Clone, Copy)]
pub(crate) struct Membership<'a> {
    pub snapshot: &'a Snapshot,
    pub view: View<'a>,
    pub names: &'a RefCell<Names>,
    /// Whether the groups of a group count as well.
    pub nested: bool,
}

impl Membership<'_> {
    /// The groups of the entry of this DN, by their DN-valued attributes; a uid may be borne by
    /// several, so values that name by uid give no rights.
    ///
    /// # Errors
    /// The store's.
    pub fn groups_of_name(self, dn: &str) -> Result<Groups> {
        let mut found = BTreeSet::new();
        self.follow(dn, &mut found)?;
        self.finish(found)
    }

    /// The groups of an entry, by all attributes that the settings name.
    ///
    /// # Errors
    /// The store's.
    pub fn groups_of_entry(self, dn: &str, entry: &EntryRef<'_>) -> Result<Groups> {
        let mut found = BTreeSet::new();
        self.follow(dn, &mut found)?;
        for attribute in self.member_attributes().filter(|attribute| !attribute.names_by_dn()) {
            for normal in self.uids(attribute, entry) {
                self.listed(attribute, &normal, &mut found)?;
            }
        }
        self.finish(found)
    }

    /// Whether the entry of this DN is in a group, as [`Membership::groups_of_name`] has it;
    /// `None` if there are too many groups to tell.
    ///
    /// # Errors
    /// The store's.
    pub fn is_in(self, dn: &str, group: EntryId) -> Result<Option<bool>> {
        if self.is_named_by(group, dn, None)? {
            return Ok(Some(true));
        }
        if !self.nested {
            return Ok(Some(false));
        }
        let groups = self.groups_of_name(dn)?;
        let is_in = groups.contain(group);
        Ok((is_in || groups.complete).then_some(is_in))
    }

    /// Whether a group itself names the entry of this DN, or with the entry one of its uids.
    ///
    /// # Errors
    /// The store's.
    pub fn is_named_by(
        self,
        group: EntryId,
        dn: &str,
        entry: Option<&EntryRef<'_>>,
    ) -> Result<bool> {
        let Some(dn) = normal_dn(&self.snapshot.schema, dn) else { return Ok(false) };
        for attribute in self.member_attributes() {
            let normals: Vec<Vec<u8>> = match (attribute.names_by_dn(), entry) {
                (true, _) => vec![attribute.normal(&dn)],
                (false, Some(entry)) => self.uids(attribute, entry).collect(),
                (false, None) => continue,
            };
            for normal in normals {
                let key = self.snapshot.indexes.equality(&attribute.name, &normal);
                if let Some(key) = key
                    && self.view.contains(&key, group)?
                {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// The uids of an entry, as they are in groups.
    fn uids(
        self,
        attribute: &ReferenceAttribute,
        entry: &EntryRef<'_>,
    ) -> impl Iterator<Item = Vec<u8>> {
        let schema = &self.snapshot.schema;
        entry.values(UID).filter_map(move |uid| attribute.normalize(schema, uid))
    }

    fn member_attributes(&self) -> impl Iterator<Item = &ReferenceAttribute> {
        self.snapshot.integrity.members.iter()
    }

    /// Adds the groups that name this DN.
    fn follow(self, dn: &str, found: &mut BTreeSet<EntryId>) -> Result<()> {
        let Some(normal) = normal_dn(&self.snapshot.schema, dn) else { return Ok(()) };
        for attribute in self.member_attributes().filter(|attribute| attribute.names_by_dn()) {
            self.listed(attribute, &attribute.normal(&normal), found)?;
        }
        Ok(())
    }

    fn listed(
        self,
        attribute: &ReferenceAttribute,
        normal: &[u8],
        found: &mut BTreeSet<EntryId>,
    ) -> Result<()> {
        let Some(key) = self.snapshot.indexes.equality(&attribute.name, normal) else {
            return Ok(());
        };
        for id in self.view.postings(&key, EntryId::ROOT)? {
            if found.len() > MEMBERSHIPS_MAX {
                break;
            }
            found.insert(id?);
        }
        Ok(())
    }

    /// Adds the groups of the groups, each once, so that circles end.
    fn finish(self, mut found: BTreeSet<EntryId>) -> Result<Groups> {
        let mut waiting: Vec<EntryId> = match self.nested {
            true => found.iter().copied().collect(),
            false => Vec::new(),
        };
        while let Some(group) = waiting.pop()
            && found.len() <= MEMBERSHIPS_MAX
        {
            let dn = self.view.dn(group, &mut self.names.borrow_mut())?;
            let mut above = BTreeSet::new();
            self.follow(&dn.unwrap_or_default(), &mut above)?;
            waiting.extend(above.into_iter().filter(|id| found.insert(*id)));
        }
        let complete = found.len() <= MEMBERSHIPS_MAX;
        Ok(Groups { ids: found.into_iter().take(MEMBERSHIPS_MAX).collect(), complete })
    }
}

impl Directory {
    /// How many entries a group has as members, with those of the groups in it; `None` if it is
    /// not there, or they are more than can be counted at once.
    ///
    /// # Errors
    /// `invalidDNSyntax`, or the store's.
    pub fn members_of(&self, group: &str) -> Result<Option<usize>> {
        let name = EntryName::parse(&self.snapshot().schema, group)?;
        let read = self.store.read()?;
        let Some(group) = self.snapshot().entry_named(read.view(), &name)? else { return Ok(None) };
        let members = self.snapshot().members(read.view(), group, MEMBER_IDS_MAX)?;
        Ok(members.map(|ids| ids.into_iter().collect::<HashSet<_>>().len()))
    }
}

impl Snapshot {
    /// All that a group of which `memberOf` could speak has as members, unsorted; those of the
    /// groups in it as well if `memberOf` shows nested ones. `None` if they are more than `max`.
    ///
    /// # Errors
    /// The store's.
    pub fn members(
        &self,
        view: View<'_>,
        group: EntryId,
        max: usize,
    ) -> Result<Option<Vec<EntryId>>> {
        let nested = self.integrity.member_of == MemberOf::Nested;
        let mut resolver = Resolver::new(self, view);
        let (mut ids, mut waiting, mut seen) = (Vec::new(), vec![group], HashSet::from([group]));
        while let Some(group) = waiting.pop() {
            let Some(entry) = view.entry(group)? else { continue };
            if ids.len() + self.count_of(&entry) > max {
                return Ok(None);
            }
            let mut take = |attribute: &ReferenceAttribute, value: &[u8]| -> Result<()> {
                let before = ids.len();
                match attribute.names_by_dn() {
                    true => ids.extend(resolver.id(value)?),
                    false => self.bearers(view, value, max, &mut ids)?,
                }
                for id in ids.get(before..).unwrap_or_default() {
                    if nested && self.is_group(view, *id)? && seen.insert(*id) {
                        waiting.push(*id);
                    }
                }
                Ok(())
            };
            let attribute_of = |stored: &str| {
                self.integrity.members.iter().find(|attribute| attribute.means(stored))
            };
            for (stored, values) in entry.attributes() {
                let Some(attribute) = attribute_of(stored) else { continue };
                for value in values {
                    take(attribute, value)?;
                }
            }
            for large in entry.large() {
                let Some(attribute) = attribute_of(large.name) else { continue };
                for value in view.large_values(group, &large)? {
                    take(attribute, value?.1)?;
                }
            }
            if ids.len() > max {
                return Ok(None);
            }
        }
        Ok(Some(ids))
    }

    /// How many members an entry names.
    fn count_of(&self, entry: &EntryRef<'_>) -> usize {
        let small = entry.attributes().map(|(name, values)| (name, values.len()));
        let large = entry.large().map(|large| (large.name, large.count as usize));
        let members = small.chain(large).filter(|(name, _)| self.integrity.is_membership(name));
        members.map(|(_, count)| count).sum()
    }

    /// How many members a group names itself.
    ///
    /// # Errors
    /// The store's.
    pub fn member_count(&self, view: View<'_>, group: EntryId) -> Result<usize> {
        Ok(view.entry(group)?.map_or(0, |entry| self.count_of(&entry)))
    }

    /// Whether everything that `memberOf` could say of a member can be found by an index.
    pub fn finds_members(&self) -> bool {
        let by_uid = self.integrity.members.iter().any(|attribute| !attribute.names_by_dn());
        !by_uid || self.indexes.equality(UID, b"").is_some()
    }

    fn is_group(&self, view: View<'_>, id: EntryId) -> Result<bool> {
        let Some(entry) = view.entry(id)? else { return Ok(false) };
        Ok(self.count_of(&entry) > 0)
    }

    /// The entries with this uid.
    fn bearers(
        &self,
        view: View<'_>,
        uid: &[u8],
        max: usize,
        ids: &mut Vec<EntryId>,
    ) -> Result<()> {
        let rule = self.schema.attribute(UID).and_then(|attribute| attribute.equality());
        let normal = rule.and_then(|rule| self.schema.normalize(rule, uid));
        let key = normal.and_then(|normal| self.indexes.equality(UID, &normal));
        let Some(key) = key else { return Ok(()) };
        for id in view.postings(&key, EntryId::ROOT)?.take(max.saturating_sub(ids.len()) + 1) {
            ids.push(id?);
        }
        Ok(())
    }
}
