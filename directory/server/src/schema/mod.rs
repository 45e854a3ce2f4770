//! The schema: which attributes and object classes there are, and what they demand.
//!
//! Built from RFC 4512 descriptions and never changed, so that it is shared without locks; another
//! one is put in its place. Every attribute has one canonical name, its first; entries are stored
//! under canonical names.

mod attribute;
mod check;
mod class;
mod compose;
mod definition;
mod describe;
mod difference;
mod sources;

pub use attribute::AttributeType;
pub use check::{
    Attributes, OBJECT_CLASS, check_entry, check_loosely, check_value, complete_classes, is_sound,
    violations,
};
pub use class::ObjectClass;
pub use compose::{Composed, Defined, Origin};
pub(crate) use compose::{beyond_defaults, is_among, is_kept};
pub use definition::Definition;
pub use describe::{Description, base, has_options};
pub use difference::Difference;
pub use sources::{Changes, SourceFile, Sources};

use keyway_codec::definitions::nearest;
use keyway_codec::description::{AttributeTypeDescription, ObjectClassDescription};
use keyway_codec::syntax::{Descriptors, MatchingRule, Syntax};
use rustc_hash::FxBuildHasher;
use std::collections::HashMap;
use std::fmt;

/// A name this long is not in any schema.
const NAME_BYTES_MAX: usize = 128;

/// The attribute types and object classes that this server knows.
pub struct Schema {
    attributes: Vec<AttributeType>,
    classes: Vec<ObjectClass>,
    attribute_index: Index,
    class_index: Index,
    warnings: Vec<SchemaError>,
}

/// Why definitions do not make a schema. Whoever wrote them is at fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaError {
    /// The definition, by its name or OID.
    pub definition: String,
    /// What is wrong with it.
    pub why: String,
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "schema: {}: {}", self.definition, self.why)
    }
}

impl std::error::Error for SchemaError {}

impl SchemaError {
    /// Where a definition stands that cannot be read.
    fn place(error: &keyway_codec::definitions::DefinitionError) -> String {
        keyway_codec::definitions::DefinitionError { why: String::new(), ..error.clone() }
            .to_string()
            .trim_end_matches([' ', ':'])
            .to_owned()
    }

    fn new(definition: &str, why: impl Into<String>) -> Self {
        SchemaError { definition: definition.into(), why: why.into() }
    }
}

impl Schema {
    /// The standard definitions, with all sets that come with the program.
    ///
    /// # Errors
    /// None, as a test shows; the type is that of any schema.
    pub fn standard() -> Result<Schema, SchemaError> {
        Composed::new(&Sources::defaults(), &Changes::default())?.schema()
    }

    /// A schema of these descriptions. What a definition refers to may come after it.
    ///
    /// # Errors
    /// The first definition that is malformed, there twice, or refers to what is not there.
    pub fn new(attributes: &[&str], classes: &[&str]) -> Result<Schema, SchemaError> {
        let wrong = |text: &str, why: &dyn fmt::Display| SchemaError::new(text, why.to_string());
        let attributes = attributes
            .iter()
            .map(|text| AttributeTypeDescription::parse(text).map_err(|error| wrong(text, &error)));
        let classes = classes
            .iter()
            .map(|text| ObjectClassDescription::parse(text).map_err(|error| wrong(text, &error)));
        let attributes: Vec<_> = attributes.collect::<Result<_, _>>()?;
        let classes: Vec<_> = classes.collect::<Result<_, _>>()?;
        Schema::of(&attributes, &classes)
    }

    /// The same of descriptions that have been parsed.
    ///
    /// # Errors
    /// The first definition that is there twice or refers to what is not there.
    pub fn of(
        attributes: &[AttributeTypeDescription],
        classes: &[ObjectClassDescription],
    ) -> Result<Schema, SchemaError> {
        let attribute_index =
            index(attributes.iter().map(|one| (one.oid.as_str(), one.names.as_slice())))?;
        let class_index =
            index(classes.iter().map(|one| (one.oid.as_str(), one.names.as_slice())))?;
        let mut schema = Schema {
            attributes: Vec::with_capacity(attributes.len()),
            classes: Vec::with_capacity(classes.len()),
            attribute_index,
            class_index,
            warnings: Vec::new(),
        };
        for position in 0..attributes.len() {
            let index = &schema.attribute_index;
            let attribute = attribute::build(position, attributes, index, &mut schema.warnings)?;
            schema.attributes.push(attribute);
        }
        attribute::link_families(&mut schema.attributes);
        for position in 0..classes.len() {
            let class =
                class::build(position, classes, &schema.class_index, &schema.attribute_index)?;
            schema.classes.push(class);
        }
        Ok(schema)
    }

    /// What was not understood of definitions and taken for something else: matching rules and
    /// syntaxes that this server does not know.
    pub fn warnings(&self) -> &[SchemaError] {
        &self.warnings
    }

    /// The attribute type of a name or OID without options, in any case.
    pub fn attribute(&self, name: &str) -> Option<&AttributeType> {
        let position = lookup(&self.attribute_index, name)?;
        self.attributes.get(position)
    }

