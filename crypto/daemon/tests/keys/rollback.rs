//! Older files that are put back, and keys that are disabled.

use crate::{MAC, MAC_PURPOSE, Place, at, caller, disabled, manager, now, user};
use keyway_daemon::keys::{Error, KeyStore, Material, Wanted};
use keyway_engine::Algorithm;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

/// A store with two keys that user 7 may use.
fn filled() -> Place {
    let place = Place::new();
    let store = place.open();
    for name in ["a", "b"] {
        store.add(name, MAC, Material::Secret(&[5; 16]), &manager(), at(1)).unwrap();
        store.allow(name, &user(7), MAC_PURPOSE, &manager(), at(2)).unwrap();
    }
    place
}

fn uses(store: &KeyStore, name: &str) -> Result<u32, Error> {
    let wanted = Wanted::new(Algorithm::HmacSha256, MAC_PURPOSE);
    store.session(name, &caller(7), wanted, now()).map(|key| key.version())
}

fn copied(place: &Place, names: &[&str]) -> Vec<Vec<u8>> {
    names.iter().map(|name| fs::read(place.folder().join(name)).unwrap()).collect()
}

fn put_back(place: &Place, names: &[&str], files: &[Vec<u8>]) {
    for (name, file) in names.iter().zip(files) {
        let path = place.folder().join(name);
        fs::write(&path, file).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    }
}

#[test]
fn an_older_file_revives_nothing() {
    type Change = fn(&KeyStore);
    let changes: [(&str, Change); 4] = [
        ("revoked", |store| store.revoke("a", &manager(), at(3)).unwrap()),
        ("rotated", |store| assert!(store.rotate("a", Material::NEW, &manager(), at(3)).is_ok())),
        ("taken away", |store| {
            assert!(store.forbid("a", &user(7), MAC_PURPOSE, &manager(), at(3)).unwrap());
        }),
        ("deleted", |store| {
            store.revoke("a", &manager(), at(3)).unwrap();
            store.delete("a", &manager(), at(4)).unwrap();
        }),
    ];
    for (what, change) in changes {
        let place = filled();
        let old = copied(&place, &["a.key"]);
        change(&place.open());
        put_back(&place, &["a.key"], &old);
        let store = place.open_damaged();
        let why = disabled(&store, "a").unwrap_or_else(|| panic!("{what}"));
        assert!(why.contains("put back") && why.contains("a.key"), "{why}");
        assert!(matches!(uses(&store, "a"), Err(Error::Unusable(_))), "{what}");
        assert_eq!(uses(&store, "b").unwrap(), 1, "{what}");
        // Nothing can be done with it that would make it look new.
        for done in [
            store.allow("a", &user(8), MAC_PURPOSE, &manager(), now()),
            store.revoke("a", &manager(), now()),
            store.rotate("a", Material::NEW, &manager(), now()).map(drop),
        ] {
            assert!(matches!(done, Err(Error::Disabled { .. })), "{what}");
        }
        assert!(matches!(
            store.add("a", MAC, Material::NEW, &manager(), now()),
            Err(Error::Exists(_))
        ));
        // Nor does a change of another key.
        store.rotate("b", Material::NEW, &manager(), now()).unwrap();
        drop(store);
        assert!(disabled(&place.open_damaged(), "a").is_some(), "{what}");
        // A manager who wants it says so.
        place.open_damaged().accept("a", &manager(), now()).unwrap();
        assert_eq!(uses(&place.open(), "a").unwrap(), 1, "{what}");
    }
}

#[test]
fn a_file_that_is_gone_is_missed() {
    let place = filled();
    let old = copied(&place, &["a.key"]);
    fs::remove_file(place.key_file("a")).unwrap();
    let store = place.open_damaged();
    assert!(disabled(&store, "a").unwrap().contains("missing"));
    assert!(matches!(store.accept("a", &manager(), now()), Err(Error::System { .. })));
    drop(store);
    // Put back, it is the newest.
    put_back(&place, &["a.key"], &old);
    assert!(uses(&place.open(), "a").is_ok());
    fs::remove_file(place.key_file("a")).unwrap();
    place.open_damaged().delete("a", &manager(), now()).unwrap();
    let store = place.open();
    assert_eq!(store.list().len(), 1);
    store.add("a", MAC, Material::NEW, &manager(), now()).unwrap();
}

