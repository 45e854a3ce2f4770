//! Whether an entry is one that its object classes allow.

use crate::attribute::AttributeType;
use crate::class::ObjectClass;
use crate::describe::base;
use crate::error::Violation;
use crate::operational::STRUCTURAL_OBJECT_CLASS;
use crate::schema::Schema;
use keyway_codec::description::ClassKind;
use keyway_codec::message::ResultCode;
use keyway_codec::syntax::Syntax;

/// Attributes under canonical names, as entries are stored.
pub type EntryAttributes = Vec<(String, Vec<Vec<u8>>)>;

/// The canonical name of the attribute that lists an entry's classes.
pub const OBJECT_CLASS: &str = "objectClass";

/// Attributes whose values are an entry's classes.
const OF_CLASSES: [&str; 2] = [OBJECT_CLASS, STRUCTURAL_OBJECT_CLASS];

/// Adds the superclasses of an entry's object classes that are not listed (RFC 4512 § 3.3).
///
/// # Errors
/// `objectClassViolation` without classes or for an unknown one.
pub fn complete_classes(
    schema: &Schema,
    attributes: &mut EntryAttributes,
) -> Result<(), Violation> {
    let classes = classes(schema, attributes)?;
    let mut missing: Vec<&ObjectClass> = Vec::new();
    for above in classes.iter().flat_map(|class| class.superclasses()) {
        let Some(above) = schema.classes.get(*above) else { continue };
        let listed = |class: &&ObjectClass| class.oid() == above.oid();
        if !classes.iter().any(listed) && !missing.iter().any(listed) {
            missing.push(above);
        }
    }
    let names = missing.iter().map(|class| class.name().as_bytes().to_vec());
    if let Some((_, values)) = attributes.iter_mut().find(|(name, _)| name == OBJECT_CLASS) {
        values.extend(names);
    }
    Ok(())
}

/// Checks that classes and attributes fit, and returns the structural class.
///
/// The checks: the structural classes are one chain; each attribute that is demanded is there and each
/// that is there is allowed; single-valued attributes have one value. Values are not looked at: of
/// `large` attributes, which have many, the descriptions are enough.
///
/// # Errors
/// `objectClassViolation`, or `constraintViolation` for too many values.
pub fn check_entry<'s>(
    schema: &'s Schema,
    attributes: &EntryAttributes,
    large: &[&str],
) -> Result<&'s ObjectClass, Violation> {
    let structural = structural(&classes(schema, attributes)?)?;
    check_attributes(schema, attributes, large)?;
    Ok(structural)
}

/// Checks as [`check_entry`], but the structural classes may be none, or several that do not derive from each
/// other, as 389 Directory Server takes them. Returns the first of them, and whether all is well.
///
/// # Errors
/// As [`check_entry`], but for that.
pub fn check_loosely<'s>(
    schema: &'s Schema,
    attributes: &EntryAttributes,
    large: &[&str],
) -> Result<(&'s ObjectClass, bool), Violation> {
    let classes = classes(schema, attributes)?;
    check_attributes(schema, attributes, large)?;
    if let Ok(structural) = structural(&classes) {
        return Ok((structural, true));
    }
    let structural = classes.iter().find(|class| class.kind() == ClassKind::Structural);
    let none = || violation("the entry has no object class");
    Ok((structural.or(classes.first()).ok_or_else(none)?, false))
}

/// Whether an entry's structural classes are one chain.
pub fn is_sound(schema: &Schema, attributes: &EntryAttributes) -> bool {
    classes(schema, attributes).is_ok_and(|classes| structural(&classes).is_ok())
}

/// Everything that the schema has against an entry's classes and attributes, each with the attribute
/// that it is about; if a class is not known only that, as it cannot be known what it allows. Values are not
/// looked at ([`check_value`]).
pub fn violations(schema: &Schema, attributes: &EntryAttributes) -> Vec<(String, Violation)> {
    let of_classes = |failure| (OBJECT_CLASS.to_owned(), failure);
    let classes = match classes(schema, attributes) {
        Ok(classes) => classes,
        Err(failure) => return vec![of_classes(failure)],
    };
    let mut found: Vec<_> = structural(&classes).err().map(of_classes).into_iter().collect();
    for (attribute, failure) in not_allowed(schema, &classes, counted(attributes)) {
        // Attributes that a class demands are demanded by the classes below it as well.
        if !found.iter().any(|(known, _)| known == attribute) {
            found.push((attribute.to_owned(), failure));
        }
    }
    found
}

