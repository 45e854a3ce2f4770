//! Random changes against a plain model: entries, tree, counters, names and posting lists.

use std::collections::{BTreeMap, BTreeSet};

use keyway_store::{Entry, EntryId, Error, Key, Names, Options, RawRow, Store, View, Write};
use proptest::prelude::*;
use proptest::sample::Index;

#[derive(Clone, Debug)]
enum Op {
    Insert { parent: Index, name: usize, keys: BTreeSet<usize> },
    Update { id: Index, text: u8, keys: BTreeSet<usize> },
    Delete { id: Index },
    Rename { id: Index, parent: Index, name: usize },
}

#[derive(Clone, Debug)]
struct Known {
    parent: EntryId,
    component: Vec<u8>,
    entry: Entry,
    keys: BTreeSet<usize>,
}

#[derive(Clone, Debug, Default)]
struct Model {
    entries: BTreeMap<EntryId, Known>,
}

const NAMES: usize = 5;
const KEYS: usize = 6;

/// Two names are longer than what the tree keeps whole and differ only at their ends.
fn component(name: usize) -> Vec<u8> {
    match name {
        0 => vec![b'x'; 300],
        1 => [vec![b'x'; 299], vec![b'y']].concat(),
        n => format!("cn=n{n}").into_bytes(),
    }
}

fn key(n: usize) -> Key {
    match n {
        0 => Key::new(b'e', &[b"cn", b""]),
        1 => Key::new(b'e', &[b"cn", b"\0"]),
        2 => Key::new(b'e', &[b"cn", b"\x01\0a"]),
        3 => Key::new(b'e', &[b"cn", &[b'z'; 600]]),
        4 => Key::new(b'e', &[b"cn", &[b'z'; 601]]),
        n => Key::new(b'p', &[format!("a{n}").as_bytes()]),
    }
}

fn entry(name: usize, text: u8) -> Entry {
    let values = (0..text % 4).map(|n| vec![text; n.into()]).collect();
    let attributes = vec![("cn".into(), values)];
    Entry { rdn: format!("cn=N{name}"), attributes, ..Entry::default() }
}

impl Model {
    /// An entry there is, the root, or sometimes one that is not there.
    fn pick(&self, index: &Index) -> EntryId {
        let mut ids: Vec<EntryId> = self.entries.keys().copied().collect();
        ids.extend([EntryId::ROOT, EntryId(9999)]);
        ids[index.index(ids.len())]
    }

    fn child(&self, parent: EntryId, component: &[u8]) -> Option<EntryId> {
        let mut all = self.entries.iter();
        all.find(|(_, k)| k.parent == parent && k.component == component).map(|(id, _)| *id)
    }

    fn path(&self, id: EntryId) -> Vec<EntryId> {
        let mut path = vec![];
        let mut at = id;
        while let Some(known) = self.entries.get(&at) {
            path.push(at);
            at = known.parent;
        }
        path
    }

    fn children(&self, parent: EntryId) -> Vec<EntryId> {
        self.entries.iter().filter(|(_, k)| k.parent == parent).map(|(id, _)| *id).collect()
    }

    fn subtree(&self, top: EntryId) -> Vec<EntryId> {
        self.entries.keys().copied().filter(|id| self.path(*id).contains(&top)).collect()
    }

    fn listed(&self, n: usize) -> Vec<EntryId> {
        self.entries.iter().filter(|(_, k)| k.keys.contains(&n)).map(|(id, _)| *id).collect()
    }

    fn dn(&self, id: EntryId) -> String {
        let rdns: Vec<_> =
            self.path(id).iter().map(|id| self.entries[id].entry.rdn.clone()).collect();
        rdns.join(",")
    }
}

fn keys(numbers: &BTreeSet<usize>) -> Vec<Key> {
    numbers.iter().map(|n| key(*n)).collect()
}

