//! The compiled table against a plain reading of the same rules.

use super::*;
use crate::access::{
    Attributes, Below, Needs, Network, Origin, Over, Place, Rights, Rule, Strength, Target, What,
    Who,
};
use crate::candidate::Candidate;
use keyway_schema::EntryName;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use std::collections::BTreeSet;

/// The entries that are asked about; the first three are subjects as well.
const ENTRIES: [&str; 6] = ["uid=ada", "uid=alan", "uid=kurt", "cn=few", "ou=people", ""];
const ATTRIBUTES: [&str; 4] = ["cn", "sn", "mail", "userPassword"];

fn full(short: &str) -> String {
    match short {
        "" => BASE.to_owned(),
        "ou=people" => PEOPLE.to_owned(),
        uid if uid.starts_with("uid=") => format!("{uid},{PEOPLE}"),
        group => format!("{group},{GROUPS}"),
    }
}

/// Who is in a group, those in its groups too.
fn is_in(entry: &str, group: &str) -> bool {
    match group {
        "cn=few" => entry == "uid=ada",
        "cn=some" => ["uid=ada", "uid=alan"].contains(&entry),
        "cn=outer" => ["uid=ada", "cn=few", "uid=kurt"].contains(&entry),
        _ => false,
    }
}

/// The subjects that an entry's attribute names.
fn names(entry: &str, attribute: &str, subject: &str) -> bool {
    match attribute {
        "manager" => (entry, subject) == ("uid=kurt", "uid=ada"),
        "member" => is_in(subject, entry) && entry == "cn=few",
        _ => false,
    }
}

fn matches(entry: &str, filter: &str) -> bool {
    match filter {
        "(uid=ada)" => entry == "uid=ada",
        "(!(objectClass=person))" => !entry.starts_with("uid="),
        _ => ["uid=ada", "uid=alan"].contains(&entry),
    }
}

fn is_below(entry: &str, below: &Below) -> bool {
    let (entry, top) = (full(entry), &below.dn);
    let is_child = entry.split_once(',').is_some_and(|(_, parent)| parent == top);
    let is_under = entry.ends_with(&format!(",{top}"));
    match below.scope {
        Scope::Base => entry == *top,
        Scope::One => is_child,
        Scope::Subtree => entry == *top || is_under,
        Scope::Subordinate => is_under,
    }
}

/// Whether a rule, read word for word, allows it.
fn allows(
    rule: &Rule,
    subject: Option<&str>,
    over: Over,
    right: Rights,
    attribute: &str,
    entry: &str,
) -> bool {
    let who = match rule.who {
        Who::Everyone => true,
        Who::Users => subject.is_some(),
        Who::Owner => subject == Some(entry),
        Who::Administrator => false,
    };
    let Needs { dns, groups, relations, from, strength, .. } = &rule.needs;
    let one = |list: &[String], is: &dyn Fn(&str) -> bool| {
        list.is_empty() || list.iter().any(|item| is(item))
    };
    let short = |dn: &str| dn.split(',').next().unwrap_or_default().to_owned();
    let subject_is = one(dns, &|dn| subject.is_some_and(|subject| full(subject) == dn))
        && one(groups, &|group| subject.is_some_and(|subject| is_in(subject, &short(group))))
        && one(relations, &|name| subject.is_some_and(|subject| names(entry, name, subject)))
        && (from.is_empty() || from.iter().any(|network| network.holds(over.address.unwrap())))
        && over.strength >= *strength;
    let Target { below, filter, except_members_of } = &rule.target;
    let entry_is = below.as_ref().is_none_or(|below| is_below(entry, below))
        && filter.as_ref().is_none_or(|filter| matches(entry, filter))
        && !except_members_of.iter().any(|group| is_in(entry, &short(group)));
    // `name` has cn and sn below it.
    let lists = |names: &[String]| {
        let is = |name: &String| name == attribute || (name == "name" && attribute.len() == 2);
        names.iter().any(is)
    };
    let attribute_is = match &rule.attributes {
        Attributes::All => true,
        Attributes::Only(names) => lists(names),
        Attributes::Except(names) => !lists(names),
    };
    let allows_everything = rule.attributes == Attributes::All && rule.rights == Rights::ALL;
    let attribute_is = match rule.attributes {
        Attributes::All | Attributes::Except(_) if attribute == "userPassword" => {
            attribute_is && (allows_everything || right == Rights::RESET)
        }
        _ => attribute_is,
    };
    who && subject_is
        && entry_is
        && attribute_is
        && matches!(rule.what, What::Everything | What::Only(Place::Data))
        && rule.rights.contains(right)
}

fn some<T: Clone + std::fmt::Debug + 'static>(
    from: Vec<T>,
    most: usize,
) -> impl Strategy<Value = Vec<T>> {
    prop_oneof![2 => Just(Vec::new()), 1 => subsequence(from, 1..=most)]
}

