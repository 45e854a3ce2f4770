//! An entry's attributes while they are being changed: what each kind of change does and refuses
//! (RFC 4511 §§ 4.6, 4.7; RFC 4525).

use crate::failure::{Failure, Result};
use crate::large::normal;
use crate::limits::ATTRIBUTE_VALUES_MAX;
use keyway_codec::message::ResultCode;
use keyway_codec::syntax::Syntax;
use keyway_schema::operational::{Computed, STRUCTURAL_OBJECT_CLASS};
use keyway_schema::{
    AttributeType, Description, EntryAttributes, OBJECT_CLASS, Schema, check_value,
};
use std::borrow::Cow;
use std::collections::HashSet;

/// Understands a description in a change.
///
/// # Errors
/// `undefinedAttributeType`.
pub fn describe<'s>(schema: &'s Schema, description: &str) -> Result<Description<'s>> {
    schema.describe(description).ok_or_else(|| {
        let text = schema.unknown_description(description);
        Failure::new(ResultCode::UndefinedAttributeType, text)
    })
}

/// Checks that a client may set the attribute at all.
///
/// # Errors
/// `constraintViolation` if only the server does.
pub fn require_writable(attribute: &AttributeType) -> Result<()> {
    if !attribute.is_read_only() {
        return Ok(());
    }
    let text = format!("attribute {} is set by the server only", attribute.name());
    Err(Failure::new(ResultCode::ConstraintViolation, text))
}

/// Checks that a client that relaxes rules may set the attribute.
///
/// # Errors
/// `constraintViolation` if it is worked out each time that it is read, or follows from the entry's classes.
pub fn require_stored(attribute: &AttributeType) -> Result<()> {
    let name = attribute.name();
    if name != STRUCTURAL_OBJECT_CLASS && Computed::from_name(name).is_none() {
        return Ok(());
    }
    let text = format!(
        "attribute {name} follows from others: it cannot be given, with relaxed rules either"
    );
    Err(Failure::new(ResultCode::ConstraintViolation, text))
}

/// Checks values against their syntax.
///
/// # Errors
/// `invalidAttributeSyntax`, with the value's number.
pub fn check_syntax<V: AsRef<[u8]>>(
    schema: &Schema,
    attribute: &AttributeType,
    values: &[V],
) -> Result<()> {
    check_values(schema, attribute, values, Syntax::validate)
}

/// Checks values that another server took against their syntax.
///
/// # Errors
/// As [`check_syntax`].
fn check_imported_syntax<V: AsRef<[u8]>>(
    schema: &Schema,
    attribute: &AttributeType,
    values: &[V],
) -> Result<()> {
    check_values(schema, attribute, values, Syntax::validate_imported)
}

/// The attributes that the server goes by, beside operational ones.
const MUST_BE_RIGHT: [&str; 2] = [OBJECT_CLASS, "aliasedObjectName"];

/// Checks values that were stored once, here or by another server; says how many are not of their syntax: other
/// servers have had laxer days.
///
/// # Errors
/// As [`check_syntax`], of an attribute that the server goes by.
pub fn check_stored_syntax(
    schema: &Schema,
    attribute: &AttributeType,
    values: &[Cow<'_, [u8]>],
) -> Result<u64> {
    if attribute.is_operational() || MUST_BE_RIGHT.contains(&attribute.name()) {
        return check_imported_syntax(schema, attribute, values).map(|()| 0);
    }
    Ok(malformed(schema, attribute, values))
}

/// How many values another server took that are not of their syntax.
fn malformed(schema: &Schema, attribute: &AttributeType, values: &[Cow<'_, [u8]>]) -> u64 {
    let is_wrong = |value: &&Cow<'_, [u8]>| {
        check_imported_syntax(schema, attribute, std::slice::from_ref(*value)).is_err()
    };
    values.iter().filter(is_wrong).count() as u64
}

fn check_values<V: AsRef<[u8]>>(
    schema: &Schema,
    attribute: &AttributeType,
    values: &[V],
    validate: fn(Syntax, &[u8]) -> std::result::Result<(), &'static str>,
) -> Result<()> {
    for (index, value) in values.iter().enumerate() {
        check_value(schema, attribute, value.as_ref(), validate).map_err(|why| {
            let name = attribute.name();
            let text = format!("value {index} of attribute {name} is not valid: {why}");
            Failure::new(ResultCode::InvalidAttributeSyntax, text)
        })?;
    }
    Ok(())
}

pub(super) fn exists(name: &str) -> Failure {
    let text = format!("attribute {name} has this value already, or it is given twice");
    Failure::new(ResultCode::AttributeOrValueExists, text)
}

pub(super) fn missing(name: &str, what: &str) -> Failure {
    Failure::new(ResultCode::NoSuchAttribute, format!("the entry has no {what}{name}"))
}

/// Refuses to single out values of an attribute that has no equality rule (RFC 4512 § 2.5.1).
fn require_equality(attribute: &AttributeType) -> Result<()> {
    if attribute.equality().is_some() {
        return Ok(());
    }
    let text = format!(
        "attribute {} has no equality rule: its values can only be replaced together",
        attribute.name()
    );
    Err(Failure::new(ResultCode::InappropriateMatching, text))
}

/// The values stored under a canonical description.
pub fn values<'a>(attributes: &'a EntryAttributes, name: &str) -> Option<&'a Vec<Vec<u8>>> {
    attributes.iter().find(|(stored, _)| stored == name).map(|(_, values)| values)
}

