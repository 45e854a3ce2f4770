//! Long posting lists under random insertions and removals, against a plain set.

use std::collections::BTreeSet;

use keyway_store::{Entry, EntryId, Error, Key, KeyRange, Options, Store, View, Write};
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
        let all = KeyRange::all(b'e', &[b"cn"]);
        for n in [0, 1, 300, expected.len(), 10 * ENTRIES as usize] {
            let counted = expected.len().min(n);
            prop_assert_eq!(view.count_at_most(&key(), n).unwrap(), counted);
            prop_assert_eq!(view.count_range_at_most(&all, n).unwrap(), counted);
        }
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

/// In one change they are put aside; in changes of their own they are written one by one.
#[test]
fn one_change_lists_what_single_ones_list_and_sees_it_itself() {
    let range = KeyRange::all(b'e', &[b"cn"]);
    let seen = |view: View<'_>| {
        let all = view.collect_range(&KeyRange::all(b'e', &[b"cn"]), 5000).unwrap();
        let contains = |id| view.contains(&key(), EntryId(id)).unwrap();
        let range = KeyRange::all(b'e', &[b"cn"]);
        let counts = [
            view.count_at_most(&key(), 10_000).unwrap(),
            view.count_range_at_most(&range, 10_000).unwrap(),
            view.count_range_at_most(&range, 9).unwrap(),
        ];
        (ids(view, 0), ids(view, 211), all, contains(7), contains(100_000), counts)
    };
    let insert = |write: &mut Write<'_>, n: u64| {
        let name = format!("cn={n}");
        let text = format!("v{}", n % 7);
        let keys = [key(), Key::new(b'e', &[b"cn", text.as_bytes()])];
        write.insert(EntryId::ROOT, name.as_bytes(), &Entry::default(), &keys)
    };
    let (_one_dir, one) = store();
    let (_many_dir, many) = store();
    insert_all(&many, 1, insert);
    insert_all(&one, 400, insert);
    let inside = one.write_now(move |write| {
        for n in 400..800 {
            insert(write, n)?;
        }
        // The identifiers in the table lie before, behind and among those put aside.
        write.update(EntryId(3), &Entry::default(), &[], &[Key::new(b'e', &[b"cn", b"v0"])])?;
        Ok::<_, Error>(seen(write.view()))
    });
    let read = one.read().unwrap();
    assert_eq!(inside.unwrap(), seen(read.view()));
    read.view().check().unwrap();
    assert_eq!(read.view().collect_range(&range, 1600).unwrap(), None, "1601 are listed");
    assert!(read.view().collect_range(&range, 1601).unwrap().is_some());
    many.write_now(move |write| {
        write.update(EntryId(3), &Entry::default(), &[], &[Key::new(b'e', &[b"cn", b"v0"])])
    })
    .unwrap();
    assert_eq!(seen(many.read().unwrap().view()), seen(read.view()));
}

/// Inserts 400 or 800 entries, so many in a change.
fn insert_all(
    store: &Store,
    in_a_change: u64,
    insert: impl Fn(&mut Write<'_>, u64) -> Result<EntryId, Error> + Copy + Send + 'static,
) {
    let count = if in_a_change == 1 { 800 } else { 400 };
    for first in (0..count).step_by(in_a_change as usize) {
        store
            .write_now(move |write| {
                (first..first + in_a_change).try_for_each(|n| insert(write, n).map(drop))
            })
            .unwrap();
    }
}

#[test]
fn lists_are_made_and_dropped_in_pieces() {
    let (_dir, store) = store();
    fill(&store);
    let own = |n: u64| Key::new(b'e', &[b"sn", format!("{n}").as_bytes()]);
    let other = Key::new(b'e', &[b"sna"]);
    let wanted = other.clone();
    store
        .write_now(move |write| {
            for n in 1..=ENTRIES {
                // Twice: a listed entry stays so.
                write.list(EntryId(n), &[own(n), wanted.clone()])?;
                write.list(EntryId(n), &[own(n)])?;
            }
            let unknown = write.list(EntryId(ENTRIES + 1), &[]);
            assert!(matches!(unknown, Err(Error::NotFound)));
            Ok::<_, Error>(())
        })
        .unwrap();
    let range = KeyRange::all(b'e', &[b"sn"]);
    let count = |range: &KeyRange| {
        store.read().unwrap().view().count_range_at_most(range, usize::MAX).unwrap() as u64
    };
    assert_eq!(count(&range), ENTRIES);
    let mut pieces = 1;
    loop {
        let range = range.clone();
        if !store.write_now(move |write| write.drop_lists(&range, 700)).unwrap() {
            break;
        }
        pieces += 1;
    }
    assert_eq!((pieces, count(&range)), (3, 0));
    let read = store.read().unwrap();
    assert_eq!(read.view().count_at_most(&other, usize::MAX).unwrap() as u64, ENTRIES);
    let without = read.view().check_and_tell(&[KeyRange::all(b'e', &[b"sna"])], &mut |_, _| {});
    // Their own lists of children and subtrees are left.
    assert_eq!(without.unwrap().postings, 2 * ENTRIES);
}
