//! Attributes with many values, across the number from which on they lie apart: against plain sets.

use super::export::exported;
use super::*;
use crate::index::{IndexKind, IndexSetting};
use crate::{ImportOptions, large};
use keyway_store::EntryId;
use proptest::prelude::*;
use proptest::sample::Index;
use std::collections::{BTreeMap, BTreeSet};

/// One with names, one that shares an index with it, and one that is found by parts of its values.
const ATTRIBUTES: [&str; 3] = ["member", "seeAlso", "businessCategory"];
const VALUES: usize = 30;

type Model = BTreeMap<&'static str, BTreeSet<usize>>;

#[derive(Clone, Debug)]
struct Edit {
    operation: ChangeOperation,
    attribute: &'static str,
    values: BTreeSet<usize>,
    /// In capital letters, which makes no difference.
    loud: bool,
}

fn value(n: usize) -> String {
    let uid = ["ada", "alan", "kurt"].get(n).map_or(format!("m{n}"), |uid| (*uid).to_owned());
    format!("uid={uid},{PEOPLE}")
}

fn edit() -> impl Strategy<Value = Edit> {
    let operation = prop_oneof![
        3 => Just(ChangeOperation::Add),
        3 => Just(ChangeOperation::Delete),
        1 => Just(ChangeOperation::Replace),
    ];
    let values = prop_oneof![
        4 => prop::collection::btree_set(0..VALUES, 1..3),
        2 => prop::collection::btree_set(0..VALUES, 0..VALUES),
    ];
    (operation, 0..3usize, values, any::<bool>()).prop_map(|(operation, at, values, loud)| Edit {
        operation,
        attribute: ATTRIBUTES[at],
        values,
        loud,
    })
}

/// The result that a server has for a change, which it makes only then.
fn expected(model: &mut Model, edits: &[Edit]) -> ResultCode {
    // A change that is no request is refused before anything is looked at (RFC 4511 § 4.6).
    if edits.iter().any(|edit| edit.operation == ChangeOperation::Add && edit.values.is_empty()) {
        return ResultCode::ProtocolError;
    }
    let before = model.clone();
    for Edit { operation, attribute, values, .. } in edits {
        let held = model.entry(attribute).or_default();
        let code = match operation {
            ChangeOperation::Add if !held.is_disjoint(values) => ResultCode::AttributeOrValueExists,
            ChangeOperation::Delete if held.is_empty() || !values.is_subset(held) => {
                ResultCode::NoSuchAttribute
            }
            _ => ResultCode::Success,
        };
        if code != ResultCode::Success {
            *model = before;
            return code;
        }
        match operation {
            ChangeOperation::Add => held.extend(values),
            ChangeOperation::Delete if values.is_empty() => held.clear(),
            ChangeOperation::Delete => held.retain(|n| !values.contains(n)),
            _ => *held = values.clone(),
        }
    }
    ResultCode::Success
}

fn try_edits(fixture: &Fixture, dn: &str, edits: &[Edit]) -> ResultCode {
    let spelled = |edit: &Edit| -> Vec<String> {
        let values = edit.values.iter().copied().map(value);
        values.map(|value| if edit.loud { value.to_uppercase() } else { value }).collect()
    };
    let texts: Vec<Vec<String>> = edits.iter().map(spelled).collect();
    let changes = edits.iter().zip(&texts).map(|(edit, texts)| {
        let values: Vec<&str> = texts.iter().map(String::as_str).collect();
        change(edit.operation, edit.attribute, &values)
    });
    code(fixture.modify(dn, changes.collect()))
}

fn compare(fixture: &Fixture, dn: &str, name: &str, model: &Model, asked: &[Index]) {
    let found = fixture.read(dn, &["*"]);
    for attribute in ATTRIBUTES {
        let held = model.get(attribute).cloned().unwrap_or_default();
        let lower = |value: &String| value.to_lowercase();
        let values: BTreeSet<String> = found.values(attribute).iter().map(lower).collect();
        assert_eq!(values, held.iter().copied().map(value).collect(), "{attribute}");
        assert_eq!(found.values(attribute).len(), held.len());
        for n in asked.iter().map(|index| index.index(VALUES)) {
            let base = SearchRequest { base: dn, scope: Scope::Base, ..request("(cn=*)") };
            let asks = |filter: &str| {
                let filter = Filter::parse(filter).unwrap();
                fixture.search(&SearchRequest { filter, ..base.clone() }).entries.len() == 1
            };
            let equal = format!("({attribute}={})", value(n).to_uppercase());
            assert_eq!(asks(&equal), held.contains(&n), "{equal}");
            assert_eq!(asks(&format!("(!{equal})")), !held.contains(&n), "{equal}");
            assert_eq!(asks(&format!("({attribute}=*)")), !held.is_empty());
            let by_index = fixture.names(&equal);
            assert_eq!(by_index.iter().any(|found| found == name), held.contains(&n), "{equal}");
        }
    }
    for n in 0..3 {
        let of = fixture.read(&value(n), &["memberOf"]).values("memberOf");
        let holds = model.get("member").is_some_and(|held| held.contains(&n));
        assert_eq!(of.iter().any(|group| *group == *dn), holds, "{of:?}");
    }
    fixture.directory.check(&mut |_, _| {}).unwrap();
}