fn values_mut<'a>(attributes: &'a mut EntryAttributes, name: &str) -> Option<&'a mut Vec<Vec<u8>>> {
    attributes.iter_mut().find(|(stored, _)| stored == name).map(|(_, values)| values)
}

fn remove(attributes: &mut EntryAttributes, name: &str) -> bool {
    let before = attributes.len();
    attributes.retain(|(stored, _)| stored != name);
    attributes.len() < before
}

/// Adds values. Their syntax has been checked.
///
/// # Errors
/// `attributeOrValueExists`, `inappropriateMatching`, or `adminLimitExceeded`.
pub fn add(
    schema: &Schema,
    attributes: &mut EntryAttributes,
    description: &Description<'_>,
    added: Vec<Vec<u8>>,
) -> Result<()> {
    if values(attributes, &description.canonical()).is_some() {
        require_equality(description.attribute)?;
    }
    extend(schema, attributes, description, added)
}

/// Adds values to those that are given for a new entry. Their syntax has been checked.
///
/// # Errors
/// `attributeOrValueExists` or `adminLimitExceeded`.
pub fn extend(
    schema: &Schema,
    attributes: &mut EntryAttributes,
    description: &Description<'_>,
    added: Vec<Vec<u8>>,
) -> Result<()> {
    insert(schema, attributes, description, added, true)
}

/// Adds values of which it is known that the entry has none.
///
/// # Errors
/// As [`extend`].
pub fn push(
    schema: &Schema,
    attributes: &mut EntryAttributes,
    description: &Description<'_>,
    added: Vec<Vec<u8>>,
) -> Result<()> {
    insert(schema, attributes, description, added, false)
}

/// Refuses more values than an attribute may have.
pub(super) fn limit(name: &str, values: usize) -> Result<()> {
    if values <= ATTRIBUTE_VALUES_MAX {
        return Ok(());
    }
    let text = format!("attribute {name} would have more than {ATTRIBUTE_VALUES_MAX} values");
    Err(Failure::new(ResultCode::AdminLimitExceeded, text))
}

fn insert(
    schema: &Schema,
    attributes: &mut EntryAttributes,
    description: &Description<'_>,
    added: Vec<Vec<u8>>,
    look_at_held: bool,
) -> Result<()> {
    let (attribute, name) = (description.attribute, description.canonical());
    let held = values(attributes, &name).map_or(&[][..], Vec::as_slice);
    limit(&name, held.len() + added.len())?;
    let looked_at = if look_at_held { held } else { &[] };
    let mut seen: HashSet<Cow<'_, [u8]>> =
        looked_at.iter().map(|value| normal(schema, attribute, value)).collect();
    if !added.iter().all(|value| seen.insert(normal(schema, attribute, value))) {
        return Err(exists(&name));
    }
    drop(seen);
    match values_mut(attributes, &name) {
        Some(held) => held.extend(added),
        None if added.is_empty() => {}
        None => attributes.push((name.into_owned(), added)),
    }
    Ok(())
}

