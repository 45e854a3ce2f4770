//! Attribute types, with all that they inherit filled in (RFC 4512 § 4.1.2).

use super::{Index, NAME_BYTES_MAX, SchemaError, lookup};
use keyway_codec::description::{AttributeTypeDescription, Usage};
use keyway_codec::syntax::{MatchingRule, Syntax};

/// An attribute type.
#[derive(Debug)]
pub struct AttributeType {
    pub(super) position: usize,
    pub(super) sup: Option<usize>,
    pub(super) family: Vec<usize>,
    description: AttributeTypeDescription,
    equality: Option<MatchingRule>,
    ordering: Option<MatchingRule>,
    substrings: Option<MatchingRule>,
    syntax: Syntax,
}

impl AttributeType {
    /// The canonical name: the first one, or the OID.
    pub fn name(&self) -> &str {
        self.description.names.first().unwrap_or(&self.description.oid)
    }

    /// The numeric OID.
    pub fn oid(&self) -> &str {
        &self.description.oid
    }

    /// As it was described, for the subschema.
    pub fn description(&self) -> &AttributeTypeDescription {
        &self.description
    }

    /// The rule by which values are equal, its own or inherited.
    pub fn equality(&self) -> Option<MatchingRule> {
        self.equality
    }

    /// The rule by which values are ordered.
    pub fn ordering(&self) -> Option<MatchingRule> {
        self.ordering
    }

    /// The rule by which values are found by their parts.
    pub fn substrings(&self) -> Option<MatchingRule> {
        self.substrings
    }

    /// The syntax of values.
    pub fn syntax(&self) -> Syntax {
        self.syntax
    }

    /// Whether an entry has at most one value of it.
    pub fn is_single_value(&self) -> bool {
        self.description.single_value
    }

    /// Whether only the server sets it.
    pub fn is_read_only(&self) -> bool {
        self.description.no_user_modification
    }

    /// Whether it is returned only when asked for (RFC 4512 § 3.4).
    pub fn is_operational(&self) -> bool {
        self.description.usage != Usage::UserApplications
    }
}

impl PartialEq for AttributeType {
    fn eq(&self, other: &Self) -> bool {
        self.position == other.position
    }
}

/// The attribute type that is described at this position.
pub(super) fn build(
    position: usize,
    descriptions: &[AttributeTypeDescription],
    index: &Index,
) -> Result<AttributeType, SchemaError> {
    let Some(description) = descriptions.get(position) else {
        return Err(SchemaError::new("?", "is not there"));
    };
    let name = description.names.first().unwrap_or(&description.oid);
    let wrong = |why: String| SchemaError::new(name, why);
    if name.len() > NAME_BYTES_MAX {
        return Err(wrong(format!("its name is longer than {NAME_BYTES_MAX} bytes")));
    }
    let line = lineage(description, descriptions, index).map_err(wrong)?;
    let inherited = |own: fn(&AttributeTypeDescription) -> Option<&String>| {
        line.iter().find_map(|description| own(description))
    };
    let rule = |name: Option<&String>| match name {
        Some(name) => MatchingRule::from_name(name)
            .or_else(|| MatchingRule::from_oid(name))
            .map(Some)
            .ok_or_else(|| wrong(format!("matching rule {name} is not known"))),
        None => Ok(None),
    };
    let syntax = line
        .iter()
        .find_map(|description| description.syntax.as_ref())
        .ok_or_else(|| wrong("has no syntax, nor has a supertype".into()))?;
    Ok(AttributeType {
        position,
        sup: description.sup.as_deref().and_then(|sup| lookup(index, sup)),
        family: vec![position],
        equality: rule(inherited(|description| description.equality.as_ref()))?,
        ordering: rule(inherited(|description| description.ordering.as_ref()))?,
        substrings: rule(inherited(|description| description.substring.as_ref()))?,
        // Of values of an unknown syntax nothing is known: they are octets.
        syntax: Syntax::from_oid(&syntax.oid).unwrap_or(Syntax::OctetString),
        description: description.clone(),
    })
}

/// The description and those it derives from, itself first.
fn lineage<'d>(
    description: &'d AttributeTypeDescription,
    descriptions: &'d [AttributeTypeDescription],
    index: &Index,
) -> Result<Vec<&'d AttributeTypeDescription>, String> {
    let mut line = vec![description];
    let mut last = description;
    while let Some(sup) = &last.sup {
        last = lookup(index, sup)
            .and_then(|position| descriptions.get(position))
            .ok_or_else(|| format!("supertype {sup} is not known"))?;
        if line.len() > descriptions.len() {
            return Err("derives from itself".into());
        }
        line.push(last);
    }
    Ok(line)
}

/// Enters every type into the family of each of its supertypes.
pub(super) fn link_families(attributes: &mut [AttributeType]) {
    for position in 0..attributes.len() {
        let mut above = attributes.get(position).and_then(|attribute| attribute.sup);
        while let Some(supertype) = above.and_then(|sup| attributes.get_mut(sup)) {
            supertype.family.push(position);
            above = supertype.sup;
        }
    }
}
