//! Random changes of large attributes against plain maps, and what else is true of them.

use std::collections::BTreeMap;

use keyway_store::{
    Entry, EntryId, Error, Large, LargeEdit, Options, Salvage, Store, ValueKey, View, inspect,
};
use proptest::prelude::*;

type Values = BTreeMap<ValueKey, Vec<u8>>;
type Model = BTreeMap<String, Values>;

#[derive(Clone, Debug)]
enum Op {
    /// Some of the values go, others come; lengths differ and are sometimes over that of a row.
    Edit {
        attribute: u8,
        removed: Vec<u16>,
        added: Vec<(u16, u16)>,
    },
    Drop {
        attribute: u8,
    },
    Rename,
    /// A change with a failure after it: nothing of it stays.
    Fail {
        attribute: u8,
        removed: Vec<u16>,
    },
}

fn name(attribute: u8) -> String {
    format!("member;x-{attribute}")
}

fn key(n: u16) -> ValueKey {
    ValueKey::of(&n.to_be_bytes())
}

fn value(n: u16, length: u16) -> Vec<u8> {
    n.to_be_bytes().repeat(usize::from(length) / 2)
}

fn edit(attribute: u8, removed: &[u16], added: &[(u16, u16)]) -> LargeEdit {
    LargeEdit {
        name: name(attribute),
        removed: removed.iter().map(|n| key(*n)).collect(),
        added: added.iter().map(|(n, length)| (key(*n), value(*n, *length))).collect(),
    }
}

fn op() -> impl Strategy<Value = Op> {
    let numbers = |most: usize| prop::collection::vec(0..400u16, 0..most);
    let length = || prop_oneof![20 => 0..80u16, 1 => 900..3000u16];
    let added = move |most| prop::collection::vec((0..400u16, length()), 0..most);
    prop_oneof![
        4 => (0..2u8, numbers(4), added(4))
            .prop_map(|(attribute, removed, added)| Op::Edit { attribute, removed, added }),
        2 => (0..2u8, numbers(300), added(300))
            .prop_map(|(attribute, removed, added)| Op::Edit { attribute, removed, added }),
        1 => (0..2u8).prop_map(|attribute| Op::Drop { attribute }),
        1 => Just(Op::Rename),
        1 => (0..2u8, numbers(50)).prop_map(|(attribute, removed)| Op::Fail { attribute, removed }),
    ]
}

fn apply(model: &mut Model, edit: &LargeEdit) {
    let values = model.entry(edit.name.clone()).or_default();
    edit.removed.iter().for_each(|key| drop(values.remove(key)));
    values.extend(edit.added.iter().cloned());
    model.retain(|_, values| !values.is_empty());
}

/// An entry with these edits, whose other large attributes stay.
fn entry(model: &Model, edits: Vec<LargeEdit>) -> Entry {
    let others = model.keys().filter(|name| edits.iter().all(|edit| edit.name != **name));
    let others: Vec<_> = others.map(|name| LargeEdit::none(name)).collect();
    let attributes = vec![("cn".to_owned(), vec![b"group".to_vec()])];
    Entry { rdn: "cn=group".into(), attributes, large: [others, edits].concat() }
}

fn compare(model: &Model, view: View<'_>, id: EntryId) {
    let entry = view.entry(id).unwrap().unwrap();
    assert_eq!(entry.values("cn").collect::<Vec<_>>(), [b"group"]);
    let found: Vec<Large<'_>> = entry.large().collect();
    assert_eq!(found.len(), model.len());
    for large in found {
        let expected = &model[large.name];
        let bytes: usize = expected.values().map(Vec::len).sum();
        assert_eq!((large.count, large.bytes), (expected.len() as u64, bytes as u64));
        let values = view.large_values(id, &large).unwrap().map(|found| {
            let (key, value) = found.unwrap();
            (key, value.to_vec())
        });
        assert_eq!(values.collect::<Values>(), *expected);
        for n in (0..400).step_by(7) {
            let found = view.large_value(id, &large, key(n)).unwrap();
            assert_eq!(found, expected.get(&key(n)).map(Vec::as_slice));
        }
    }
    view.check().unwrap();
}

fn options() -> Options {
    Options { sync: false, map_bytes_max: 64 << 20, ..Options::default() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn large_attributes_are_what_the_model_is(ops in prop::collection::vec(op(), 1..30)) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), options()).unwrap();
        let mut model = Model::new();
        // A neighbour on either side, whose values are not to be touched.
        let beside = Model::from([(name(0), Values::from([(key(1), value(1, 40))]))]);
        let mut ids = Vec::new();
        for (component, is_ours) in [(b"a", false), (b"b", true), (b"c", false)] {
            let entry = match is_ours {
                true => entry(&model, vec![]),
                false => entry(&Model::new(), vec![edit(0, &[], &[(1, 40)])]),
            };
            let id = store.write_now(move |w| w.insert(EntryId::ROOT, component, &entry, &[]));
            ids.push(id.unwrap());
        }
        let id = ids[1];
        let mut component = b"b".to_vec();
        for op in ops {
            match op {
                Op::Edit { attribute, removed, added } => {
                    let edit = edit(attribute, &removed, &added);
                    let entry = entry(&model, vec![edit.clone()]);
                    store.write_now(move |w| w.update(id, &entry, &[], &[])).unwrap();
                    apply(&mut model, &edit);
                }
                Op::Drop { attribute } => {
                    model.remove(&name(attribute));
                    let entry = entry(&model, vec![]);
                    store.write_now(move |w| w.update(id, &entry, &[], &[])).unwrap();
                }
                Op::Rename => {
                    let old = component.clone();
                    component = [old.as_slice(), b"x"].concat();
                    let new = component.clone();
                    let above = ids[0];
                    store.write_now(move |w| w.rename(id, above, &old, &new)).unwrap();
                }
                Op::Fail { attribute, removed } => {
                    let entry = entry(&model, vec![edit(attribute, &removed, &[(401, 50)])]);
                    let failed = store.write_now(move |w| {
                        w.update(id, &entry, &[], &[])?;
                        Err::<(), _>(Error::NotFound)
                    });
                    prop_assert!(failed.is_err());
                }
            }
            let read = store.read().unwrap();
            compare(&model, read.view(), id);
            compare(&beside, read.view(), ids[0]);
            compare(&beside, read.view(), ids[2]);
        }
        replays(&store);
        store.write_now(move |w| w.delete(id, &component, &[])).unwrap();
        store.read().unwrap().view().check().unwrap();
        replays(&store);
        store.close().unwrap();
        inspect(dir.path(), &mut |damage| panic!("{damage}")).unwrap();
    }
}

