//! Long posting lists under random insertions and removals, against a plain set.

use std::collections::BTreeSet;

use keyway_store::{Entry, EntryId, Error, Key, KeyRange, Options, Store, View};
use proptest::prelude::*;

const ENTRIES: u64 = 1500;

fn store() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { sync: false, map_bytes_max: 64 << 20, ..Options::default() };
    let store = Store::open(dir.path(), options).unwrap();
    (dir, store)
}

fn key() -> Key {
    Key::new(b'e', &[b"cn", b"many"])
}

fn ids(view: View<'_>, after: u64) -> Vec<u64> {
    let found = view.postings(&key(), EntryId(after)).unwrap();
    found.map(|id| id.map(|id| id.0)).collect::<Result<_, _>>().unwrap()
}

/// Entries 1 to [`ENTRIES`], not listed anywhere of the caller's.
fn fill(store: &Store) {
    store
        .write_now(|write| {
            write.defer_postings();
            for n in 1..=ENTRIES {
                let id = write.insert(
                    EntryId::ROOT,
                    format!("cn={n}").as_bytes(),
                    &Entry::default(),
                    &[],
                )?;
                assert_eq!(id, EntryId(n));
            }
            Ok::<_, Error>(())
        })
        .unwrap();
}

#[derive(Clone, Debug)]
enum Op {
    Add(u64),
    Remove(u64),
    /// Every `step`th from a start on.
    Run {
        from: u64,
        step: usize,
        add: bool,
    },
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (1..=ENTRIES).prop_map(Op::Add),
        2 => (1..=ENTRIES).prop_map(Op::Remove),
        1 => (1..=ENTRIES, 1..9usize, any::<bool>())
            .prop_map(|(from, step, add)| Op::Run { from, step, add }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn a_list_is_a_set(
        ops in prop::collection::vec(op(), 1..60),
        after in prop::collection::vec(0..=ENTRIES, 8),
    ) {
        let (_dir, store) = store();
        fill(&store);
        let expected = store
            .write_now(move |write| {
                let mut expected = BTreeSet::new();
                for op in &ops {
                    let (ids, add): (Vec<u64>, _) = match op {
                        Op::Add(id) => (vec![*id], true),
                        Op::Remove(id) => (vec![*id], false),
                        Op::Run { from, step, add } => {
                            ((*from..=ENTRIES).step_by(*step).collect(), *add)
                        }
                    };
                    for id in ids {
                        let (removed, added) =
                            if add { (vec![], vec![key()]) } else { (vec![key()], vec![]) };
                        write.update(EntryId(id), &Entry::default(), &removed, &added)?;
                        if add { expected.insert(id) } else { expected.remove(&id) };
                    }
                }
                Ok::<_, Error>(expected)
            })
            .unwrap();
        let read = store.read().unwrap();
        let view = read.view();
        prop_assert_eq!(ids(view, 0), expected.iter().copied().collect::<Vec<_>>());
        for after in after {
            let rest: Vec<u64> = expected.range(after + 1..).copied().collect();
            prop_assert_eq!(ids(view, after), rest);
        }
        for id in 1..=ENTRIES {
            prop_assert_eq!(view.contains(&key(), EntryId(id)).unwrap(), expected.contains(&id));
        }
        view.check().unwrap();
    }
}

#[test]
fn a_deferred_load_lists_what_single_insertions_list() {
    let listed = |defer: bool| {
        let (_dir, store) = store();
        for job in 0..3u64 {
            store
                .write_now(move |write| {
                    if defer {
                        write.defer_postings();
                    }
                    for n in 0..400u64 {
                        let name = format!("cn={job}-{n}");
                        let text = format!("v{}", n % 7);
                        let keys = [key(), Key::new(b'e', &[b"cn", text.as_bytes()])];
                        write.insert(EntryId::ROOT, name.as_bytes(), &Entry::default(), &keys)?;
                    }
                    Ok::<_, Error>(())
                })
                .unwrap();
        }
        let read = store.read().unwrap();
        read.view().check().unwrap();
        let range = KeyRange::all(b'e', &[b"cn"]);
        let all = read.view().collect_range(&range, 5000).unwrap();
        assert_eq!(read.view().collect_range(&range, 2399).unwrap(), None, "2400 are listed");
        assert!(read.view().collect_range(&range, 2400).unwrap().is_some());
        (ids(read.view(), 0), all)
    };
    assert_eq!(listed(true), listed(false));
}
