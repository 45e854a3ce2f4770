//! The entries of a directory: names, and attributes with their values.

use crate::site::keyway_with;
use keyway_codec::ldif::{Reader, RecordKind};
use keyway_tests::finish;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

pub type Entry = BTreeMap<String, BTreeSet<Vec<u8>>>;
/// By their names.
pub type State = BTreeMap<String, Entry>;

/// Attributes of which the server makes the values.
const OPERATIONAL: [&str; 6] = [
    "structuralObjectClass",
    "entryUUID",
    "creatorsName",
    "createTimestamp",
    "modifiersName",
    "modifyTimestamp",
];

/// What a data folder has, by `keyway directory export`, without operational attributes.
pub fn export(data: &Path) -> State {
    let text = finish(&mut keyway_with(&["directory", "export"], data), "").expect(0).out;
    let (mut reader, mut rest) = (Reader::new(), text.as_bytes());
    let mut records: Vec<_> = std::iter::from_fn(|| reader.read(&mut rest)).collect();
    records.extend(reader.finish());
    let entry = |record: Result<keyway_codec::ldif::Record, _>| {
        let record = record.expect("LDIF");
        let RecordKind::Content(lines) = record.kind else { panic!("{}: a change", record.dn) };
        let mut entry = Entry::new();
        for (attribute, value) in lines {
            if !OPERATIONAL.contains(&attribute.as_str()) {
                assert!(entry.entry(attribute).or_default().insert(value), "{}: twice", record.dn);
            }
        }
        (record.dn, entry)
    };
    records.into_iter().map(entry).collect()
}

/// That its parts fit together, by `keyway directory check`.
pub fn check(data: &Path) {
    finish(&mut keyway_with(&["directory", "check"], data), "").expect(0);
}

/// The first entry in which two states differ.
pub fn difference(one: &State, other: &State) -> String {
    let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let differs = |name: &&&String| one.get(**name) != other.get(**name);
    let shown = |entry: Option<&Entry>| {
        let Some(entry) = entry else { return "not there".to_owned() };
        let values = |values: &BTreeSet<Vec<u8>>| -> Vec<String> {
            values.iter().map(|value| String::from_utf8_lossy(value).into_owned()).collect()
        };
        let all: Vec<_> = entry.iter().map(|(name, of)| (name, values(of))).collect();
        format!("{all:?}")
    };
    match names.iter().find(differs) {
        Some(name) => format!("{name}: {} and {}", shown(one.get(*name)), shown(other.get(*name))),
        None => "nothing differs".to_owned(),
    }
}