/// Does the same to both; says whether it was done.
fn apply(op: &Op, model: &mut Model, write: &mut Write<'_>) -> bool {
    match op {
        Op::Insert { parent, name, keys: numbers } => {
            let (parent, component) = (model.pick(parent), component(*name));
            let entry = entry(*name, *name as u8);
            let done = write.insert(parent, &component, &entry, &keys(numbers));
            let there = parent == EntryId::ROOT || model.entries.contains_key(&parent);
            match done {
                Err(Error::NotFound) => assert!(!there),
                Err(Error::Exists) => assert!(model.child(parent, &component).is_some()),
                Err(other) => panic!("{other}"),
                Ok(id) => {
                    assert!(there && model.child(parent, &component).is_none());
                    assert!(model.entries.keys().next_back().is_none_or(|last| *last < id));
                    let known = Known { parent, component, entry, keys: numbers.clone() };
                    model.entries.insert(id, known);
                    return true;
                }
            }
        }
        Op::Update { id, text, keys: numbers } => {
            let id = model.pick(id);
            let Some(known) = model.entries.get_mut(&id) else {
                let refused = write.update(id, &entry(0, 0), &[], &[]);
                assert!(matches!(refused, Err(Error::NotFound)));
                return false;
            };
            let entry = entry(usize::from(text % 7), *text);
            let removed: BTreeSet<_> = known.keys.difference(numbers).copied().collect();
            let added: BTreeSet<_> = numbers.difference(&known.keys).copied().collect();
            write.update(id, &entry, &keys(&removed), &keys(&added)).unwrap();
            (known.entry, known.keys) = (entry, numbers.clone());
            return true;
        }
        Op::Delete { id } => {
            let id = model.pick(id);
            let Some(known) = model.entries.get(&id).cloned() else {
                assert!(matches!(write.delete(id, b"x", &[]), Err(Error::NotFound)));
                return false;
            };
            assert!(matches!(write.delete(id, b"wrong", &[]), Err(Error::NotFound)));
            match write.delete(id, &known.component, &keys(&known.keys)) {
                Err(Error::HasChildren) => assert!(!model.children(id).is_empty()),
                Err(other) => panic!("{other}"),
                Ok(()) => {
                    assert!(model.children(id).is_empty());
                    model.entries.remove(&id);
                    return true;
                }
            }
        }
        Op::Rename { id, parent, name } => {
            let (id, parent, component) = (model.pick(id), model.pick(parent), component(*name));
            let Some(known) = model.entries.get(&id).cloned() else { return false };
            match write.rename(id, parent, &known.component, &component) {
                Err(Error::NotFound) => {
                    assert!(parent != EntryId::ROOT && !model.entries.contains_key(&parent));
                }
                Err(Error::WouldLoop) => assert!(model.path(parent).contains(&id)),
                Err(Error::Exists) => {
                    assert!(model.child(parent, &component).is_some_and(|found| found != id));
                }
                Err(other) => panic!("{other}"),
                Ok(()) => {
                    assert!(!model.path(parent).contains(&id));
                    assert!(model.child(parent, &component).is_none_or(|found| found == id));
                    let known = model.entries.get_mut(&id).unwrap();
                    (known.parent, known.component) = (parent, component);
                    return true;
                }
            }
        }
    }
    false
}

fn ids(view: View<'_>, key: &Key, after: EntryId) -> Vec<EntryId> {
    view.postings(key, after).unwrap().collect::<Result<_, _>>().unwrap()
}

fn assert_list(view: View<'_>, key: &Key, expected: &[EntryId]) {
    assert_eq!(ids(view, key, EntryId::ROOT), expected);
    assert_eq!(view.count_at_most(key, 3).unwrap(), expected.len().min(3));
    for after in expected {
        assert!(view.contains(key, *after).unwrap());
        let rest: Vec<_> = expected.iter().copied().filter(|id| id > after).collect();
        assert_eq!(ids(view, key, *after), rest);
    }
}

