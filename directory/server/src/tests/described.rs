//! The feed described: each change as LDAP has it, and change records that make the same entries again.

use super::*;
use crate::limits::LARGE_VALUES_MIN;
use crate::{AttributeChange, DescribedChange, Describer, Extent, Operation, Renaming, Values};
use keyway_codec::dn::Rdn;
use keyway_codec::ldif::{Modification, Reader, Record, RecordKind};
use keyway_schema::operational::{MODIFIERS_NAME, MODIFY_TIMESTAMP};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// The changes behind a position.
fn described(directory: &Directory, after: u64, shows_passwords: bool) -> Vec<DescribedChange> {
    let read = directory.store.read().unwrap();
    let describer = Describer::new(read.view(), shows_passwords).unwrap();
    let rows = read.view().feed_after(after).unwrap();
    rows.flat_map(|row| describer.describe(row.unwrap())).collect()
}

fn ldif(changes: &[DescribedChange]) -> String {
    let mut out = Vec::new();
    changes.iter().for_each(|change| change.write_ldif(&mut out));
    String::from_utf8(out).unwrap()
}

fn position(fixture: &Fixture) -> u64 {
    fixture.directory.feed_status().unwrap().unwrap().head.position
}

/// The first change of an entry that something makes in a filled directory.
fn change_of(done: impl FnOnce(&Fixture)) -> Operation {
    let fixture = filled();
    let from = position(&fixture);
    done(&fixture);
    let changes = described(&fixture.directory, from, false);
    changes[0].entry().unwrap().operation.clone()
}

/// Changes of attributes as words, without the stamp that each change has; sorted.
fn words(changes: &[AttributeChange]) -> Vec<String> {
    let values = |sign: char, values: &Values| match values {
        Values::Shown(values) => {
            let text = |value: &Vec<u8>| format!(" {sign}{}", String::from_utf8_lossy(value));
            values.iter().map(text).collect::<String>()
        }
        Values::Hidden(count) => format!(" {sign}({count})"),
    };
    let stamps = [MODIFIERS_NAME, MODIFY_TIMESTAMP];
    let others = changes.iter().filter(|change| !stamps.contains(&change.name.as_str()));
    let word = |change: &AttributeChange| {
        let AttributeChange { name, extent, removed, added } = change;
        let how = match extent {
            Extent::Some => "",
            Extent::Replaced => " all",
            Extent::Gone => " gone",
        };
        format!("{name}{how}{}{}", values('-', removed), values('+', added))
    };
    let mut words: Vec<String> = others.map(word).collect();
    words.sort();
    words
}

fn renaming(operation: Operation) -> (Renaming, Vec<String>) {
    let Operation::ModifyDn(renaming) = operation else { panic!("{operation:?}") };
    let words = words(&renaming.attributes);
    (renaming, words)
}

#[test]
fn a_new_name_takes_the_old_value_along_or_leaves_it() {
    let ada = format!("uid=ada,{PEOPLE}");
    let to = |rdn: &'static str, delete| {
        renaming(change_of(|it| drop(it.rename(&ada, rdn, delete, None).unwrap())))
    };
    for delete in [true, false] {
        let (renamed, others) = to("uid=countess", delete);
        let wanted = ("uid=countess", delete, None);
        let Renaming { new_rdn, delete_old_rdn, new_superior, .. } = &renamed;
        assert_eq!((new_rdn.as_str(), *delete_old_rdn, new_superior.as_deref()), wanted);
        assert_eq!(renamed.new_dn, format!("uid=countess,{PEOPLE}"));
        assert!(others.is_empty(), "the name brings the value about: {others:?}");
    }
    let (renamed, others) = to("uid=countess+sn=Lovelace", true);
    assert_eq!((renamed.delete_old_rdn, others), (true, Vec::new()));
    // Its place in the tree is the same.
    let (renamed, others) = to("uid=ADA", true);
    assert_eq!((&*renamed.new_rdn, renamed.delete_old_rdn, others), ("uid=ADA", true, Vec::new()));
}

