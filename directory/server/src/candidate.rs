//! An entry that is looked at: one from the store, or one that is not stored (root DSE, subschema, an entry
//! while it is changed).

use crate::access::Memo;
use crate::failure::Result;
use crate::integrity::{Groups, MemberOf, Membership};
use crate::large::holds;
use crate::state::Snapshot;
use keyway_codec::syntax::MatchingRule;
use keyway_schema::operational::{Computed, SUBSCHEMA_DN};
use keyway_schema::{EntryAttributes, EntryName};
use keyway_store::{EntryId, EntryRef, Large, LargeAttributes, LargeValues, Names, Values, View};
use std::cell::{OnceCell, RefCell};

/// Where an entry's attributes are.
#[derive(Clone, Copy)]
enum Body<'t> {
    Stored(EntryRef<'t>),
    Unstored(&'t EntryAttributes),
}

/// An entry with all that can be asked of it.
pub struct Candidate<'t, 'n> {
    snapshot: &'n Snapshot,
    id: EntryId,
    body: Body<'t>,
    /// Its attributes as they are to be seen, if not as they are stored.
    shown: Option<&'t EntryAttributes>,
    /// The tree it is in; others have no place in it.
    tree: Option<(View<'t>, &'n RefCell<Names>)>,
    dn: OnceCell<String>,
    /// The groups that `memberOf` shows.
    groups: OnceCell<Groups>,
    memo: Memo,
}

impl<'t, 'n> Candidate<'t, 'n> {
    /// An entry of the store.
    pub(crate) fn stored(
        snapshot: &'n Snapshot,
        id: EntryId,
        entry: EntryRef<'t>,
        view: View<'t>,
        names: &'n RefCell<Names>,
    ) -> Self {
        Candidate {
            snapshot,
            id,
            body: Body::Stored(entry),
            shown: None,
            tree: Some((view, names)),
            dn: OnceCell::new(),
            groups: OnceCell::new(),
            memo: Memo::default(),
        }
    }

    /// The same, but that its attributes are these beside large ones.
    #[must_use]
    pub(crate) fn showing(self, attributes: &'t EntryAttributes) -> Self {
        Candidate { shown: Some(attributes), ..self }
    }

    /// An entry that is in no tree and has nothing that is worked out.
    pub(crate) fn unstored(
        snapshot: &'n Snapshot,
        dn: &str,
        attributes: &'t EntryAttributes,
    ) -> Self {
        Candidate {
            snapshot,
            id: EntryId::ROOT,
            body: Body::Unstored(attributes),
            shown: None,
            tree: None,
            dn: OnceCell::from(dn.to_owned()),
            groups: OnceCell::new(),
            memo: Memo::default(),
        }
    }

    /// The directory that it is looked at in.
    pub(crate) fn snapshot(&self) -> &'n Snapshot {
        self.snapshot
    }

    /// The state of the tree that it is in.
    pub(crate) fn tree(&self) -> Option<View<'t>> {
        self.tree.map(|(view, _)| view)
    }

    /// Which access rules hold for it, as far as that was asked.
    pub(crate) fn memo(&self) -> &Memo {
        &self.memo
    }

    /// The entry above, if it is in the tree.
    pub(crate) fn parent(&self) -> Option<EntryId> {
        match self.body {
            Body::Stored(entry) => Some(entry.parent()),
            Body::Unstored(_) => None,
        }
    }

    /// Its number; [`EntryId::ROOT`] if it is not stored.
    pub fn id(&self) -> EntryId {
        self.id
    }

    /// Its stored attributes, in the order in which they were written.
    pub fn attributes(&self) -> BodyAttributes<'t> {
        match (self.shown, self.body) {
            (None, Body::Stored(entry)) => BodyAttributes::Stored(entry.attributes()),
            (Some(attributes), _) | (None, Body::Unstored(attributes)) => {
                BodyAttributes::Unstored(attributes.iter())
            }
        }
    }

    /// Those of its attributes whose values the store keeps apart.
    pub fn large(&self) -> LargeAttributes<'t> {
        match self.body {
            Body::Stored(entry) => entry.large(),
            Body::Unstored(_) => LargeAttributes::default(),
        }
    }

    /// The descriptions of all its stored attributes.
    pub(crate) fn descriptions(&self) -> impl Iterator<Item = &'t str> {
        let large = self.large().map(|large| large.name);
        self.attributes().map(|(name, _)| name).chain(large)
    }

    /// The values of one of its large attributes.
    ///
    /// # Errors
    /// The store's.
    pub(crate) fn large_values(&self, large: &Large<'_>) -> Result<Option<LargeValues<'t>>> {
        match self.tree {
            Some((view, _)) => Ok(Some(view.large_values(self.id, large)?)),
            None => Ok(None),
        }
    }

    /// Whether a large attribute has a value of this normal form by a rule; `None` if that cannot be
    /// looked up.
    ///
    /// # Errors
    /// The store's.
    pub(crate) fn large_holds(
        &self,
        large: &Large<'_>,
        rule: MatchingRule,
        normal: &[u8],
    ) -> Result<Option<bool>> {
        match self.tree {
            Some((view, _)) => holds(&self.snapshot.schema, view, self.id, large, (rule, normal)),
            None => Ok(None),
        }
    }

    /// Its DN.
    ///
    /// # Errors
    /// The store's.
    pub fn dn(&self) -> Result<&str> {
        if let Some(dn) = self.dn.get() {
            return Ok(dn);
        }
        let dn = match (&self.body, self.tree) {
            (Body::Stored(entry), Some((view, names))) => {
                view.dn_of(entry, &mut names.borrow_mut())?
            }
            _ => String::new(),
        };
        Ok(self.dn.get_or_init(|| dn))
    }

    /// Whether it is one of these entries, or below one.
    ///
    /// # Errors
    /// The store's.
    pub(crate) fn is_within(&self, tops: &[EntryId]) -> Result<bool> {
        if tops.contains(&self.id) {
            return Ok(true);
        }
        match (&self.body, self.tree) {
            (Body::Stored(entry), Some((view, names))) => {
                Ok(view.is_below(entry, tops, &mut names.borrow_mut())?)
            }
            _ => Ok(false),
        }
    }

    /// Whether it is in a group, or in a group that is in it; `None` where that cannot be told, as
    /// of a group that is not there.
    ///
    /// # Errors
    /// The store's.
    pub(crate) fn is_in_group(&self, group: &EntryName) -> Result<Option<bool>> {
        let Some(membership) = self.membership(true) else { return Ok(None) };
        match self.snapshot.entry_named(membership.view, group)? {
            Some(group) => self.is_in_nested(group),
            None => Ok(None),
        }
    }

    /// Whether it is in a group that has been looked up, likewise.
    ///
    /// # Errors
    /// The store's.
    pub(crate) fn is_in_nested(&self, group: EntryId) -> Result<Option<bool>> {
        match self.membership(true) {
            Some(membership) => membership.is_in(self.dn()?, group),
            None => Ok(None),
        }
    }

    fn membership(&self, nested: bool) -> Option<Membership<'_>> {
        let (view, names) = self.tree?;
        Some(Membership { snapshot: self.snapshot, view, names, nested })
    }

    /// The groups that `memberOf` shows.
    ///
    /// # Errors
    /// The store's.
    pub(crate) fn groups(&self) -> Result<&Groups> {
        if let Some(groups) = self.groups.get() {
            return Ok(groups);
        }
        let shown = self.snapshot.integrity.member_of;
        let membership = self.membership(shown == MemberOf::Nested);
        let groups = match (&self.body, membership) {
            (Body::Stored(entry), Some(membership)) if shown != MemberOf::Off => {
                membership.groups_of_entry(self.dn()?, entry)?
            }
            _ => Groups::default(),
        };
        Ok(self.groups.get_or_init(|| groups))
    }

    /// Whether `memberOf` shows this group.
    ///
    /// # Errors
    /// The store's.
    pub(crate) fn shows_group(&self, group: EntryId) -> Result<bool> {
        let shown = self.snapshot.integrity.member_of;
        if shown == MemberOf::Off {
            return Ok(false);
        }
        // That it is named by the group is found at once; the groups of its groups take longer.
        if self.groups.get().is_none()
            && let (Body::Stored(entry), Some(membership)) = (&self.body, self.membership(false))
            && membership.is_named_by(group, self.dn()?, Some(entry))?
        {
            return Ok(true);
        }
        Ok(self.groups()?.contain(group))
    }

    /// How many groups were looked up to answer for it.
    pub(crate) fn groups_looked_up(&self) -> usize {
        self.groups.get().map_or(0, |groups| groups.ids.len())
    }

    fn member_of(&self, view: View<'t>, names: &RefCell<Names>) -> Result<Vec<Vec<u8>>> {
        let mut values = Vec::new();
        for group in &self.groups()?.ids {
            let dn = view.dn(*group, &mut names.borrow_mut())?;
            values.extend(dn.map(String::into_bytes));
        }
        Ok(values)
    }

    /// The values of an attribute that is worked out; entries that are not stored have none.
    ///
    /// # Errors
    /// The store's.
    pub fn computed(&self, which: Computed) -> Result<Vec<Vec<u8>>> {
        let Some((view, names)) = self.tree else { return Ok(Vec::new()) };
        let value = match which {
            Computed::MemberOf => return self.member_of(view, names),
            Computed::EntryDn => self.dn()?.to_owned(),
            Computed::HasSubordinates => {
                let has = view.child_count(self.id)? > 0;
                if has { "TRUE".into() } else { "FALSE".into() }
            }
            Computed::NumSubordinates => view.child_count(self.id)?.to_string(),
            Computed::SubschemaSubentry => SUBSCHEMA_DN.to_owned(),
        };
        Ok(vec![value.into_bytes()])
    }
}

