//! The store through its public interface: one of everything.

use keyway_store::{Entry, EntryId, Error, Key, KeyRange, Names, Options, Store};

fn entry(rdn: &str) -> Entry {
    Entry {
        rdn: rdn.into(),
        attributes: vec![("cn".into(), vec![rdn.as_bytes().to_vec()])],
        ..Entry::default()
    }
}

fn open(dir: &std::path::Path) -> Store {
    Store::open(dir, Options { sync: false, map_bytes_max: 64 << 20, ..Options::default() })
        .unwrap()
}

fn value(v: &str) -> Key {
    Key::new(b'e', &[b"cn", v.as_bytes()])
}

#[test]
fn entries_are_added_found_moved_and_removed() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let (top, ann) = store
        .write_now(|w| {
            let top = w.insert(EntryId::ROOT, b"dc=x", &entry("dc=X"), &[])?;
            let ann = w.insert(top, b"cn=ann", &entry("cn=Ann"), &[value("ann")])?;
            w.meta_put("suffix", b"dc=x")?;
            Ok::<_, Error>((top, ann))
        })
        .unwrap();
    let read = store.read().unwrap();
    let view = read.view();
    assert_eq!(view.child(top, b"cn=ann").unwrap(), Some(ann));
    assert_eq!(view.dn(ann, &mut Names::new()).unwrap().as_deref(), Some("cn=Ann,dc=X"));
    assert_eq!(view.child_count(top).unwrap(), 1);
    assert_eq!(view.meta_get("suffix").unwrap(), Some(&b"dc=x"[..]));
    assert!(view.contains(&value("ann"), ann).unwrap());
    let below: Vec<_> = view
        .postings(&Key::subtree(top), EntryId::ROOT)
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(below, [top, ann]);
    let found = view.collect_range(&KeyRange::prefix(b'e', &[b"cn", b"an"]), 10).unwrap();
    assert_eq!(found, Some(vec![ann]));

    let refused = store.write_now(move |w| w.delete(top, b"dc=x", &[]));
    assert!(matches!(refused, Err(Error::HasChildren)));
    store.write_now(move |w| w.delete(ann, b"cn=ann", &[value("ann")])).unwrap();
    assert_eq!(view.child_count(top).unwrap(), 1, "a read transaction does not move");
    assert_eq!(store.read().unwrap().view().child_count(top).unwrap(), 0);
}