#[test]
fn a_move_names_the_entry_above_and_is_one_change() {
    let fixture = filled();
    let from = position(&fixture);
    let ada = format!("uid=ada,{PEOPLE}");
    let [uuid] = &*fixture.read(&ada, &["entryUUID"]).values("entryUUID") else { panic!() };
    fixture.rename(&ada, "uid=ada", false, Some(GROUPS)).unwrap();
    let changes = described(&fixture.directory, from, false);
    let moved = changes[0].entry().unwrap();
    let after = format!("uid=ada,{GROUPS}");
    assert_eq!((&moved.dn, moved.dn_after(), &moved.uuid), (&ada, Some(&*after), uuid));
    assert_eq!((changes[0].index, changes[0].kind()), (0, "modrdn"));
    let (renamed, others) = renaming(moved.operation.clone());
    assert_eq!((renamed.new_superior.as_deref(), others), (Some(GROUPS), Vec::new()));
    let text = ldif(&changes);
    let begin = format!(
        "# position {}.0, 2023-11-14T22:13:20.000000Z, by cn=admin,cn=keyway\ndn: {ada}\n\
         changetype: modrdn\nnewrdn: uid=ada\ndeleteoldrdn: 0\nnewsuperior: {GROUPS}\n\n\
         # position {}.2, ",
        from + 1,
        from + 1
    );
    assert!(text.starts_with(&begin), "{text}");
    // References that follow the name are changes of their own, in the same commit.
    let members: Vec<_> = changes[1..].iter().map(DescribedChange::kind).collect();
    assert!(members.iter().all(|kind| *kind == "modify"), "{members:?}");
}

/// The schema that is asked may have forgotten that an attribute was a password.
#[test]
fn values_of_a_forgotten_subtype_of_a_password_are_not_shown() {
    const VALUE: &str = "not for all eyes";
    let fixture = filled();
    let from = position(&fixture);
    let schema = |operation, value: &str| {
        fixture.modify("cn=schema", vec![change(operation, "attributeTypes", &[value])]).unwrap();
    };
    schema(ChangeOperation::Add, "( 1.3.6.1.4.1.99999.7 NAME 'doorCode' SUP userPassword )");
    let shade = format!("uid=door,{PEOPLE}");
    let values: [(&str, &[&str]); 3] = [
        ("objectClass", &["account", "extensibleObject"]),
        ("uid", &["door"]),
        ("doorCode", &[VALUE]),
    ];
    fixture.add(&shade, &values);
    fixture.delete(&shade).unwrap();
    let shown = |shows_passwords| ldif(&described(&fixture.directory, from, shows_passwords));
    let is_hidden =
        |text: &str| text.contains("# doorCode: 1 value, not shown") && !text.contains(VALUE);
    let known = shown(false);
    assert!(is_hidden(&known), "{known}");
    schema(ChangeOperation::Delete, "1.3.6.1.4.1.99999.7");
    let forgotten = shown(false);
    assert!(is_hidden(&forgotten), "{forgotten}");
    assert!(shown(true).contains(VALUE));
}

#[test]
fn attributes_are_added_deleted_and_replaced() {
    use ChangeOperation::{Add, Delete, Replace};
    let operation = change_of(|fixture| {
        let changes = vec![
            change(Add, "mail", &["countess@example.com"]),
            change(Delete, "mail", &["ada@example.com"]),
            change(Replace, "gidNumber", &["7"]),
            change(Delete, "givenName", &[]),
            change(Add, "description", &["one", "two"]),
        ];
        fixture.modify(&format!("uid=ada,{PEOPLE}"), changes).unwrap();
    });
    let Operation::Modify(changes) = operation else { panic!("{operation:?}") };
    let wanted = [
        "description +one +two",
        "gidNumber all -100 +7",
        "givenName gone -Ada",
        "mail -ada@example.com +countess@example.com",
    ];
    assert_eq!(words(&changes), wanted);
}

#[test]
fn passwords_are_counted_and_shown_to_who_asks_for_them() {
    let fixture = filled();
    let (dn, from) = (format!("uid=eve,{PEOPLE}"), position(&fixture));
    let secret = "{SSHA}YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFh";
    fixture
        .add(&dn, &[("objectClass", &["person", "uidObject"]), ("cn", &["Eve"]), ("sn", &["Eve"])]);
    let replace = |value: &str| {
        let changes = vec![change(ChangeOperation::Replace, "userPassword", &[value])];
        fixture.modify(&dn, changes).unwrap();
    };
    replace(secret);
    replace("{SSHA}YmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJi");
    let hidden = described(&fixture.directory, from, false);
    let text = ldif(&hidden);
    assert!(!text.contains("{SSHA}") && !format!("{hidden:?}").contains("SSHA"), "{text}");
    assert!(text.contains("\n# userPassword: 1 value added, not shown\n"), "{text}");
    let both = "\n# userPassword: 1 value deleted, 1 value added, not shown\n";
    assert!(text.contains(both), "{text}");
    let shown = ldif(&described(&fixture.directory, from, true));
    assert_eq!(shown.matches(secret).count(), 2, "it came and went: {shown}");
    fixture.delete(&dn).unwrap();
    let last = described(&fixture.directory, position(&fixture) - 1, false);
    let Operation::Delete(attributes) = &last[0].entry().unwrap().operation else { panic!() };
    let password = attributes.iter().find(|one| one.name == "userPassword").unwrap();
    assert_eq!(password.values, Values::Hidden(1));
}

