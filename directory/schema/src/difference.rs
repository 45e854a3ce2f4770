//! The differences between two schemas, and whether an entry of the one is as well one of the other.

use crate::attribute::AttributeType;
use crate::check::{EntryAttributes, OBJECT_CLASS, check_entry, check_loosely};
use crate::class::ObjectClass;
use crate::describe::base;
use crate::name::NamePart;
use crate::schema::Schema;
use keyway_codec::dn::Dn;
use keyway_codec::syntax::{MatchingRule, Syntax};
use std::collections::HashSet;

/// Names that are shown of all that differ.
const SHOWN_MAX: usize = 8;

/// Definitions of an old schema that a new one lacks or has otherwise. Those that are only in the new one are
/// no difference: no entry uses them.
pub struct Difference<'s> {
    old: &'s Schema,
    new: &'s Schema,
    /// Canonical names of attribute types.
    attributes: HashSet<&'s str>,
    /// OIDs of object classes.
    classes: HashSet<&'s str>,
}

impl<'s> Difference<'s> {
    /// Compares them.
    pub fn new(old: &'s Schema, new: &'s Schema) -> Difference<'s> {
        let attributes = old.attributes().iter().filter(|one| !is_kept(old, one, new));
        let classes = old.classes().iter().filter(|one| !is_class_kept(old, one, new));
        Difference {
            old,
            new,
            attributes: attributes.map(AttributeType::name).collect(),
            classes: classes.map(ObjectClass::oid).collect(),
        }
    }

    /// Whether every entry of the old schema is one of the new.
    pub fn is_empty(&self) -> bool {
        self.attributes.is_empty() && self.classes.is_empty()
    }

    /// The differences in words: the first names.
    pub fn shown(&self) -> String {
        let class = |oid: &&str| self.old.class(oid).map(ObjectClass::name);
        let mut names: Vec<&str> = self.attributes.iter().copied().collect();
        names.extend(self.classes.iter().filter_map(class));
        names.sort_unstable();
        let more = names.len().saturating_sub(SHOWN_MAX);
        names.truncate(SHOWN_MAX);
        let shown = names.join(", ");
        if more == 0 { shown } else { format!("{shown} or {more} other definitions") }
    }

    /// The reason against keeping an entry under the new schema; `None` if there is none.
    pub fn contradiction(&self, rdn: &str, attributes: &EntryAttributes) -> Option<String> {
        self.of_values(attributes)
            .or_else(|| self.of_names(rdn, attributes))
            .or_else(|| self.of_classes(attributes))
    }

    /// Attributes that are there, and values that would be equal to others than now.
    fn of_values(&self, attributes: &EntryAttributes) -> Option<String> {
        let touched = |name: &&(String, Vec<Vec<u8>>)| self.attributes.contains(base(&name.0));
        for (name, values) in attributes.iter().filter(touched) {
            let (old, name) = (self.old.attribute(base(name))?, base(name));
            let new = match self.new.attribute(old.oid()) {
                Some(new) if new.name() == old.name() => new,
                Some(new) => {
                    return Some(format!("it has attribute {name}, not {}", new.name()));
                }
                None => return Some(format!("it has attribute {name}")),
            };
            if old.is_operational() != new.is_operational() || is_moved(self.old, old, self.new) {
                return Some(format!("it has attribute {name}"));
            }
            if values.iter().any(|value| new.syntax().validate_imported(value).is_err()) {
                return Some(format!("a value of attribute {name} is not of the new syntax"));
            }
            let differs = |value: &Vec<u8>| {
                let form = |schema: &Schema, one: &AttributeType| {
                    one.equality().map(|rule| schema.normalize(rule, value))
                };
                form(self.old, old) != form(self.new, new)
            };
            if old.equality() != new.equality() && values.iter().any(differs) {
                return Some(format!("a value of attribute {name} would be equal to others"));
            }
            let parts = |value: &Vec<u8>| {
                let form = |schema: &Schema, rule: Option<MatchingRule>| {
                    rule.map(|rule| schema.normalize(rule, value))
                };
                let (old, new) =
                    (form(self.old, old.substrings()), form(self.new, new.substrings()));
                old.is_some() && new.is_some() && old != new
            };
            if old.substrings() != new.substrings() && values.iter().any(parts) {
                return Some(format!("attribute {name} is found by its parts in another way"));
            }
        }
        None
    }

    /// Names and OIDs as values, and the entry's own RDN.
    fn of_names(&self, rdn: &str, attributes: &EntryAttributes) -> Option<String> {
        let parts = |schema: &Schema| {
            let dn = Dn::parse(rdn).ok()?;
            let part = |rdn| Some(NamePart::new(schema, rdn).ok()?.component);
            Some(dn.rdns.iter().map(part).collect::<Vec<_>>())
        };
        if parts(self.old) != parts(self.new) {
            return Some("it is named by it".into());
        }
        for (name, values) in attributes {
            let Some(attribute) = self.old.attribute(base(name)) else { continue };
            let refers =
                matches!(attribute.syntax(), Syntax::Dn | Syntax::NameAndOptionalUid | Syntax::Oid);
            let Some(rule) = attribute.equality().filter(|_| refers && name != OBJECT_CLASS) else {
                continue;
            };
            let form = |schema: &Schema, value: &[u8]| schema.normalize(rule, value);
            if values.iter().any(|value| form(self.old, value) != form(self.new, value)) {
                return Some(format!("a value of its attribute {name} refers to it"));
            }
        }
        None
    }

    /// Classes, and what they demand and allow.
    fn of_classes(&self, attributes: &EntryAttributes) -> Option<String> {
        let values = attributes.iter().find(|(name, _)| name == OBJECT_CLASS);
        let classes = values.into_iter().flat_map(|(_, values)| values);
        let mut touched = attributes.iter().any(|(name, _)| self.attributes.contains(base(name)));
        for value in classes {
            let name = str::from_utf8(value).unwrap_or_default();
            let Some(old) = self.old.class(name) else { continue };
            match self.new.class(name) {
                Some(new) if new.oid() == old.oid() => {}
                _ => return Some(format!("it is of object class {name}")),
            }
            touched |= self.classes.contains(old.oid());
        }
        if !touched {
            return None;
        }
        // An entry that was let in as it was stays so.
        match check_entry(self.old, attributes, &[]) {
            Ok(_) => check_entry(self.new, attributes, &[]).err(),
            Err(_) => check_loosely(self.new, attributes, &[]).err(),
        }
        .map(|violation| violation.why)
    }
}

