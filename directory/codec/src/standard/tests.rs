//! That the definitions are well formed, unique, and refer to what is there.

use std::collections::{BTreeMap, BTreeSet};

use super::{ATTRIBUTE_TYPES, OBJECT_CLASSES};
use crate::description::{AttributeTypeDescription, ClassKind, ObjectClassDescription, Usage};
use crate::syntax::{MatchingRule, RuleKind, Syntax};

fn attribute_types() -> Vec<AttributeTypeDescription> {
    let parse = |text: &&str| {
        AttributeTypeDescription::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    };
    ATTRIBUTE_TYPES.iter().map(parse).collect()
}

fn object_classes() -> Vec<ObjectClassDescription> {
    let parse = |text: &&str| {
        ObjectClassDescription::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    };
    OBJECT_CLASSES.iter().map(parse).collect()
}

/// Every name and OID in lower case, each once over both kinds: DNs and filters have one namespace.
fn known() -> BTreeMap<String, &'static str> {
    let attributes = attribute_types().into_iter().map(|a| (a.oid, a.names, "attribute"));
    let classes = object_classes().into_iter().map(|c| (c.oid, c.names, "class"));
    let mut known = BTreeMap::new();
    for (oid, names, kind) in attributes.chain(classes) {
        assert!(!names.is_empty(), "{oid} has no name");
        for key in names.into_iter().chain([oid]) {
            let key = key.to_ascii_lowercase();
            assert!(known.insert(key.clone(), kind).is_none(), "{key} is defined twice");
        }
    }
    known
}

#[test]
fn every_definition_is_found() {
    let lines = |text: &str| text.lines().filter(|line| line.starts_with('(')).count();
    assert_eq!(ATTRIBUTE_TYPES.len(), lines(super::ATTRIBUTE_TYPE_TEXT));
    assert_eq!(OBJECT_CLASSES.len(), lines(super::OBJECT_CLASS_TEXT));
    assert!(ATTRIBUTE_TYPES.len() > 150 && OBJECT_CLASSES.len() > 50);
}

#[test]
fn attribute_types_refer_to_what_is_there() {
    let known = known();
    for attribute in attribute_types() {
        let name = &attribute.names[0];
        if let Some(sup) = &attribute.sup {
            assert_eq!(known.get(&sup.to_ascii_lowercase()), Some(&"attribute"), "{name}: {sup}");
        }
        let rules = [
            (&attribute.equality, RuleKind::Equality),
            (&attribute.ordering, RuleKind::Ordering),
            (&attribute.substring, RuleKind::Substrings),
        ];
        for (rule, kind) in rules {
            let Some(rule) = rule else { continue };
            let found = MatchingRule::from_name(rule);
            assert_eq!(found.map(MatchingRule::kind), Some(kind), "{name}: {rule}");
        }
        if let Some(syntax) = &attribute.syntax {
            assert!(Syntax::from_oid(&syntax.oid).is_some(), "{name}: {}", syntax.oid);
        }
        let operational = attribute.usage != Usage::UserApplications;
        assert!(operational || !attribute.no_user_modification, "{name}");
    }
}

#[test]
fn object_classes_refer_to_what_is_there() {
    let known = known();
    for class in object_classes() {
        let name = &class.names[0];
        for sup in &class.sup {
            assert_eq!(known.get(&sup.to_ascii_lowercase()), Some(&"class"), "{name}: {sup}");
        }
        for attribute in class.must.iter().chain(&class.may) {
            let found = known.get(&attribute.to_ascii_lowercase());
            assert_eq!(found, Some(&"attribute"), "{name}: {attribute}");
        }
        let twice = class.must.iter().find(|must| class.may.contains(must));
        assert_eq!(twice, None, "{name} allows what it demands");
        let without_sup = class.kind == ClassKind::Abstract || name == "subschema";
        assert_eq!(class.sup.is_empty(), without_sup, "{name}");
    }
}

#[test]
fn supertypes_lead_to_a_syntax() {
    let attributes = attribute_types();
    for attribute in &attributes {
        let mut seen = BTreeSet::new();
        let mut at = attribute;
        while at.syntax.is_none() {
            assert!(seen.insert(&at.oid), "{} derives from itself", at.oid);
            let sup = at.sup.as_deref().unwrap();
            at = attributes.iter().find(|above| above.names.iter().any(|n| n == sup)).unwrap();
        }
    }
}

/// The published text is written by `Display`, and must say the same.
#[test]
fn what_is_written_says_the_same() {
    for attribute in attribute_types() {
        let text = attribute.to_string();
        assert_eq!(AttributeTypeDescription::parse(&text), Ok(attribute), "{text}");
    }
    for class in object_classes() {
        let text = class.to_string();
        assert_eq!(ObjectClassDescription::parse(&text), Ok(class), "{text}");
    }
}