#[test]
fn values_that_come_to_lie_elsewhere_do_not_change() {
    let fixture = filled();
    let dn = format!("cn=some,{GROUPS}");
    let members: Vec<String> = (0..LARGE_VALUES_MIN).map(|n| format!("uid=m{n},{BASE}")).collect();
    let members: Vec<&str> = members.iter().map(String::as_str).collect();
    let mut last = position(&fixture);
    let mut done = |operation, values: &[&str]| {
        fixture.modify(&dn, vec![change(operation, "member", values)]).unwrap();
        let changes = described(&fixture.directory, last, false);
        last = position(&fixture);
        let Operation::Modify(changes) = &changes[0].entry().unwrap().operation else { panic!() };
        words(changes)
    };
    let signed = |sign: char, values: &[&str]| {
        values.iter().map(|value| format!(" {sign}{value}")).collect::<String>()
    };
    let sorted = |words: Vec<String>| {
        let mut parts: Vec<String> = words.join(" ").split(' ').map(str::to_owned).collect();
        parts[1..].sort();
        parts
    };
    // They are many now, and lie in another table; then few again.
    let added = done(ChangeOperation::Add, &members);
    assert_eq!(sorted(added), sorted(vec![format!("member{}", signed('+', &members))]));
    assert_eq!(done(ChangeOperation::Add, &["uid=x,o=y"]), ["member +uid=x,o=y"]);
    assert_eq!(done(ChangeOperation::Delete, &["uid=x,o=y"]), ["member -uid=x,o=y"]);
    let deleted = done(ChangeOperation::Delete, &members);
    assert_eq!(sorted(deleted), sorted(vec![format!("member{}", signed('-', &members))]));
}

#[test]
fn rows_are_told_by_their_names() {
    let fixture = filled();
    let first = described(&fixture.directory, 0, false);
    let row = first.iter().find(|change| change.kind() == "naming-contexts").unwrap();
    let text = ldif(std::slice::from_ref(row));
    assert!(text.ends_with("by the server\n# naming-contexts: row naming-contexts\n\n"), "{text}");
    assert_eq!(first.iter().map(|change| change.number).max(), {
        fixture.directory.feed_status().unwrap().map(|status| status.head.changes)
    });
}

/// Entries by their names, in lower case; values of each attribute.
type Model = BTreeMap<String, BTreeMap<String, BTreeSet<Vec<u8>>>>;

fn read(text: &str) -> Vec<Record> {
    let (mut reader, mut rest) = (Reader::new(), text.as_bytes());
    let mut records = Vec::new();
    while let Some(record) = reader.read(&mut rest) {
        records.push(record.unwrap());
    }
    records.extend(reader.finish().map(Result::unwrap));
    records
}

/// Does what a record says, as a directory would that knows nothing else.
fn make(model: &mut Model, record: Record) {
    let dn = record.dn.to_lowercase();
    match record.kind {
        RecordKind::Add(lines) | RecordKind::Content(lines) => {
            let entry = model.entry(dn).or_default();
            for (name, value) in lines {
                entry.entry(name).or_default().insert(value);
            }
        }
        RecordKind::Delete => drop(model.remove(&dn).expect("it is there")),
        RecordKind::Modify(modifications) => {
            let entry = model.get_mut(&dn).unwrap_or_else(|| panic!("{dn} is there"));
            for Modification { operation, attribute, values } in modifications {
                let held = entry.entry(attribute).or_default();
                match operation {
                    ChangeOperation::Add => {
                        assert!(values.into_iter().all(|value| held.insert(value)), "it is new");
                    }
                    ChangeOperation::Delete if values.is_empty() => held.clear(),
                    ChangeOperation::Delete => {
                        assert!(values.iter().all(|value| held.remove(value)), "it is there");
                    }
                    ChangeOperation::Replace => *held = values.into_iter().collect(),
                    ChangeOperation::Increment => unreachable!(),
                }
            }
            entry.retain(|_, values| !values.is_empty());
        }
        RecordKind::ModRdn { new_rdn, delete_old_rdn, new_superior } => {
            let (rdn, above) = record.dn.split_once(',').unwrap();
            let (old, new) = (Rdn::parse(rdn).unwrap(), Rdn::parse(&new_rdn).unwrap());
            let new_dn = format!("{new_rdn},{}", new_superior.as_deref().unwrap_or(above));
            let below = format!(",{dn}");
            let is_moved = |name: &&String| **name == dn || name.ends_with(&below);
            let moved: Vec<String> = model.keys().filter(is_moved).cloned().collect();
            for name in moved {
                let entry = model.remove(&name).unwrap();
                let name = format!("{}{}", name.strip_suffix(&dn).unwrap(), new_dn.to_lowercase());
                model.insert(name, entry);
            }
            let entry = model.get_mut(&new_dn.to_lowercase()).expect("it is there");
            let same = |one: &[u8], other: &[u8]| one.eq_ignore_ascii_case(other);
            if delete_old_rdn {
                for ava in old.avas.iter().filter(|ava| !new.avas.contains(ava)) {
                    let held = entry.get_mut(&ava.attribute).expect("its attribute is there");
                    held.retain(|value| !same(value, &ava.value));
                }
            }
            for ava in new.avas {
                let held = entry.entry(ava.attribute).or_default();
                if !held.iter().any(|value| same(value, &ava.value)) {
                    held.insert(ava.value);
                }
            }
            entry.retain(|_, values| !values.is_empty());
        }
    }
}