    /// The object class of a name or OID, in any case.
    pub fn class(&self, name: &str) -> Option<&ObjectClass> {
        let position = lookup(&self.class_index, name)?;
        self.classes.get(position)
    }

    /// What to say of an attribute that is not known.
    pub fn unknown_attribute(&self, name: &str) -> String {
        unknown("attribute", name, &self.attribute_index)
    }

    /// What to say of a description whose type or options are not known.
    pub fn unknown_description(&self, description: &str) -> String {
        let name = base(description);
        match self.attribute(name) {
            Some(_) => format!("attribute {description} has an unknown option"),
            None => self.unknown_attribute(name),
        }
    }

    /// What to say of an object class that is not known.
    pub fn unknown_class(&self, name: &str) -> String {
        unknown("object class", name, &self.class_index)
    }

    /// All attribute types, in the order they were defined.
    pub fn attributes(&self) -> &[AttributeType] {
        &self.attributes
    }

    /// All object classes, in the order they were defined.
    pub fn classes(&self) -> &[ObjectClass] {
        &self.classes
    }

    /// The attributes that an entry of the class must or may have.
    pub fn attributes_of<'s>(
        &'s self,
        class: &'s ObjectClass,
    ) -> impl Iterator<Item = &'s AttributeType> {
        let positions = class.must().iter().chain(class.may());
        positions.filter_map(|position| self.attributes.get(*position))
    }

    /// The type itself and all its subtypes.
    pub fn family<'s>(
        &'s self,
        attribute: &'s AttributeType,
    ) -> impl Iterator<Item = &'s AttributeType> {
        attribute.family.iter().filter_map(|position| self.attributes.get(*position))
    }

    /// A value in the form in which equal values are equal bytes; `None` if it is not valid.
    pub fn normalize(&self, rule: MatchingRule, value: &[u8]) -> Option<Vec<u8>> {
        rule.normalize(value, self)
    }
}

impl Descriptors for Schema {
    fn attribute(&self, name: &str) -> Option<(&str, MatchingRule)> {
        let attribute = Schema::attribute(self, name)?;
        Some((attribute.name(), attribute.equality()?))
    }

    fn oid(&self, name: &str) -> Option<&str> {
        let class = self.class(name).map(ObjectClass::oid);
        class.or_else(|| Schema::attribute(self, name).map(AttributeType::oid))
    }
}

/// Whether the rule can look at values of the attribute: it is one of its own, or was made for its
/// syntax, or both are of text.
pub fn fits(rule: MatchingRule, attribute: &AttributeType) -> bool {
    let own = [attribute.equality(), attribute.ordering(), attribute.substrings()];
    own.contains(&Some(rule))
        || rule.syntax() == attribute.syntax()
        || (is_of_text(rule) && is_text(attribute.syntax()))
}

fn is_of_text(rule: MatchingRule) -> bool {
    rule.has_form_of(MatchingRule::CaseIgnore)
        || rule.has_form_of(MatchingRule::CaseExact)
        || rule.has_form_of(MatchingRule::CaseIgnoreIa5)
        || rule.has_form_of(MatchingRule::CaseExactIa5)
        || rule.has_form_of(MatchingRule::Word)
}

fn is_text(syntax: Syntax) -> bool {
    use Syntax::*;
    matches!(
        syntax,
        DirectoryString
            | Ia5String
            | PrintableString
            | CountryString
            | TelephoneNumber
            | NumericString
    )
}

/// What a definition is found by: its OID and its names, in lower case.
fn keys(oid: &str, names: &[String]) -> Vec<Box<str>> {
    let names = names.iter().map(String::as_str);
    std::iter::once(oid).chain(names).map(|key| key.to_ascii_lowercase().into()).collect()
}

/// From names and OIDs in lower case, as octets, to positions. Names in an index are the schema's
/// own, so nobody can choose them to collide.
type Index = HashMap<Box<[u8]>, usize, FxBuildHasher>;

/// From what every definition is found by to its place.
fn index<'d>(
    definitions: impl Iterator<Item = (&'d str, &'d [String])>,
) -> Result<Index, SchemaError> {
    let mut index = Index::default();
    for (position, (oid, names)) in definitions.enumerate() {
        for key in keys(oid, names) {
            if index.insert(key.as_bytes().into(), position).is_some() {
                return Err(SchemaError::new(&key, "is defined twice"));
            }
        }
    }
    Ok(index)
}

/// What to say of a name that is not known: the one that was meant, perhaps.
fn unknown(what: &str, name: &str, index: &Index) -> String {
    let known = index.keys().filter_map(|key| std::str::from_utf8(key).ok());
    let near = nearest(name, known);
    let near = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
    format!("{what} {name} is not known{near}")
}

/// Looks a name up in any case, without allocating.
fn lookup(index: &Index, name: &str) -> Option<usize> {
    let mut buffer = [0; NAME_BYTES_MAX];
    let folded = buffer.get_mut(..name.len())?;
    folded.copy_from_slice(name.as_bytes());
    folded.make_ascii_lowercase();
    index.get(&*folded).copied()
}

#[cfg(test)]
mod tests;