fn indexed() -> Settings {
    let mut settings = settings();
    let all = [IndexKind::Equality, IndexKind::Presence];
    settings.indexes.push(IndexSetting::new("distinguishedName", &all));
    let parts = [IndexKind::Equality, IndexKind::Presence, IndexKind::Substring];
    settings.indexes.push(IndexSetting::new("businessCategory", &parts));
    settings
}

/// How many attributes of the entry lie apart.
fn large_count(fixture: &Fixture, dn: &str) -> usize {
    let snapshot = fixture.directory.snapshot();
    let read = fixture.directory.store.read().unwrap();
    let name = keyway_schema::EntryName::parse(&snapshot.schema, dn).unwrap();
    let id: EntryId = snapshot.entry_named(read.view(), &name).unwrap().unwrap();
    let entry = read.view().entry(id).unwrap().unwrap();
    assert_eq!(
        large::whole(read.view(), id, &entry).unwrap().len(),
        entry.attributes().count() + entry.large().count()
    );
    entry.large().count()
}

#[test]
fn many_values_are_what_a_set_is() {
    let fixture = filled_with(&indexed());
    let number = std::cell::Cell::new(0);
    let modifies = prop::collection::vec(prop::collection::vec(edit(), 1..3), 1..12);
    let cases = (modifies, prop::collection::vec(any::<Index>(), 3));
    let config = ProptestConfig { cases: 48, ..ProptestConfig::default() };
    proptest!(config, |((modifies, asked) in cases)| {
        number.set(number.get() + 1);
        let mut name = format!("model{}", number.get());
        let mut dn = format!("cn={name},{GROUPS}");
        let mut model = Model::from([("member", (0..20).collect())]);
        let members: Vec<String> = (0..20).map(value).collect();
        let members: Vec<&str> = members.iter().map(String::as_str).collect();
        fixture.add(&dn, &[("objectClass", &["groupOfNames"]), ("member", &members)]);
        compare(&fixture, &dn, &name, &model, &asked);
        for (at, edits) in modifies.iter().enumerate() {
            let code = expected(&mut model, edits);
            prop_assert_eq!(try_edits(&fixture, &dn, edits), code);
            if at == 2 {
                name += "x";
                fixture.rename(&dn, &format!("cn={name}"), true, None).unwrap();
                dn = format!("cn={name},{GROUPS}");
            }
            compare(&fixture, &dn, &name, &model, &asked);
        }
        let exported = exported(&fixture, None);
        fixture.delete(&dn).unwrap();
        fixture.directory.check(&mut |_, _| {}).unwrap();
        if number.get() % 16 == 1 {
            let other = empty(&indexed());
            let options = ImportOptions::default();
            other.directory.import(&mut exported.as_bytes(), &options, &mut |_| {}).unwrap();
            compare(&other, &dn, &name, &model, &asked);
        }
    });
}

#[test]
fn an_attribute_goes_apart_and_comes_back_at_different_numbers() {
    let fixture = filled();
    let dn = &format!("cn=few,{GROUPS}");
    let set = |count: usize| {
        let values = (0..count).collect();
        let operation = ChangeOperation::Replace;
        let edit = Edit { operation, attribute: "member", values, loud: false };
        assert_eq!(try_edits(&fixture, dn, &[edit]), ResultCode::Success);
        large_count(&fixture, dn)
    };
    assert_eq!(set(11), 0);
    assert_eq!(set(12), 1);
    assert_eq!(set(6), 1);
    assert_eq!(set(5), 0);
    assert_eq!(set(11), 0);
}

#[test]
fn what_the_server_goes_by_stays_in_the_record() {
    let fixture = filled();
    let dn = &format!("uid=ada,{PEOPLE}");
    let many: Vec<String> = (0..40).map(|n| format!("name {n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    fixture.modify(dn, vec![change(ChangeOperation::Add, "cn", &many)]).unwrap();
    assert_eq!(large_count(&fixture, dn), 0);
    fixture.modify(dn, vec![change(ChangeOperation::Add, "description", &many)]).unwrap();
    assert_eq!(large_count(&fixture, dn), 1);
    // Bytes count as well.
    let long = "x".repeat(70_000);
    fixture.modify(dn, vec![change(ChangeOperation::Replace, "description", &[&long])]).unwrap();
    assert_eq!(large_count(&fixture, dn), 1);
    fixture.modify(dn, vec![change(ChangeOperation::Replace, "description", &["y"])]).unwrap();
    assert_eq!(large_count(&fixture, dn), 0);
    assert_eq!(fixture.read(dn, &["description"]).values("description"), ["y"]);
}
