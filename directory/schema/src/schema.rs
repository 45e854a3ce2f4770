//! The attribute types and object classes that there are, found by their names.

use crate::attribute::{self, AttributeType};
use crate::class::{self, ObjectClass};
use crate::error::SchemaError;
use crate::index::{Index, index, lookup, unknown};
use keyway_codec::description::{AttributeTypeDescription, ObjectClassDescription};
use keyway_codec::syntax::{Descriptors, MatchingRule};
use std::fmt;

/// The attribute types and object classes that this server knows.
pub struct Schema {
    pub(crate) attributes: Vec<AttributeType>,
    pub(crate) classes: Vec<ObjectClass>,
    attribute_index: Index,
    class_index: Index,
    warnings: Vec<SchemaError>,
}

impl Schema {
    /// A schema of these descriptions. A definition may refer to one that comes after it.
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

    /// A schema of descriptions that have been parsed.
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

    /// The parts of definitions that were not understood and were taken for something else: matching
    /// rules and syntaxes that this server does not know.
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

    /// The message about an attribute that is not known.
    pub fn unknown_attribute(&self, name: &str) -> String {
        unknown("attribute", name, &self.attribute_index)
    }

    /// The message about an object class that is not known.
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
