//! `[groups]` and `[integrity]`: entries that speak of each other.

use crate::raw;
use crate::wrong::{Wrong, choice, plain, wrong};
use keyway_codec::Filter;
use keyway_codec::dn::Dn;
use keyway_server::{Allocate, IntegritySetting, MemberOf, Unique};
use toml::Spanned;

/// More than any number of a user or a group is.
const NUMBER_MAX: u64 = u32::MAX as u64;

/// The contents of both sections.
pub fn setting(groups: &raw::Groups, raw: &raw::Integrity) -> Result<IntegritySetting, Wrong> {
    let shown =
        [("nested", MemberOf::Nested), ("direct", MemberOf::Direct), ("off", MemberOf::Off)];
    Ok(IntegritySetting {
        members: plain(&groups.members),
        member_of: choice(&groups.member_of, &shown)?,
        references: plain(&raw.references),
        unique: raw.unique.iter().map(unique).collect::<Result<_, _>>()?,
        allocate: raw.allocate.iter().map(allocate).collect::<Result<_, _>>()?,
    })
}

/// All attributes that they name.
pub fn attributes<'r>(
    groups: &'r raw::Groups,
    raw: &'r raw::Integrity,
) -> impl Iterator<Item = &'r Spanned<String>> {
    let unique = raw.unique.iter().flat_map(|unique| &unique.attributes);
    let numbers = raw.allocate.iter().map(|range| &range.attribute);
    groups.members.iter().chain(&raw.references).chain(unique).chain(numbers)
}

fn unique(raw: &raw::Unique) -> Result<Unique, Wrong> {
    let below = |text: &Spanned<String>| match Dn::parse(text.get_ref()) {
        Ok(_) => Ok(text.get_ref().clone()),
        Err(why) => Err(wrong(text, format!("\"{}\" is not a DN: {why}", text.get_ref()))),
    };
    let filter = |text: &Spanned<String>| match Filter::parse(text.get_ref()) {
        Ok(_) => Ok(text.get_ref().clone()),
        Err(why) => Err(wrong(text, why.to_string())),
    };
    Ok(Unique {
        attributes: plain(&raw.attributes),
        filter: raw.filter.as_ref().map(filter).transpose()?,
        below: raw.below.as_ref().map(below).transpose()?.filter(|dn| !dn.is_empty()),
    })
}

fn allocate(raw: &raw::Allocate) -> Result<Allocate, Wrong> {
    let (from, to) = (*raw.from.get_ref(), *raw.to.get_ref());
    if to > NUMBER_MAX {
        return Err(wrong(&raw.to, format!("it must be {NUMBER_MAX} or less")));
    }
    if from > to {
        return Err(wrong(&raw.from, format!("it must not be more than to ({to})")));
    }
    Ok(Allocate {
        attribute: raw.attribute.get_ref().clone(),
        class: raw.class.get_ref().clone(),
        from,
        to,
        magic: raw.magic.as_ref().map(|magic| magic.get_ref().clone()),
    })
}
