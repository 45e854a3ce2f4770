//! Entries that speak of each other: groups and their members, references that follow what they
//! name, values that are unique, numbers that are given out.
//!
//! Nothing of it is stored twice. Who is in a group is asked of the equality index of the group's
//! member attribute, so that it can never disagree with the group, and a group costs nothing more
//! to change. All else is done in the job of the committer that does the change itself: two changes
//! at once cannot both pass a check, and none is half done.

mod allocate;
mod chain;
mod claims;
mod membership;
mod references;
mod resolve;
mod setting;
mod unique;

pub(crate) use chain::Chain;
pub(crate) use claims::Claims;
pub use claims::Disagreement;
pub(crate) use membership::{Groups, Membership};
pub(crate) use references::{Leaving, Referrers};
pub use setting::{Allocate, IntegritySetting, MemberOf, Unique};
pub(crate) use unique::Proposed;

use crate::index::{IndexKind, IndexSetting};
use allocate::Range;
use keyway_codec::syntax::{MatchingRule, append_part};
use keyway_schema::{EntryName, Schema, base};
use unique::UniqueSet;

/// The settings, checked against the schema.
pub(crate) struct Integrity {
    members: Vec<Link>,
    pub member_of: MemberOf,
    references: Vec<Link>,
    unique: Vec<UniqueSet>,
    ranges: Vec<Range>,
}

/// An attribute whose values name entries.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    /// The canonical name.
    pub name: String,
    /// Canonical names of the attribute and its subtypes.
    family: Vec<String>,
    rule: MatchingRule,
}

impl Link {
    fn new(schema: &Schema, name: &str) -> Result<Link, String> {
        let attribute =
            schema.attribute(name).ok_or_else(|| format!("attribute {name} is not known"))?;
        let rule =
            attribute.equality().ok_or_else(|| format!("attribute {name} has no equality rule"))?;
        let family = schema.family(attribute).map(|member| member.name().to_owned()).collect();
        Ok(Link { name: attribute.name().to_owned(), family, rule })
    }

    /// The same for an attribute whose values are DNs.
    pub fn to_dn(schema: &Schema, name: &str) -> Result<Link, String> {
        let link = Link::new(schema, name)?;
        match link.names_by_dn() {
            true => Ok(link),
            false => Err(format!("the values of attribute {name} are no DNs")),
        }
    }

    /// Whether its values are DNs; else they are what `uid` has.
    pub fn names_by_dn(&self) -> bool {
        matches!(self.rule, MatchingRule::DistinguishedName | MatchingRule::UniqueMember)
    }

    /// Whether an attribute that is stored under this description is meant.
    pub fn means(&self, stored: &str) -> bool {
        self.family.iter().any(|name| name == base(stored))
    }

    /// The normal form of a value that names an entry, given that of the entry's DN.
    pub fn normal(&self, dn: &[u8]) -> Vec<u8> {
        if self.rule != MatchingRule::UniqueMember {
            return dn.to_vec();
        }
        // Without the bit string that tells those apart who bore the name one after another.
        let mut normal = Vec::with_capacity(dn.len() + 2);
        append_part(&mut normal, dn);
        normal
    }

    /// The normal form of one of its values.
    pub fn normalize(&self, schema: &Schema, value: &[u8]) -> Option<Vec<u8>> {
        schema.normalize(self.rule, value)
    }
}

/// The normal form of a DN, as the rules for names have it.
pub(crate) fn normal_dn(schema: &Schema, dn: &str) -> Option<Vec<u8>> {
    schema.normalize(MatchingRule::DistinguishedName, dn.as_bytes())
}

impl Integrity {
    /// Checks the settings.
    ///
    /// # Errors
    /// What is not known, or not of the right kind.
    pub fn new(setting: &IntegritySetting, schema: &Schema) -> Result<Integrity, String> {
        let groups = |why| format!("[groups] members: {why}");
        let members = setting.members.iter().map(|name| Link::new(schema, name).map_err(groups));
        let integrity = |why| format!("[integrity] references: {why}");
        let references =
            setting.references.iter().map(|name| Link::to_dn(schema, name).map_err(integrity));
        let name = |below: &String| {
            EntryName::parse(schema, below)
                .map_err(|why| format!("[[integrity.unique]] below: {why}"))
        };
        let unique = |one: &Unique| {
            let below = one.below.as_ref().map(name).transpose()?;
            let filter = one.filter.as_deref();
            let filter = filter.map(|text| unique::filter(schema, text)).transpose()?;
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
        let links = self.members.iter().chain(&self.references).map(|link| link.name.as_str());
        let unique = self.unique.iter().flat_map(UniqueSet::attributes);
        let numbers = self.ranges.iter().map(|range| range.attribute.as_str());
        for name in links.chain(unique).chain(numbers) {
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
        self.members.iter().any(|link| link.means(stored))
    }
}
