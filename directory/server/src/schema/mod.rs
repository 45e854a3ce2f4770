//! The schema: which attributes and object classes there are, and what they demand.
//!
//! Built once from RFC 4512 descriptions and never changed, so that it is shared without locks.
//! Every attribute has one canonical name, its first; entries are stored under canonical names.

mod attribute;
mod check;
mod class;
mod describe;

pub use attribute::AttributeType;
pub use check::{Attributes, OBJECT_CLASS, check_entry, complete_classes};
pub use class::ObjectClass;
pub use describe::{Description, base, has_options};

use keyway_codec::description::{AttributeTypeDescription, ObjectClassDescription};
use keyway_codec::standard;
use keyway_codec::syntax::{Descriptors, MatchingRule, Syntax};
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};

/// A name this long is not in any schema.
const NAME_BYTES_MAX: usize = 128;

/// The attribute types and object classes that this server knows.
pub struct Schema {
    attributes: Vec<AttributeType>,
    classes: Vec<ObjectClass>,
    attribute_index: Index,
    class_index: Index,
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
        write!(f, "schema definition {}: {}", self.definition, self.why)
    }
}

impl std::error::Error for SchemaError {}

impl SchemaError {
    fn new(definition: &str, why: impl Into<String>) -> Self {
        SchemaError { definition: definition.into(), why: why.into() }
    }
}

impl Schema {
    /// The standard definitions.
    ///
    /// # Errors
    /// None, as a test shows; the type is that of any schema.
    pub fn standard() -> Result<Schema, SchemaError> {
        Schema::new(standard::ATTRIBUTE_TYPES, standard::OBJECT_CLASSES)
    }

    /// A schema of these descriptions. What a definition refers to may come after it.
    ///
    /// # Errors
    /// The first definition that is malformed, there twice, or refers to what is not there.
    pub fn new(attributes: &[&str], classes: &[&str]) -> Result<Schema, SchemaError> {
        let mut schema = Schema {
            attributes: Vec::new(),
            classes: Vec::new(),
            attribute_index: Index::default(),
            class_index: Index::default(),
        };
        schema.add_attributes(attributes)?;
        schema.add_classes(classes)?;
        Ok(schema)
    }

    fn add_attributes(&mut self, texts: &[&str]) -> Result<(), SchemaError> {
        let descriptions = texts
            .iter()
            .map(|text| {
                AttributeTypeDescription::parse(text)
                    .map_err(|error| SchemaError::new(text, error.to_string()))
            })
            .collect::<Result<Vec<_>, _>>()?;
        for (position, description) in descriptions.iter().enumerate() {
            for name in keys(&description.oid, &description.names) {
                if self.attribute_index.insert(name.clone(), position).is_some() {
                    return Err(SchemaError::new(&name, "is defined twice"));
                }
            }
        }
        for position in 0..descriptions.len() {
            let attribute = attribute::build(position, &descriptions, &self.attribute_index)?;
            self.attributes.push(attribute);
        }
        attribute::link_families(&mut self.attributes);
        Ok(())
    }

    fn add_classes(&mut self, texts: &[&str]) -> Result<(), SchemaError> {
        let descriptions = texts
            .iter()
            .map(|text| {
                ObjectClassDescription::parse(text)
                    .map_err(|error| SchemaError::new(text, error.to_string()))
            })
            .collect::<Result<Vec<_>, _>>()?;
        for (position, description) in descriptions.iter().enumerate() {
            for name in keys(&description.oid, &description.names) {
                if self.class_index.insert(name.clone(), position).is_some() {
                    return Err(SchemaError::new(&name, "is defined twice"));
                }
            }
        }
        for position in 0..descriptions.len() {
            let class =
                class::build(position, &descriptions, &self.class_index, &self.attribute_index)?;
            self.classes.push(class);
        }
        Ok(())
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

    /// All attribute types, in the order they were defined.
    pub fn attributes(&self) -> &[AttributeType] {
        &self.attributes
    }

    /// All object classes, in the order they were defined.
    pub fn classes(&self) -> &[ObjectClass] {
        &self.classes
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

/// From names and OIDs in lower case to positions.
type Index = HashMap<Box<str>, usize, BuildHasherDefault<Fnv>>;

/// The hash FNV-1a. Names in an index are the schema's own, so nobody can choose them to collide.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Looks a name up in any case, without allocating.
fn lookup(index: &Index, name: &str) -> Option<usize> {
    let mut buffer = [0; NAME_BYTES_MAX];
    let folded = buffer.get_mut(..name.len())?;
    folded.copy_from_slice(name.as_bytes());
    folded.make_ascii_lowercase();
    index.get(std::str::from_utf8(folded).ok()?).copied()
}

#[cfg(test)]
mod tests;
