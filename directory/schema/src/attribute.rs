//! Attribute types, with all that they inherit filled in (RFC 4512 § 4.1.2).

use crate::error::SchemaError;
use crate::index::{Index, lookup, unknown};
use crate::limits::DESCRIPTOR_BYTES_MAX;
use keyway_codec::description::{AttributeTypeDescription, Usage};
use keyway_codec::syntax::{MatchingRule, RuleKind, Syntax};

/// An attribute type.
#[derive(Debug)]
pub struct AttributeType {
    pub(crate) position: usize,
    pub(crate) sup: Option<usize>,
    pub(crate) family: Vec<usize>,
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

    /// The type that it derives from, by its position.
    pub(crate) fn sup(&self) -> Option<usize> {
        self.sup
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

/// The attribute type that is described at this position. Rules and syntaxes that are not known are
/// taken for others, with a warning: entries are kept, if not found by all that they were found by.
pub(crate) fn build(
    position: usize,
    descriptions: &[AttributeTypeDescription],
    index: &Index,
    warnings: &mut Vec<SchemaError>,
) -> Result<AttributeType, SchemaError> {
    let Some(description) = descriptions.get(position) else {
        return Err(SchemaError::new("?", "is not there"));
    };
    let name = description.names.first().unwrap_or(&description.oid);
    let wrong = |why: String| SchemaError::new(name, why);
    if description.names.iter().chain([name]).any(|name| name.len() > DESCRIPTOR_BYTES_MAX) {
        return Err(wrong(format!("its name is longer than {DESCRIPTOR_BYTES_MAX} bytes")));
    }
    let line = lineage(description, descriptions, index).map_err(wrong)?;
    let inherited = |own: fn(&AttributeTypeDescription) -> Option<&String>| {
        line.iter().find_map(|description| own(description))
    };
    let mut warn = |why: String| warnings.push(SchemaError::new(name, why));
    let equality_name = inherited(|description| description.equality.as_ref());
    let equality = equality_name.and_then(|name| rule(name));
    let syntax_oid = line
        .iter()
        .find_map(|description| description.syntax.as_ref())
        .map(|syntax| syntax.oid.as_str())
        .ok_or_else(|| wrong("has no syntax, nor has a supertype".into()))?;
    let known = syntax_of(syntax_oid);
    // If the syntax is unknown, only the rule says something of the values.
    let syntax =
        known.unwrap_or_else(|| equality.map_or(Syntax::OctetString, MatchingRule::syntax));
    let is_new = description.syntax.is_some();
    if known.is_none() && is_new {
        warn(format!("syntax {syntax_oid} is not known; taken for {}", syntax.name()));
    }
    let usual = MatchingRule::usual_equality(syntax).unwrap_or(MatchingRule::OctetString);
    let mut known = |named: Option<&String>, own: bool, kind, usual: Option<MatchingRule>| {
        let named = named?;
        let found = rule(named);
        // Some name the equality rule everywhere.
        let meant = found.filter(|rule| rule.kind() == kind).or(usual);
        if found.is_none() && own {
            let instead = meant.map_or("none", MatchingRule::name);
            warn(format!("matching rule {named} is not known here; taken for {instead}"));
        }
        meant
    };
    let equality =
        known(equality_name, description.equality.is_some(), RuleKind::Equality, Some(usual));
    let ordering = known(
        inherited(|description| description.ordering.as_ref()),
        description.ordering.is_some(),
        RuleKind::Ordering,
        equality.and_then(MatchingRule::usual_ordering),
    );
    let substrings = known(
        inherited(|description| description.substring.as_ref()),
        description.substring.is_some(),
        RuleKind::Substrings,
        equality.and_then(MatchingRule::usual_substrings),
    );
    Ok(AttributeType {
        position,
        sup: description.sup.as_deref().and_then(|sup| lookup(index, sup)),
        family: vec![position],
        equality,
        ordering,
        substrings,
        syntax,
        description: published(description, syntax, [equality, ordering, substrings]),
    })
}

/// As it is shown to clients: with the rules and the syntax that it was taken for, where it names some
/// that are not known or not published.
fn published(
    description: &AttributeTypeDescription,
    syntax: Syntax,
    [equality, ordering, substrings]: [Option<MatchingRule>; 3],
) -> AttributeTypeDescription {
    let mut shown = description.clone();
    let rules = [
        (&mut shown.equality, equality),
        (&mut shown.ordering, ordering),
        (&mut shown.substring, substrings),
    ];
    for (named, taken) in rules {
        if named.as_ref().is_some_and(|name| rule(name).is_none_or(|rule| Some(rule) != taken)) {
            *named = taken.map(|rule| rule.name().to_owned());
        }
    }
    if let Some(named) = shown.syntax.as_mut()
        && Syntax::from_oid(&named.oid).is_none()
    {
        syntax.oid().clone_into(&mut named.oid);
    }
    shown
}

/// The matching rule of a name or OID.
pub(crate) fn rule(name: &str) -> Option<MatchingRule> {
    MatchingRule::from_name(name).or_else(|| MatchingRule::from_oid(name))
}

/// The syntax of an OID, also of one that another server has given to a syntax that is known.
pub(crate) fn syntax_of(oid: &str) -> Option<Syntax> {
    Syntax::from_oid(oid).or(match oid {
        // Active Directory's: strings, large integers, security descriptors.
        "1.2.840.113556.1.4.905" => Some(Syntax::DirectoryString),
        "1.2.840.113556.1.4.906" => Some(Syntax::Integer),
        "1.2.840.113556.1.4.907" => Some(Syntax::OctetString),
        _ => None,
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
            .ok_or_else(|| unknown("supertype", sup, index))?;
        if line.len() > descriptions.len() {
            return Err("derives from itself".into());
        }
        line.push(last);
    }
    Ok(line)
}

/// Enters every type into the family of each of its supertypes.
pub(crate) fn link_families(attributes: &mut [AttributeType]) {
    for position in 0..attributes.len() {
        let mut above = attributes.get(position).and_then(|attribute| attribute.sup);
        while let Some(supertype) = above.and_then(|sup| attributes.get_mut(sup)) {
            supertype.family.push(position);
            above = supertype.sup;
        }
    }
}
