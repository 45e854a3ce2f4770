//! The change of rights, and for which subjects, when one table takes the place of another.
//!
//! A rule of the one is compared with those of the other that cover it: that let at least the same
//! subjects do something on at least the same entries. The rights and attributes that are left of it are
//! the difference. Several rules that cover one only together are not seen to do so, so that a
//! change may be told that is none; none is missed.

use super::secret::Secrets;
use super::{Attributes, Below, Needs, Rights, Rule, Target, What, Who};
use keyway_codec::message::Scope;
use keyway_schema::{EntryName, Schema};
use std::collections::BTreeSet;

/// A right on attributes that one table grants and the other does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The rule that grants it.
    pub rule: Rule,
    /// The part of it that the other table does not grant, by attributes.
    pub left: Vec<(Rights, Attributes)>,
}

/// The rights that `these` rules grant and `those` do not.
pub fn difference(these: &[Rule], those: &[Rule], schema: &Schema) -> Vec<Grant> {
    let secrets = Secrets::new(schema);
    let grants = these.iter().map(|rule| {
        let covering: Vec<&Rule> = those.iter().filter(|one| covers(one, rule, schema)).collect();
        let mut left: Vec<(Rights, Attributes)> = Vec::new();
        for (_, right) in Rights::EACH {
            if let Some(attributes) = left_of(rule, right, &covering, (schema, &secrets)) {
                match left.iter_mut().find(|(_, known)| *known == attributes) {
                    Some((rights, _)) => *rights = *rights | right,
                    None => left.push((right, attributes)),
                }
            }
        }
        Grant { rule: rule.clone(), left }
    });
    grants.filter(|grant| !grant.left.is_empty()).collect()
}

/// The attributes on which a rule grants a right and none of the others does.
fn left_of(
    rule: &Rule,
    right: Rights,
    covering: &[&Rule],
    (schema, secrets): (&Schema, &Secrets),
) -> Option<Attributes> {
    if !rule.rights.contains(right) {
        return None;
    }
    let mut granting = covering.iter().filter(|one| one.rights.contains(right));
    if !right.is_of_attributes() {
        return granting.next().is_none().then_some(Attributes::All);
    }
    let secret = Set::Only(secrets.names().cloned().collect());
    let granted = |one: &Rule| {
        let all = Set::of(&one.attributes, schema);
        if one.withholds_secrets(right) { all.without(&secret) } else { all }
    };
    let mut left = granted(rule);
    for one in granting {
        left = left.without(&granted(one));
    }
    match (left, secret) {
        // That they are left out goes without saying.
        (Set::Except(left), Set::Only(secret)) if rule.withholds_secrets(right) => {
            Set::Except(&left - &secret).into_attributes()
        }
        (left, _) => left.into_attributes(),
    }
}

/// Attributes by their canonical names, or all but some.
enum Set {
    Only(BTreeSet<String>),
    Except(BTreeSet<String>),
}

impl Set {
    fn of(attributes: &Attributes, schema: &Schema) -> Set {
        let expanded = |names: &[String]| {
            let known = names.iter().filter_map(|name| schema.attribute(name));
            known.flat_map(|one| schema.family(one)).map(|one| one.name().to_owned()).collect()
        };
        match attributes {
            Attributes::All => Set::Except(BTreeSet::new()),
            Attributes::Only(names) => Set::Only(expanded(names)),
            Attributes::Except(names) => Set::Except(expanded(names)),
        }
    }

    fn without(self, other: &Set) -> Set {
        match (self, other) {
            (Set::Only(mine), Set::Only(other)) => Set::Only(&mine - other),
            (Set::Only(mine), Set::Except(other)) => Set::Only(&mine & other),
            (Set::Except(mine), Set::Only(other)) => Set::Except(&mine | other),
            (Set::Except(mine), Set::Except(other)) => Set::Only(other - &mine),
        }
    }