fn compare(model: &Model, view: View<'_>, names: &mut Names) {
    assert_eq!(view.entry_count().unwrap(), model.entries.len() as u64);
    for (&id, known) in &model.entries {
        let found = view.entry(id).unwrap().unwrap();
        assert_eq!(found.to_entry(), known.entry);
        assert_eq!(found.parent(), known.parent);
        assert_eq!(view.child(known.parent, &known.component).unwrap(), Some(id));
        assert_eq!(view.dn_of(&found, names).unwrap(), model.dn(id));
        let mut above = model.path(known.parent);
        above.reverse();
        assert_eq!(view.ancestors_of(&found, names).unwrap(), above);
        assert_eq!(view.child_count(id).unwrap(), model.children(id).len() as u64);
        assert_list(view, &Key::subtree(id), &model.subtree(id));
        assert_list(view, &Key::children(id), &model.children(id));
    }
    assert_list(view, &Key::children(EntryId::ROOT), &model.children(EntryId::ROOT));
    for n in 0..KEYS {
        assert_list(view, &key(n), &model.listed(n));
        assert!(!view.contains(&key(n), EntryId(9999)).unwrap());
    }
}

/// Compares the committed state with the model, relations included.
fn check(model: &Model, store: &Store, names: &mut Names) {
    let read = store.read().unwrap();
    compare(model, read.view(), names);
    assert_eq!(read.view().check().unwrap().entries, model.entries.len() as u64);
}

fn op() -> impl Strategy<Value = Op> {
    let numbers = || prop::collection::btree_set(0..KEYS, 0..KEYS);
    let index = any::<Index>;
    prop_oneof![
        6 => (index(), 0..NAMES, numbers())
            .prop_map(|(parent, name, keys)| Op::Insert { parent, name, keys }),
        2 => (index(), any::<u8>(), numbers())
            .prop_map(|(id, text, keys)| Op::Update { id, text, keys }),
        2 => index().prop_map(|id| Op::Delete { id }),
        3 => (index(), index(), 0..NAMES)
            .prop_map(|(id, parent, name)| Op::Rename { id, parent, name }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn the_store_is_what_the_model_is(
        jobs in prop::collection::vec(prop::collection::vec(op(), 1..8), 1..12),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let options = Options { sync: false, map_bytes_max: 64 << 20, ..Options::default() };
        let store = Store::open(dir.path(), options.clone()).unwrap();
        let mut model = Model::default();
        let mut names = Names::new();
        for ops in jobs {
            let before = model.clone();
            model = store
                .write_now(move |write| {
                    let mut model = before.clone();
                    let mut names = Names::new();
                    for op in &ops {
                        apply(op, &mut model, write);
                        // A change sees what it has done.
                        compare(&model, write.view(), &mut names);
                    }
                    Ok::<_, Error>(model)
                })
                .unwrap();
            check(&model, &store, &mut names);
        }
        store.close().unwrap();
        let store = Store::open(dir.path(), options).unwrap();
        check(&model, &store, &mut names);
        // The feed has all that was done.
        let other = tempfile::tempdir().unwrap();
        let options = Options { sync: false, map_bytes_max: 64 << 20, ..Options::default() };
        let replayed = Store::open(other.path(), options).unwrap();
        let read = store.read().unwrap();
        replayed.replay(&read, &mut |_| {}).unwrap();
        let replayed = replayed.read().unwrap();
        prop_assert_eq!(read.view().difference(replayed.view()).unwrap(), None);
        replayed.view().check().unwrap();
        // Rows that are shipped lead to the same entries, and to the same feed.
        let another = tempfile::tempdir().unwrap();
        let options = Options { sync: false, map_bytes_max: 64 << 20, ..Options::default() };
        let follower = Store::open(another.path(), options).unwrap();
        for row in read.view().feed_after(0).unwrap().raw() {
            let row = row.unwrap();
            let shipped = RawRow::parse(row.position(), row.bytes()).unwrap();
            follower.apply_row(&shipped).unwrap();
        }
        let applied = follower.read().unwrap();
        prop_assert_eq!(read.view().difference(applied.view()).unwrap(), None);
        prop_assert_eq!(applied.view().feed_head().unwrap(), read.view().feed_head().unwrap());
        applied.view().check().unwrap();
    }
}