/// Whether an attribute type means in the new schema what it means in the old one.
fn is_kept(old: &Schema, attribute: &AttributeType, new: &Schema) -> bool {
    let Some(other) = new.attribute(attribute.oid()) else { return false };
    let names = attribute.description().names.iter();
    other.name() == attribute.name()
        && names.map(|name| new.attribute(name)).all(|found| found == Some(other))
        && other.equality() == attribute.equality()
        && other.substrings() == attribute.substrings()
        && other.syntax() == attribute.syntax()
        && other.is_operational() == attribute.is_operational()
        && (attribute.is_single_value() || !other.is_single_value())
        && !is_moved(old, attribute, new)
}

/// Whether the types above it are others.
fn is_moved(old: &Schema, attribute: &AttributeType, new: &Schema) -> bool {
    let above = |schema: &Schema| {
        let mut oids = Vec::new();
        let mut at = schema.attribute(attribute.oid());
        while let Some(above) = at.and_then(AttributeType::sup) {
            at = schema.attributes().get(above);
            oids.extend(at.map(|one| one.oid().to_owned()));
        }
        oids
    };
    above(old) != above(new)
}

/// Whether every entry of the class is allowed what it has, and demanded no more.
fn is_class_kept(old: &Schema, class: &ObjectClass, new: &Schema) -> bool {
    let Some(other) = new.class(class.oid()) else { return false };
    let names = class.description().names.iter();
    let oid =
        |schema: &Schema, at: &usize| schema.attributes().get(*at).map(|a| a.oid().to_owned());
    let must = |schema: &Schema, class: &ObjectClass| -> HashSet<_> {
        class.must().iter().filter_map(|at| oid(schema, at)).collect()
    };
    let allowed = |schema: &Schema, class: &ObjectClass| -> HashSet<_> {
        let positions = class.must().iter().chain(class.may());
        positions.filter_map(|at| oid(schema, at)).collect()
    };
    let above = |schema: &Schema, class: &ObjectClass| -> HashSet<_> {
        let positions = class.superclasses().iter();
        positions.filter_map(|at| schema.classes().get(*at)).map(|c| c.oid().to_owned()).collect()
    };
    names.map(|name| new.class(name)).all(|found| found == Some(other))
        && other.kind() == class.kind()
        && other.may_stand_alone() == class.may_stand_alone()
        && above(old, class) == above(new, other)
        && must(new, other).is_subset(&must(old, class))
        && allowed(old, class).is_subset(&allowed(new, other))
}