/// Deletes values, or the attribute if none are given.
///
/// # Errors
/// `noSuchAttribute` or `inappropriateMatching`.
pub fn delete(
    schema: &Schema,
    attributes: &mut EntryAttributes,
    description: &Description<'_>,
    deleted: &[Vec<u8>],
) -> Result<()> {
    let (attribute, name) = (description.attribute, description.canonical());
    if deleted.is_empty() {
        let there = remove(attributes, &name);
        return if there { Ok(()) } else { Err(missing(&name, "attribute ")) };
    }
    require_equality(attribute)?;
    let held = values_mut(attributes, &name).ok_or_else(|| missing(&name, "attribute "))?;
    if let [deleted] = deleted
        && let Some(at) = held.iter().position(|value| value == deleted)
    {
        // Spelled alike, so none of the others need be understood.
        held.remove(at);
        if held.is_empty() {
            remove(attributes, &name);
        }
        return Ok(());
    }
    let mut going = HashSet::new();
    for value in deleted {
        if !going.insert(normal(schema, attribute, value)) {
            return Err(missing(&name, "second such value of attribute "));
        }
    }
    let before = held.len();
    held.retain(|value| !going.contains(&normal(schema, attribute, value)));
    if before - held.len() != going.len() {
        return Err(missing(&name, "such value of attribute "));
    }
    if held.is_empty() {
        remove(attributes, &name);
    }
    Ok(())
}

/// Replaces all values; without new ones the attribute goes if it is there.
///
/// # Errors
/// `attributeOrValueExists` if a value is given twice.
pub fn replace(
    schema: &Schema,
    attributes: &mut EntryAttributes,
    description: &Description<'_>,
    new: Vec<Vec<u8>>,
) -> Result<()> {
    let name = description.canonical();
    let position = attributes.iter().position(|(stored, _)| *stored == *name);
    remove(attributes, &name);
    extend(schema, attributes, description, new)?;
    // It stays where it was: entries of a kind are read faster if they are in the same order.
    if let (Some(position), Some((last, _))) = (position, attributes.last())
        && *last == *name
        && let Some(replaced) = attributes.pop()
    {
        attributes.insert(position, replaced);
    }
    Ok(())
}

/// Adds a number to each value (RFC 4525).
///
/// # Errors
/// `noSuchAttribute`; `constraintViolation` if a value is no number or becomes too large;
/// `protocolError` unless there is one value to add.
pub fn increment(
    attributes: &mut EntryAttributes,
    description: &Description<'_>,
    by: &[Vec<u8>],
) -> Result<()> {
    let name = description.canonical();
    let violation = |what: &str| {
        let text = format!("attribute {name} cannot be incremented: {what}");
        Failure::new(ResultCode::ConstraintViolation, text)
    };
    let [by] = by else {
        let text = format!("an increment of attribute {name} has exactly one value");
        return Err(Failure::new(ResultCode::ProtocolError, text));
    };
    let by = integer(by).ok_or_else(|| violation("the increment is no integer in range"))?;
    if description.attribute.syntax() != Syntax::Integer {
        return Err(violation("it is no integer"));
    }
    let held = values_mut(attributes, &name).ok_or_else(|| missing(&name, "attribute "))?;
    for value in held {
        let sum = integer(value)
            .ok_or_else(|| violation("a value is no integer in range"))?
            .checked_add(by)
            .ok_or_else(|| violation("the sum is out of range"))?;
        *value = sum.to_string().into_bytes();
    }
    Ok(())
}

fn integer(value: &[u8]) -> Option<i128> {
    str::from_utf8(value).ok()?.parse().ok()
}

/// Whether the entry has a value equal to this one under the plain type.
pub fn has_value(
    schema: &Schema,
    attributes: &EntryAttributes,
    attribute: &AttributeType,
    value: &[u8],
) -> bool {
    let held = values(attributes, attribute.name());
    held.is_some_and(|held| is_among(schema, attribute, held, value))
}

/// Whether a value is equal to one of those.
pub fn is_among(
    schema: &Schema,
    attribute: &AttributeType,
    values: &[Vec<u8>],
    value: &[u8],
) -> bool {
    let wanted = normal(schema, attribute, value);
    values.iter().any(|value| normal(schema, attribute, value) == wanted)
}

/// Takes those values away that are equal to one before them, and says how many.
pub fn keep_once(
    schema: &Schema,
    attribute: &AttributeType,
    values: &mut Vec<Cow<'_, [u8]>>,
) -> usize {
    if values.len() < 2 {
        return 0;
    }
    let before = values.len();
    let mut seen = HashSet::new();
    values.retain(|value| seen.insert(normal(schema, attribute, value).into_owned()));
    before - values.len()
}

/// Sets an attribute to one value, where it was if it is there.
pub fn set(attributes: &mut EntryAttributes, name: &str, value: &str) {
    let value = vec![value.as_bytes().to_vec()];
    match values_mut(attributes, name) {
        Some(held) => *held = value,
        None => attributes.push((name.to_owned(), value)),
    }
}
