//! Attributes with very many values, which the store keeps in a table of their own: which these are,
//! and how a value is found there.
//!
//! A value's key is made of its normal form by the attribute's equality rule. A change of the schema by
//! which a value that is stored would get another one is refused (`schema/difference`), so that keys
//! stay right.

use crate::access::RULE;
use crate::failure::Result;
use crate::limits::{LARGE_BYTES_MIN, LARGE_VALUES_MIN};
use crate::policy::OWNER_NAMES;
use keyway_codec::syntax::{MatchingRule, Syntax};
use keyway_schema::{AttributeType, EntryAttributes, OBJECT_CLASS, Schema, base};
use keyway_store::{EntryId, EntryRef, Large, LargeEdit, ValueKey, View};
use std::borrow::Cow;
use std::collections::HashSet;

/// Attributes that the server itself goes by when it looks at an entry, beside operational ones.
const STAY: &[&str] = &[OBJECT_CLASS, "userPassword", "aliasedObjectName", "ref", RULE];

/// The form in which equal values of the attribute are equal bytes; without a rule the value.
pub(crate) fn normal<'v>(
    schema: &Schema,
    attribute: &AttributeType,
    value: &'v [u8],
) -> Cow<'v, [u8]> {
    let normal = attribute.equality().and_then(|rule| schema.normalize(rule, value));
    normal.map_or(Cow::Borrowed(value), Cow::Owned)
}

/// By what the store finds a value.
pub(crate) fn key(schema: &Schema, attribute: &AttributeType, value: &[u8]) -> ValueKey {
    ValueKey::of(&normal(schema, attribute, value))
}

/// Whether the values of an attribute may lie in a table of their own.
fn may_be_large(attribute: &AttributeType) -> bool {
    attribute.equality().is_some()
        && !attribute.is_single_value()
        && !attribute.is_operational()
        // They can be incremented, all at once.
        && attribute.syntax() != Syntax::Integer
        && !STAY.iter().chain(OWNER_NAMES).any(|name| *name == attribute.name())
}

/// Whether so many values belong there.
fn are_many(values: &[Vec<u8>]) -> bool {
    values.len() >= LARGE_VALUES_MIN
        || values.iter().map(Vec::len).sum::<usize>() >= LARGE_BYTES_MIN
}

/// Attributes that are to be large, and the keys of their values in turn.
pub(crate) type Keys = Vec<(String, Vec<ValueKey>)>;

/// Those of an entry's attributes that belong there.
pub(crate) fn keys(schema: &Schema, attributes: &EntryAttributes) -> Keys {
    let many = attributes.iter().filter(|(_, values)| are_many(values));
    let keys = many.filter_map(|(name, values)| {
        let attribute = schema.attribute(base(name)).filter(|one| may_be_large(one))?;
        let keys: Vec<ValueKey> =
            values.iter().map(|value| key(schema, attribute, value)).collect();
        // Two that are equal, which another server let in, are both kept where they are.
        let distinct: HashSet<&ValueKey> = keys.iter().collect();
        (distinct.len() == keys.len()).then(|| (name.clone(), keys))
    });
    keys.collect()
}

/// Takes attributes out of those of a record.
pub(crate) fn take(attributes: &mut EntryAttributes, keys: &Keys) -> Vec<LargeEdit> {
    let taken = keys.iter().filter_map(|(name, keys)| {
        let at = attributes.iter().position(|(held, _)| held == name)?;
        let (name, values) = attributes.remove(at);
        let added = keys.iter().copied().zip(values).collect();
        Some(LargeEdit { name, removed: Vec::new(), added })
    });
    taken.collect()
}

/// All attributes of an entry, with the values of the large ones.
///
/// # Errors
/// The store's.
pub(crate) fn whole(view: View<'_>, id: EntryId, entry: &EntryRef<'_>) -> Result<EntryAttributes> {
    let mut attributes = entry.to_entry().attributes;
    for large in entry.large() {
        let values = view.large_values(id, &large)?;
        let values = values.map(|value| value.map(|(_, value)| value.to_vec()));
        attributes.push((large.name.to_owned(), values.collect::<Result<_, _>>()?));
    }
    Ok(attributes)
}

/// Whether one of the values has this normal form by a rule; `None` if their keys are not made by it.
///
/// # Errors
/// The store's.
pub(crate) fn holds(
    schema: &Schema,
    view: View<'_>,
    id: EntryId,
    large: &Large<'_>,
    (rule, wanted): (MatchingRule, &[u8]),
) -> Result<Option<bool>> {
    let own = schema.attribute(base(large.name)).and_then(AttributeType::equality);
    if !own.is_some_and(|own| own.has_form_of(rule)) {
        return Ok(None);
    }
    let found = view.large_value(id, large, ValueKey::of(wanted))?;
    // One that the rule does not take is stored under its own bytes.
    Ok(Some(found.is_some_and(|value| schema.normalize(rule, value).as_deref() == Some(wanted))))
}
