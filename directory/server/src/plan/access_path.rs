//! The ways in which the indexes lead to the entries of one test of a filter.

use super::lack::Lack;
use super::lookup::Lookup;
use crate::failure::Result;
use crate::index::{GRAM_BYTES, IndexKind};
use crate::integrity::MemberOf;
use crate::state::Snapshot;
use keyway_codec::syntax::MatchingRule;
use keyway_schema::operational::Computed;
use keyway_schema::{EntryName, FilterItem, FilterTest, ItemScope, OBJECT_CLASS};
use keyway_store::{Key, KeyRange, View};

/// Grams of one part that are counted; one of them is mostly rare enough.
const GRAMS_MAX: usize = 16;

/// How the entries that pass a test can be found.
pub(super) enum AccessPath {
    /// Each of these leads to all of them.
    Lookups(Vec<Lookup>),
    /// All entries pass.
    All,
    /// By no index.
    None(Lack),
}

impl AccessPath {
    /// The path by the lookups of an attribute's index, if it is there.
    fn by(
        attribute: &str,
        kind: IndexKind,
        lookups: impl IntoIterator<Item = Lookup>,
    ) -> AccessPath {
        let lookups: Vec<Lookup> = lookups.into_iter().collect();
        match lookups.is_empty() {
            true => AccessPath::None(Lack::Index { attribute: attribute.to_owned(), kind }),
            false => AccessPath::Lookups(lookups),
        }
    }

    fn cannot(why: &'static str) -> AccessPath {
        AccessPath::None(Lack::Cannot(why))
    }

    /// The way to the entries that pass a test.
    ///
    /// # Errors
    /// The store's.
    pub fn of(snapshot: &Snapshot, view: View<'_>, item: &FilterItem) -> Result<AccessPath> {
        let ItemScope::Type { name, computed, equality, substrings, ordering, .. } = &item.scope
        else {
            return Ok(AccessPath::cannot("it asks for a value of any attribute"));
        };
        if let FilterTest::InChain { given, normal } = &item.test {
            return chain(snapshot, view, name, !computed.is_empty(), (given, normal));
        }
        if item.dn_attributes {
            return Ok(AccessPath::cannot("it looks at the names of entries as well"));
        }
        if let ([Computed::MemberOf], FilterTest::Equal { given, .. }) =
            (computed.as_slice(), &item.test)
        {
            return members(snapshot, view, given);
        }
        if !computed.is_empty() {
            return Ok(AccessPath::cannot("the attribute is worked out, and not stored"));
        }
        let indexes = &snapshot.indexes;
        let list = |key: Option<Key>| key.map(Lookup::list);
        let range = |range: Option<KeyRange>| range.map(Lookup::range);
        // Keys are in the form of the type's own rules; that of the test may have another.
        let has_form = |own: &Option<MatchingRule>, rule: &MatchingRule| {
            own.is_some_and(|own| own.has_form_of(*rule))
        };
        Ok(match &item.test {
            FilterTest::Present if name == OBJECT_CLASS => AccessPath::All,
            FilterTest::Present => {
                AccessPath::by(name, IndexKind::Presence, list(indexes.presence(name)))
            }
            FilterTest::Equal { rule, normal, .. } if has_form(equality, rule) => {
                AccessPath::by(name, IndexKind::Equality, list(indexes.equality(name, normal)))
            }
            FilterTest::Approximate { sounds, .. } => {
                let lookups = sounds.iter().filter_map(|code| indexes.sounding(name, code));
                AccessPath::by(name, IndexKind::Approximate, lookups.map(Lookup::lists))
            }
            FilterTest::AtLeast { rule, normal } if has_form(ordering, rule) => {
                let values = range(indexes.at_least(name, *rule, normal));
                AccessPath::by(name, IndexKind::Ordering, values)
            }
            FilterTest::AtMost { rule, normal } | FilterTest::Before { rule, normal }
                if has_form(ordering, rule) =>
            {
                AccessPath::by(
                    name,
                    IndexKind::Ordering,
                    range(indexes.at_most(name, *rule, normal)),
                )
            }
            FilterTest::Substrings { rule, initial, any, last } => {
                let mut lookups = Vec::new();
                let beginning = initial.as_ref().filter(|_| has_form(equality, rule));
                let begins = beginning.and_then(|initial| indexes.beginning(name, initial));
                lookups.extend(range(begins));
                if !has_form(substrings, rule) {
                    return Ok(match beginning {
                        Some(_) => AccessPath::by(name, IndexKind::Equality, lookups),
                        None => AccessPath::cannot("the rule is not one that the attribute has"),
                    });
                }
                let overlong = indexes.overlong(name);
                let parts = initial.iter().chain(any).chain(last);
                for part in parts.clone() {
                    let keys = indexes.containing(name, part, GRAMS_MAX).into_iter();
                    lookups.extend(
                        keys.map(|key| Lookup::lists(std::iter::once(key).chain(overlong.clone()))),
                    );
                }
                match parts.clone().any(|part| part.len() >= GRAM_BYTES) {
                    true => AccessPath::by(name, IndexKind::Substring, lookups),
                    false if beginning.is_some() => {
                        AccessPath::by(name, IndexKind::Equality, lookups)
                    }
                    false => AccessPath::cannot("no part of it has three letters"),
                }
            }
            _ => AccessPath::cannot("the rule is not one that the attribute has"),
        })
    }
}

/// To what leads to an entry, given as it was and normalised.
fn chain(
    snapshot: &Snapshot,
    view: View<'_>,
    name: &str,
    is_computed: bool,
    (given, normal): (&[u8], &[u8]),
) -> Result<AccessPath> {
    if is_computed {
        // Members of groups in it are found so only if they are shown.
        return match snapshot.integrity.member_of {
            MemberOf::Nested => members(snapshot, view, given),
            _ => Ok(AccessPath::cannot("the attribute is worked out, and not stored")),
        };
    }
    let ids = match snapshot.chain(view, name, normal)? {
        Some(chain) if !chain.complete => {
            return Ok(AccessPath::cannot("it leads to too many entries"));
        }
        // It is undefined for every entry.
        None => Vec::new(),
        Some(chain) => chain.ids,
    };
    Ok(AccessPath::Lookups(vec![Lookup { ids, ..Lookup::default() }]))
}

/// To the members of a group; to no subject if there is no such group.
fn members(snapshot: &Snapshot, view: View<'_>, group: &[u8]) -> Result<AccessPath> {
    if snapshot.integrity.member_of == MemberOf::Off {
        return Ok(AccessPath::Lookups(vec![Lookup::default()]));
    }
    if !snapshot.finds_members() {
        return Ok(AccessPath::by("uid", IndexKind::Equality, []));
    }
    let name = std::str::from_utf8(group).ok();
    let Some(name) = name.and_then(|name| EntryName::parse(&snapshot.schema, name).ok()) else {
        return Ok(AccessPath::cannot("it is no DN"));
    };
    let group = snapshot.entry_named(view, &name)?;
    let groups = group.into_iter().collect();
    Ok(AccessPath::Lookups(vec![Lookup { groups, ..Lookup::default() }]))
}
