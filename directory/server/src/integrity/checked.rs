//! The settings of groups and integrity, checked against the schema.

use super::range::Range;
use super::reference_attribute::ReferenceAttribute;
use super::setting::{IntegritySetting, MemberOf, Unique};
use super::unique_set::{self, UniqueSet};
use crate::index::{IndexKind, IndexSetting};
use keyway_schema::{EntryName, Schema};

/// The settings, checked against the schema.
pub(crate) struct Integrity {
    pub(super) members: Vec<ReferenceAttribute>,
    pub member_of: MemberOf,
    pub(super) references: Vec<ReferenceAttribute>,
    pub(super) unique: Vec<UniqueSet>,
    pub(super) ranges: Vec<Range>,
}

impl Integrity {
    /// Checks the settings.
    ///
    /// # Errors
    /// The attribute or name that is not known, or not of the right kind.
    pub fn new(setting: &IntegritySetting, schema: &Schema) -> Result<Integrity, String> {
        let groups = |why| format!("[groups] members: {why}");
        let members = setting
            .members
            .iter()
            .map(|name| ReferenceAttribute::new(schema, name).map_err(groups));
        let integrity = |why| format!("[integrity] references: {why}");
        let references = setting
            .references
            .iter()
            .map(|name| ReferenceAttribute::to_dn(schema, name).map_err(integrity));
        let name = |below: &String| {
            EntryName::parse(schema, below)
                .map_err(|why| format!("[[integrity.unique]] below: {why}"))
        };
        let unique = |one: &Unique| {
            let below = one.below.as_ref().map(name).transpose()?;
            let filter = one.filter.as_deref();
            let filter = filter.map(|text| unique_set::filter(schema, text)).transpose()?;
            UniqueSet::new(schema, &one.attributes, below, filter)
        };
        Ok(Integrity {
            members: members.collect::<Result<_, _>>()?,
            member_of: setting.member_of,
            references: references.collect::<Result<_, _>>()?,
            unique: setting.unique.iter().map(unique).collect::<Result<_, _>>()?,
            ranges: setting
                .allocate
                .iter()
                .map(|one| Range::new(schema, one))
                .collect::<Result<_, _>>()?,
        })
    }

    /// The index settings with those added that this cannot do without.
    pub fn indexed(&self, schema: &Schema, settings: &[IndexSetting]) -> Vec<IndexSetting> {
        let mut all = settings.to_vec();
        let named =
            self.members.iter().chain(&self.references).map(|attribute| attribute.name.as_str());
        let unique = self.unique.iter().flat_map(UniqueSet::attributes);
        let numbers = self.ranges.iter().map(|range| range.attribute.as_str());
        for name in named.chain(unique).chain(numbers) {
            let is = |one: &&mut IndexSetting| {
                schema.attribute(&one.attribute).is_some_and(|known| known.name() == name)
            };
            match all.iter_mut().find(is) {
                Some(one) => drop(one.kinds.insert(IndexKind::Equality)),
                None => all.push(IndexSetting::new(name, &[IndexKind::Equality])),
            }
        }
        all
    }

    /// Whether what is stored under this description says who is in a group.
    pub fn is_membership(&self, stored: &str) -> bool {
        self.members.iter().any(|attribute| attribute.means(stored))
    }
}