/// The feed has all that was done.
fn replays(store: &Store) {
    let other = tempfile::tempdir().unwrap();
    let replayed = Store::open(other.path(), options()).unwrap();
    let read = store.read().unwrap();
    replayed.replay(&read, &mut |_| {}).unwrap();
    assert_eq!(read.view().difference(replayed.read().unwrap().view()).unwrap(), None);
    let another = tempfile::tempdir().unwrap();
    let follower = Store::open(another.path(), options()).unwrap();
    for row in read.view().feed_after(0).unwrap().raw() {
        follower.apply_row(&row.unwrap()).unwrap();
    }
    let applied = follower.read().unwrap();
    assert_eq!(read.view().difference(applied.view()).unwrap(), None);
    assert_eq!(applied.view().feed_head().unwrap(), read.view().feed_head().unwrap());
}

/// A store with one entry of so many values, closed; the entry.
fn group(dir: &std::path::Path, count: u16) -> EntryId {
    let store = Store::open(dir, options()).unwrap();
    let added: Vec<(u16, u16)> = (0..count).map(|n| (n, 40)).collect();
    let entry = entry(&Model::new(), vec![edit(0, &[], &added)]);
    let id = store.write_now(move |w| w.insert(EntryId::ROOT, b"b", &entry, &[])).unwrap();
    store.close().unwrap();
    id
}

/// Earlier programs go by the format: they refuse a store with one that they do not know.
#[test]
fn large_attributes_and_the_feed_have_formats_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let without = Options { feed: false, ..options() };
    let store = Store::open(dir.path(), without.clone()).unwrap();
    let add =
        |w: &mut keyway_store::Write<'_>| w.insert(EntryId::ROOT, b"a", &Entry::default(), &[]);
    store.write_now(add).unwrap();
    let has = |format: u8| {
        let data = std::fs::read(dir.path().join("data.mdb")).unwrap();
        data.windows(10).any(|at| at == [b"format\0\0\0".as_slice(), &[format]].concat())
    };
    assert!(has(1) && !has(2));
    store.close().unwrap();
    let with_large = |w: &mut keyway_store::Write<'_>| {
        let entry = entry(&Model::new(), vec![edit(0, &[], &[(1, 40)])]);
        w.insert(EntryId::ROOT, b"b", &entry, &[])
    };
    let store = Store::open(dir.path(), without).unwrap();
    store.write_now(with_large).unwrap();
    assert!(has(2) && !has(3));
    store.close().unwrap();
    let store = Store::open(dir.path(), options()).unwrap();
    store.write_now(|w| w.insert(EntryId::ROOT, b"c", &Entry::default(), &[])).unwrap();
    store.close().unwrap();
    assert!(has(3));
    // What was there before has no changes that could be made again.
    let store = Store::open(dir.path(), options()).unwrap();
    let read = store.read().unwrap();
    let head = read.view().feed_head().unwrap().unwrap();
    assert_eq!((head.first, head.position, head.changes), (2, 2, 1));
    assert!(matches!(read.view().feed_after(0).err(), Some(Error::FeedTrimmed { first: 2, .. })));
    read.view().check().unwrap();
}

#[test]
fn values_are_salvaged_but_for_those_on_a_page_that_is_spoilt() {
    let dir = tempfile::tempdir().unwrap();
    let id = group(dir.path(), 2000);
    let saved = |dir: &std::path::Path| {
        let salvage = Salvage::open(dir).unwrap();
        let record = salvage.record(id).unwrap();
        let entry = keyway_store::EntryRef::decode(id, &record).unwrap();
        let large = entry.large().next().unwrap();
        assert_eq!(large.count, 2000);
        (salvage.values(id, &large).unwrap(), salvage.damage().len())
    };
    let (values, damage) = saved(dir.path());
    assert_eq!((values.len(), damage), (2000, 0));
    // One value is spoilt: those of its row are lost, and no others.
    let file = dir.path().join("data.mdb");
    let mut bytes = std::fs::read(&file).unwrap();
    let wanted = value(77, 40);
    let places: Vec<_> =
        (0..bytes.len() - 40).filter(|at| bytes[*at..].starts_with(&wanted)).collect();
    places.iter().for_each(|at| bytes[*at] ^= 1);
    std::fs::write(&file, bytes).unwrap();
    let (values, _) = saved(dir.path());
    assert!((1980..2000).contains(&values.len()) && !values.contains(&wanted), "{}", values.len());
    let store = Store::open(dir.path(), options()).unwrap();
    let read = store.read().unwrap();
    let refused = read.view().check().unwrap_err().to_string();
    assert!(refused.contains("values of entry 1: its checksum is wrong"), "{refused}");
    let entry = read.view().entry(id).unwrap().unwrap();
    let large = entry.large().next().unwrap();
    assert!(read.view().large_values(id, &large).unwrap().any(|value| value.is_err()));
}