/// Makes all changes of the feed again by their LDIF, and compares the entries with those of an export.
fn makes_the_same(directory: &Directory) {
    let mut made = Model::new();
    let text = ldif(&described(directory, 0, true));
    read(&text).into_iter().for_each(|record| make(&mut made, record));
    made.retain(|dn, _| !dn.ends_with("cn=keyway"));
    let mut exported = Vec::new();
    directory.export(None, &mut exported, &mut |_| {}).unwrap();
    let mut there = Model::new();
    let exported = String::from_utf8(exported).unwrap();
    read(&exported).into_iter().for_each(|record| make(&mut there, record));
    for (dn, entry) in &there {
        assert_eq!(made.get(dn), Some(entry), "{dn}");
    }
    assert_eq!(made.len(), there.len());
}

/// Something that is done to one of few entries; much of it is refused.
#[derive(Clone, Debug)]
enum Deed {
    Add(u8),
    Delete(u8),
    Rename(u8, u8, bool, Option<bool>),
    Values(u8, ChangeOperation, &'static str, Vec<u8>),
}

fn deed() -> impl Strategy<Value = Deed> {
    let operation = prop_oneof![
        Just(ChangeOperation::Add),
        Just(ChangeOperation::Delete),
        Just(ChangeOperation::Replace)
    ];
    let name = prop_oneof![Just("cn"), Just("uid"), Just("seeAlso"), Just("description")];
    let values = prop::collection::vec(0..20u8, 0..16);
    prop_oneof![
        (0..4u8).prop_map(Deed::Add),
        (0..4u8).prop_map(Deed::Delete),
        (0..4u8, 0..8u8, any::<bool>(), any::<Option<bool>>())
            .prop_map(|(of, to, delete, above)| Deed::Rename(of, to, delete, above)),
        (0..4u8, operation, name, values)
            .prop_map(|(of, operation, name, values)| Deed::Values(of, operation, name, values)),
    ]
}

/// Names of which some are spelt otherwise, some have another type, and some have two values.
fn rdn(n: u8) -> String {
    match n {
        0..4 => format!("uid=v{n}"),
        4 => "uid=V0".to_owned(),
        5 => "cn=v5".to_owned(),
        6 => "cn=v6+uid=v1".to_owned(),
        _ => "uid=v2+cn=v1".to_owned(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn change_records_make_the_same_entries_again(deeds in prop::collection::vec(deed(), 1..60)) {
        let fixture = filled();
        let mut names: Vec<String> = (0..4).map(|n| format!("{},{PEOPLE}", rdn(n))).collect();
        for deed in deeds {
            match deed {
                Deed::Add(n) => {
                    let dn = names[usize::from(n)].clone();
                    let classes: &[&str] = &["inetOrgPerson"];
                    let _ = fixture.try_add(
                        &dn, &[("objectClass", classes), ("cn", &["c"]), ("sn", &["s"])]);
                }
                Deed::Delete(n) => drop(fixture.delete(&names[usize::from(n)])),
                Deed::Rename(of, to, delete, above) => {
                    let above = above.map(|people| if people { PEOPLE } else { GROUPS });
                    let dn = &mut names[usize::from(of)];
                    if fixture.rename(dn, &rdn(to), delete, above).is_ok() {
                        let old = dn.split_once(',').unwrap().1;
                        *dn = format!("{},{}", rdn(to), above.unwrap_or(old));
                    }
                }
                Deed::Values(of, operation, name, values) => {
                    let value = |n: &u8| match name {
                        "seeAlso" => format!("uid=v{n},{PEOPLE}"),
                        _ => format!("v{n}"),
                    };
                    let values: BTreeSet<String> = values.iter().map(value).collect();
                    let values: Vec<&str> = values.iter().map(String::as_str).collect();
                    let _ = fixture.modify(
                        &names[usize::from(of)], vec![change(operation, name, &values)]);
                }
            }
        }
        makes_the_same(&fixture.directory);
    }
}