    fn into_attributes(self) -> Option<Attributes> {
        let list = |names: BTreeSet<String>| names.into_iter().collect();
        match self {
            Set::Only(names) if names.is_empty() => None,
            Set::Only(names) => Some(Attributes::Only(list(names))),
            Set::Except(names) if names.is_empty() => Some(Attributes::All),
            Set::Except(names) => Some(Attributes::Except(list(names))),
        }
    }
}

/// Whether the wider rule speaks of all subjects and entries that the other one speaks of.
fn covers(wider: &Rule, rule: &Rule, schema: &Schema) -> bool {
    covers_who(wider, rule)
        && covers_needs(&wider.needs, &rule.needs, schema)
        && (wider.what == rule.what || wider.what == What::Everything)
        && covers_target(&wider.target, &rule.target, schema)
}

fn covers_who(wider: &Rule, rule: &Rule) -> bool {
    // A rule whose relation must name the subject speaks only of subjects that are bound.
    let is_bound = rule.who != Who::Everyone || !rule.needs.relations.is_empty();
    match wider.who {
        Who::Everyone => true,
        Who::Users => is_bound,
        Who::Owner | Who::Administrator => wider.who == rule.who,
    }
}

fn covers_needs(wider: &Needs, needs: &Needs, schema: &Schema) -> bool {
    let same_dn = |one: &String, other: &String| same_name(one, other, schema);
    let same_attribute = |one: &String, other: &String| {
        schema.attribute(one).map(|known| known.oid())
            == schema.attribute(other).map(|known| known.oid())
    };
    covers_list(&wider.dns, &needs.dns, same_dn)
        && covers_list(&wider.subtrees, &needs.subtrees, |one, other| {
            let (one, other) = (EntryName::parse(schema, one), EntryName::parse(schema, other));
            matches!((one, other), (Ok(one), Ok(other)) if other.is_within(&one))
        })
        && covers_list(&wider.groups, &needs.groups, same_dn)
        && covers_list(&wider.relations, &needs.relations, same_attribute)
        && covers_list(&wider.from, &needs.from, |one, other| one.covers(other))
        && wider.strength <= needs.strength
}

/// Whether every one of a list is covered by one of the other; an empty one demands nothing.
fn covers_list<T>(wider: &[T], list: &[T], covers: impl Fn(&T, &T) -> bool) -> bool {
    let is_covered = |one: &T| wider.iter().any(|other| covers(other, one));
    wider.is_empty() || (!list.is_empty() && list.iter().all(is_covered))
}

fn covers_target(wider: &Target, target: &Target, schema: &Schema) -> bool {
    let below = match (&wider.below, &target.below) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(wider), Some(below)) => covers_part(wider, below, schema),
    };
    let same_dn = |one: &String, other: &String| same_name(one, other, schema);
    // Members that the wider one leaves out, the other must leave out too.
    let leaves_out =
        |group: &String| target.except_members_of.iter().any(|other| same_dn(group, other));
    below
        && (wider.filter.is_none() || wider.filter == target.filter)
        && wider.except_members_of.iter().all(leaves_out)
}

fn covers_part(wider: &Below, below: &Below, schema: &Schema) -> bool {
    let (Ok(top), Ok(other)) =
        (EntryName::parse(schema, &wider.dn), EntryName::parse(schema, &below.dn))
    else {
        return false;
    };
    let is_same = top.canonical() == other.canonical();
    match wider.scope {
        Scope::Subtree => other.is_within(&top),
        Scope::Subordinate => {
            let leaves_out_top = matches!(below.scope, Scope::One | Scope::Subordinate);
            if is_same { leaves_out_top } else { other.is_within(&top) }
        }
        Scope::One => {
            let is_child =
                below.scope == Scope::Base && other.parent().canonical() == top.canonical();
            (is_same && below.scope == Scope::One) || is_child
        }
        Scope::Base => is_same && below.scope == Scope::Base,
    }
}

fn same_name(one: &str, other: &str, schema: &Schema) -> bool {
    match (EntryName::parse(schema, one), EntryName::parse(schema, other)) {
        (Ok(one), Ok(other)) => one.canonical() == other.canonical(),
        _ => false,
    }
}