fn needs() -> impl Strategy<Value = Needs> {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let groups = ["cn=few", "cn=some", "cn=outer", "cn=none"].map(full).to_vec();
    let networks = ["192.0.2.0/24", "198.51.100.7"].map(|text| Network::parse(text).unwrap());
    (
        some(ENTRIES[..3].iter().map(|one| full(one)).collect(), 2),
        some(groups, 2),
        some(texts(&["manager", "member"]), 2),
        some(networks.to_vec(), 2),
        select(vec![Strength::Any, Strength::Any, Strength::Private, Strength::Tls]),
    )
        .prop_map(|(dns, groups, relations, from, strength)| Needs {
            dns,
            groups,
            relations,
            from,
            strength,
            ..Needs::default()
        })
}

fn target() -> impl Strategy<Value = Target> {
    let scope = select(vec![Scope::Base, Scope::One, Scope::Subtree, Scope::Subordinate]);
    let below =
        (select(ENTRIES.to_vec()), scope).prop_map(|(dn, scope)| Below { dn: full(dn), scope });
    let filters = ["(uid=ada)", "(!(objectClass=person))", "(|(uid=ada)(uid=alan))"];
    (
        prop::option::of(below),
        prop::option::weighted(0.3, select(filters.map(str::to_owned).to_vec())),
        some(["cn=few", "cn=some", "cn=outer"].map(full).to_vec(), 2),
    )
        .prop_map(|(below, filter, except_members_of)| Target {
            below,
            filter,
            except_members_of,
        })
}

fn rule() -> impl Strategy<Value = Rule> {
    let attributes = ["cn", "mail", "name", "userPassword"].map(str::to_owned).to_vec();
    let attributes = prop_oneof![
        Just(Attributes::All),
        subsequence(attributes.clone(), 1..3).prop_map(Attributes::Only),
        subsequence(attributes, 1..3).prop_map(Attributes::Except),
    ];
    let rights = subsequence(Rights::EACH.to_vec(), 1..5);
    (
        select(vec![Who::Everyone, Who::Users, Who::Owner, Who::Administrator]),
        needs(),
        select(vec![What::Everything, What::Only(Place::Data), What::Only(Place::System)]),
        target(),
        attributes,
        rights,
    )
        .prop_map(|(who, needs, what, target, attributes, rights)| {
            let rights = rights.iter().fold(Rights::NONE, |all, (_, right)| all | *right);
            Rule { who, needs, what, target, attributes, rights, origin: Origin::BuiltIn }
        })
}

fn over() -> impl Strategy<Value = Over> {
    let addresses = ["192.0.2.9", "198.51.100.7", "2001:db8::1"];
    let address = select(addresses.map(|text| text.parse().ok()).to_vec());
    let strength = select(vec![Strength::Any, Strength::Private, Strength::Certificate]);
    (address, strength).prop_map(|(address, strength)| Over { address, strength })
}

fn fixture() -> Fixture {
    let fixture = filled();
    let members = [full("cn=few"), full("uid=kurt")];
    let members: Vec<&str> = members.iter().map(String::as_str).collect();
    let outer: [(&str, &[&str]); 2] = [("objectClass", &["groupOfNames"]), ("member", &members)];
    fixture.add(&full("cn=outer"), &outer);
    let manager = full("uid=ada");
    let change = change(ChangeOperation::Replace, "manager", &[&manager]);
    fixture.modify(&full("uid=kurt"), vec![change]).unwrap();
    fixture
}

#[test]
fn the_compiled_table_says_what_the_rules_say() {
    let fixture = fixture();
    let snapshot = &fixture.directory.snapshot();
    let cases = (prop::collection::vec(rule(), 0..5), over(), select(vec![0, 1, 2, 3]));
    proptest!(|((rules, over, who) in cases)| {
        let settings = Settings { rules: rules.clone(), ..settings() };
        fixture.directory.reconfigure(&settings).unwrap();
        let short = ENTRIES[..3].get(who).copied();
        let subject = short.map_or_else(Subject::anonymous, |uid| fixture.subject(&full(uid)));
        let subject = subject.over(over);
        fixture.directory.refresh(&subject).unwrap();
        let view = snapshot.permissions(&subject, Place::Data);
        let read = fixture.directory.store.read().unwrap();
        let tree = read.view();
        let mut anywhere = BTreeSet::new();
        for entry in ENTRIES {
            let name = EntryName::parse(&snapshot.schema, &full(entry)).unwrap();
            let id = snapshot.entry_named(tree, &name).unwrap().unwrap();
            let stored = tree.entry(id).unwrap().unwrap();
            let names = std::cell::RefCell::default();
            let candidate = Candidate::stored(snapshot, id, stored, tree, &names);
            for (right_name, right) in Rights::EACH {
                let mut something = false;
                for attribute in ATTRIBUTES {
                    let expected = rules
                        .iter()
                        .any(|rule| allows(rule, short, over, right, attribute, entry));
                    something |= expected;
                    let found = view.may(right, attribute, &candidate).unwrap();
                    prop_assert_eq!(found, expected, "{} {} {}", right_name, attribute, entry);
                    // Asked again it is remembered.
                    prop_assert_eq!(view.may(right, attribute, &candidate).unwrap(), expected);
                }
                if something {
                    anywhere.insert(right_name);
                    prop_assert!(view.may_something(right, &candidate).unwrap());
                    prop_assert!(view.may_anywhere(right));
                }
            }
        }
        for (name, right) in Rights::EACH {
            if !view.may_anywhere(right) {
                prop_assert!(!anywhere.contains(name));
            }
        }
    });
}