#[test]
fn without_the_index_no_key_is_used_before_a_manager_has_accepted_it() {
    let place = filled();
    fs::remove_file(place.folder().join("index")).unwrap();
    let store = place.open_damaged();
    assert!(uses(&store, "a").is_err() && uses(&store, "b").is_err());
    assert!(disabled(&store, "a").unwrap().contains("index"));
    // A key that is made meanwhile is used, and gets no other key accepted.
    store.add("c", MAC, Material::NEW, &manager(), now()).unwrap();
    drop(store);
    let store = place.open_damaged();
    assert_eq!((disabled(&store, "a").is_some(), disabled(&store, "c").is_some()), (true, false));
    for name in ["a", "b"] {
        store.accept(name, &manager(), now()).unwrap();
    }
    assert!(matches!(store.accept("a", &manager(), now()), Err(Error::Unfit(_))));
    drop(store);
    let store = place.open();
    assert!(uses(&store, "a").is_ok() && uses(&store, "b").is_ok());
}

#[test]
fn an_older_index_is_told_from_the_audit_log() {
    let place = filled();
    let names = ["a.key", "index"];
    let old = copied(&place, &names);
    let log = copied(&place, &["audit.log"]);
    place.open().revoke("a", &manager(), now()).unwrap();
    put_back(&place, &names, &old);
    let store = place.open_damaged();
    assert!(disabled(&store, "a").unwrap().contains("audit log"));
    assert!(uses(&store, "b").is_err());
    drop(store);
    // All of it put back, as from a backup, is an earlier state and in order.
    put_back(&place, &names, &old);
    put_back(&place, &["audit.log"], &log);
    let store = place.open();
    assert!(uses(&store, "a").is_ok() && uses(&store, "b").is_ok());
}

#[test]
fn what_a_crash_leaves_between_two_files_is_no_older_state() {
    let place = filled();
    let index = copied(&place, &["index"]);
    let log = copied(&place, &["audit.log"]);
    let store = place.open();
    store.rotate("a", Material::NEW, &manager(), now()).unwrap();
    store.add("c", MAC, Material::NEW, &manager(), now()).unwrap();
    drop(store);
    // As if neither the index nor the log had been written any more.
    put_back(&place, &["index"], &index);
    put_back(&place, &["audit.log"], &log);
    let store = place.open();
    assert_eq!(store.show("a").unwrap().versions.len(), 2);
    store.revoke("c", &manager(), now()).unwrap();
    drop(store);
    assert_eq!(place.open().list().len(), 3);
}

/// Usage counts are saved without the index, and a change that changes nothing has a line in the log.
#[test]
fn usage_counts_make_no_state_look_old() {
    let place = filled();
    let store = place.open();
    let wanted = Wanted::new(Algorithm::HmacSha256, MAC_PURPOSE);
    let key = store.session("a", &caller(7), wanted, now()).unwrap();
    for _ in 0..3 {
        key.count(1);
        store.save_usage().unwrap();
    }
    assert!(!store.forbid("a", &user(9), MAC_PURPOSE, &manager(), now()).unwrap());
    drop((store, key));
    assert_eq!(place.open().show("a").unwrap().versions[0].uses, 3);
}

#[test]
fn names_are_none_that_a_shell_or_a_folder_takes_for_something_else() {
    let place = Place::new();
    let store = place.open();
    for name in [".", "..", "-x", "--", ".hidden", "", "a/b", "a b", "a\u{202e}b", "\u{2066}a", "A"]
    {
        let added = store.add(name, MAC, Material::NEW, &manager(), now());
        assert!(matches!(added, Err(Error::Name)), "{name:?}");
    }
    for name in ["a", "_a", "0", "a..b-", "tls.server"] {
        store.add(name, MAC, Material::NEW, &manager(), now()).unwrap();
    }
}