/// Iterator over the attributes of an entry.
pub enum BodyAttributes<'t> {
    /// Those of an entry of the store.
    Stored(keyway_store::Attributes<'t>),
    /// Those of one that is not stored.
    Unstored(std::slice::Iter<'t, (String, Vec<Vec<u8>>)>),
}

impl<'t> Iterator for BodyAttributes<'t> {
    type Item = (&'t str, BodyValues<'t>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self {
            BodyAttributes::Stored(attributes) => {
                attributes.next().map(|(name, values)| (name, BodyValues::Stored(values)))
            }
            BodyAttributes::Unstored(attributes) => attributes
                .next()
                .map(|(name, values)| (name.as_str(), BodyValues::Unstored(values.iter()))),
        }
    }
}

/// Iterator over the values of one attribute.
#[derive(Clone)]
pub enum BodyValues<'t> {
    /// Those of an entry of the store.
    Stored(Values<'t>),
    /// Those of one that is not stored.
    Unstored(std::slice::Iter<'t, Vec<u8>>),
}

impl<'t> Iterator for BodyValues<'t> {
    type Item = &'t [u8];

    fn next(&mut self) -> Option<&'t [u8]> {
        match self {
            BodyValues::Stored(values) => values.next(),
            BodyValues::Unstored(values) => values.next().map(Vec::as_slice),
        }
    }
}