/// Checks that a value is of its attribute's syntax, as `validate` sees it, and that its matching rule
/// takes it.
///
/// # Errors
/// Why not, in words.
pub fn check_value(
    schema: &Schema,
    attribute: &AttributeType,
    value: &[u8],
    validate: fn(Syntax, &[u8]) -> Result<(), &'static str>,
) -> Result<(), &'static str> {
    validate(attribute.syntax(), value)?;
    // Unknown object classes are the business of those who check the whole entry.
    let rule = attribute.equality().filter(|_| !OF_CLASSES.contains(&attribute.name()));
    match rule.map(|rule| schema.normalize(rule, value)) {
        Some(None) => Err("its matching rule does not take it"),
        _ => Ok(()),
    }
}

/// Checks what classes demand and allow.
fn check_attributes(
    schema: &Schema,
    attributes: &EntryAttributes,
    large: &[&str],
) -> Result<(), Violation> {
    let classes = classes(schema, attributes)?;
    let all = counted(attributes).chain(large.iter().map(|name| (*name, usize::MAX)));
    match not_allowed(schema, &classes, all).next() {
        Some((_, failure)) => Err(failure),
        None => Ok(()),
    }
}

/// Attributes, and how many values each has.
fn counted(attributes: &EntryAttributes) -> impl Iterator<Item = (&str, usize)> + Clone {
    attributes.iter().map(|(name, values)| (name.as_str(), values.len()))
}

/// The attributes that classes demand and that are missing, then those that are there and may not be: each with why.
fn not_allowed<'a>(
    schema: &'a Schema,
    classes: &'a [&'a ObjectClass],
    attributes: impl Iterator<Item = (&'a str, usize)> + Clone + 'a,
) -> impl Iterator<Item = (&'a str, Violation)> {
    let demanded = classes.iter().flat_map(move |class| {
        let positions = class.must().iter();
        positions.filter_map(move |position| Some((*class, schema.attributes.get(*position)?)))
    });
    let there = attributes.clone();
    let missing = demanded.filter_map(move |(class, must)| {
        if there.clone().any(|(name, _)| base(name) == must.name()) {
            return None;
        }
        let (class, must) = (class.name(), must.name());
        Some((must, violation(format!("object class {class} demands attribute {must}"))))
    });
    let all = classes.iter().any(|class| class.allows_all());
    let unwanted = attributes.filter_map(move |(name, values)| {
        why_not(schema, classes, all, (name, values)).map(|failure| (name, failure))
    });
    missing.chain(unwanted)
}

/// Why so many values of an attribute may not be there, if they may not; with `all`, one of the classes
/// allows every attribute.
fn why_not(
    schema: &Schema,
    classes: &[&ObjectClass],
    all: bool,
    (name, values): (&str, usize),
) -> Option<Violation> {
    let Some(attribute) = schema.attribute(base(name)) else {
        let text = format!("attribute {name} is not known");
        return Some(Violation { code: ResultCode::UndefinedAttributeType, why: text });
    };
    let allowed = all
        || attribute.is_operational()
        || classes.iter().any(|class| class.allows(attribute.position));
    if !allowed {
        return Some(violation(format!("no object class of the entry allows attribute {name}")));
    }
    if attribute.is_single_value() && values > 1 {
        let text = format!("attribute {name} may have one value only");
        return Some(Violation { code: ResultCode::ConstraintViolation, why: text });
    }
    None
}

fn violation(text: impl Into<String>) -> Violation {
    Violation { code: ResultCode::ObjectClassViolation, why: text.into() }
}

/// The classes that an entry lists.
fn classes<'s>(
    schema: &'s Schema,
    attributes: &EntryAttributes,
) -> Result<Vec<&'s ObjectClass>, Violation> {
    let (_, values) = attributes
        .iter()
        .find(|(name, _)| name == OBJECT_CLASS)
        .ok_or_else(|| violation("the entry has no object class"))?;
    let class = |value: &Vec<u8>| {
        let name = str::from_utf8(value).unwrap_or("?");
        schema.class(name).ok_or_else(|| violation(schema.unknown_class(name)))
    };
    values.iter().map(class).collect()
}

/// The most specific structural class; all other structural ones must be above it.
fn structural<'s>(classes: &[&'s ObjectClass]) -> Result<&'s ObjectClass, Violation> {
    let structural = || classes.iter().filter(|class| class.kind() == ClassKind::Structural);
    let lowest = structural()
        .find(|class| !structural().any(|other| other != *class && other.is_a(class)))
        .or_else(|| classes.iter().find(|class| class.may_stand_alone()))
        .ok_or_else(|| violation("the entry has no structural object class"))?;
    match structural().find(|class| !lowest.is_a(class)) {
        None => Ok(lowest),
        Some(other) => Err(violation(format!(
            "structural object classes {} and {} do not derive from each other",
            lowest.name(),
            other.name()
        ))),
    }
}

impl PartialEq for ObjectClass {
    fn eq(&self, other: &Self) -> bool {
        self.oid() == other.oid()
    }
}
