//! Stores whose files are spoilt, exposed or half written.

use crate::{
    ENGINE, MAC, MAC_PURPOSE, Place, at, disabled, manager, no_report, now, try_open, user,
};
use keyway_daemon::keys::{Error, KeyStore, Master, MasterKey, Material};
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// A store with two keys, one of them with two versions.
fn filled() -> Place {
    let place = Place::new();
    let store = place.open();
    for name in ["a", "b"] {
        store.add(name, MAC, Material::Secret(&[5; 16]), &manager(), at(1)).unwrap();
    }
    store.allow("a", &user(7), MAC_PURPOSE, &manager(), at(2)).unwrap();
    store.rotate("a", Material::NEW, &manager(), at(3)).unwrap();
    place
}

#[test]
fn every_byte_of_a_file_that_is_spoilt_is_noticed_and_nothing_is_lost() {
    let place = filled();
    let before = place.open().list();
    let header = place.folder().join("store");
    for path in [place.key_file("a"), place.folder().join("index"), header.clone()] {
        let bytes = fs::read(&path).unwrap();
        let spoil = |spoilt: &[u8], what: &str| {
            fs::write(&path, spoilt).unwrap();
            if path == header {
                match place.try_open() {
                    Err(Error::Damaged { file, .. }) => assert_eq!(file, path, "{what}"),
                    Err(other) => panic!("{what}: {other}"),
                    Ok(_) => panic!("{what} was not noticed"),
                }
            } else {
                let store = place.open_damaged();
                let why = disabled(&store, "a").unwrap_or_else(|| panic!("{what} was not noticed"));
                assert!(why.contains(path.to_str().unwrap()), "{what}: {why}");
                // The other key stays in use, unless all keys are in doubt.
                let is_of_one = path == place.key_file("a");
                assert_eq!(disabled(&store, "b").is_none(), is_of_one, "{what}");
            }
            // It was left as it is.
            assert_eq!(fs::read(&path).unwrap(), spoilt);
        };
        for at in 0..bytes.len() {
            for flipped in [0x01, 0x80, 0xff] {
                let mut spoilt = bytes.clone();
                spoilt[at] ^= flipped;
                spoil(&spoilt, &format!("byte {at} of {}", path.display()));
            }
            spoil(&bytes[..at], &format!("{} cut to {at} bytes", path.display()));
        }
        spoil(&[&bytes[..], b"x"].concat(), "a byte more");
        spoil(&vec![0; 9 << 20], "nine million zeros");
        fs::write(&path, &bytes).unwrap();
        assert_eq!(place.open().list(), before);
    }
}

#[test]
fn a_file_of_another_key_or_store_is_named() {
    let place = filled();
    let foreign = filled();
    for (from, name) in
        [(place.key_file("a"), "b"), (place.key_file("a"), "c"), (foreign.key_file("b"), "b")]
    {
        let to = place.key_file(name);
        let before = fs::read(&to).ok();
        fs::copy(from, &to).unwrap();
        let why = disabled(&place.open_damaged(), name).unwrap();
        assert!(why.contains(to.to_str().unwrap()), "{why}");
        match before {
            Some(bytes) => fs::write(&to, bytes).unwrap(),
            None => fs::remove_file(&to).unwrap(),
        }
    }
    fs::create_dir(place.key_file("folder")).unwrap();
    assert!(disabled(&place.open_damaged(), "folder").is_some());
    fs::remove_dir(place.key_file("folder")).unwrap();
    fs::copy(place.key_file("a"), place.key_file("Capital")).unwrap();
    assert_eq!(place.open_damaged().list().len(), 2);
    fs::remove_file(place.key_file("Capital")).unwrap();
    // A file that is no key does not matter.
    fs::write(place.folder().join("README"), "words").unwrap();
    assert_eq!(place.open().list().len(), 2);
}

#[test]
fn what_was_half_written_is_cleaned_up() {
    let place = filled();
    let before = place.open().list();
    for draft in ["a.key.new", "c.key.new", "store.new"] {
        fs::write(place.folder().join(draft), "half").unwrap();
    }
    assert_eq!(place.open().list(), before);
    assert!(!place.folder().join("a.key.new").exists());
    assert!(!place.folder().join("store.new").exists());
}

#[test]
fn files_are_for_their_owner_alone() {
    let place = filled();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&place.folder()), 0o700);
    for file in ["store", "index", "a.key", "b.key", "audit.log", "lock"] {
        assert_eq!(mode(&place.folder().join(file)), 0o600, "{file}");
    }
    assert_eq!(mode(&place.master()), 0o600);
    for path in [place.folder(), place.master(), place.folder().join("store")] {
        let before = mode(&path);
        for more in [0o040, 0o004, 0o020] {
            fs::set_permissions(&path, Permissions::from_mode(before | more)).unwrap();
            match place.try_open() {
                Err(Error::Exposed(exposed)) => assert_eq!(exposed, path),
                other => panic!("{}: {other:?}", path.display()),
            }
        }
        fs::set_permissions(&path, Permissions::from_mode(before)).unwrap();
    }
    // A key that others may have read is used no more, and that alone.
    fs::set_permissions(place.key_file("a"), Permissions::from_mode(0o640)).unwrap();
    let store = place.open_damaged();
    assert!(disabled(&store, "a").unwrap().contains("others than this user"));
    assert_eq!(disabled(&store, "b"), None);
    drop(store);
    fs::set_permissions(place.key_file("a"), Permissions::from_mode(0o600)).unwrap();
    place.open();
}

#[test]
fn a_store_is_open_once_and_made_once() {
    let place = filled();
    let store = place.open();
    assert!(matches!(place.try_open(), Err(Error::InUse(_))));
    drop(store);
    let master = MasterKey::from_file(&place.master()).unwrap();
    let create = || KeyStore::create(&place.folder(), Master::Key(&master), &ENGINE, no_report);
    assert!(matches!(create(), Err(Error::StoreExists(_))));
    assert!(KeyStore::exists(&place.folder()));
    // Keys whose header is gone are not buried under a new one.
    fs::remove_file(place.folder().join("store")).unwrap();
    assert!(!KeyStore::exists(&place.folder()));
    assert!(matches!(create(), Err(Error::Damaged { .. })));
    assert!(matches!(place.try_open(), Err(Error::System { .. })));
}

#[test]
fn a_disk_that_refuses_leaves_the_key_as_it_was() {
    let place = filled();
    let store = place.open();
    let before = store.list();
    // Nothing can be written where a folder is.
    fs::create_dir_all(place.folder().join("a.key.new/full")).unwrap();
    assert!(matches!(
        store.rotate("a", Material::NEW, &manager(), now()),
        Err(Error::System { .. })
    ));
    assert_eq!(store.list(), before);
    fs::remove_dir_all(place.folder().join("a.key.new")).unwrap();
    store.rotate("a", Material::NEW, &manager(), now()).unwrap();
}

/// The end of a key's use does not wait for a disk, and is on it once that works.
#[test]
fn a_key_is_revoked_although_the_disk_refuses() {
    let place = filled();
    let store = place.open();
    fs::create_dir_all(place.folder().join("a.key.new/full")).unwrap();
    let why = store.revoke("a", &manager(), now()).unwrap_err();
    assert!(matches!(&why, Error::Unsaved { name, .. } if name == "a"), "{why}");
    assert!(why.to_string().contains("the next start would forget it"), "{why}");
    let revoked = |store: &KeyStore| store.show("a").unwrap().revoked_s.is_some();
    assert!(revoked(&store));
    store.save_usage().unwrap_err();
    fs::remove_dir_all(place.folder().join("a.key.new")).unwrap();
    store.save_usage().unwrap();
    drop(store);
    assert!(revoked(&place.open()));
}

/// In the environment of a process that changes a store until it is killed.
const FOLDER: &str = "KEYWAY_TEST_KEYS_FOLDER";

#[test]
fn a_process_that_is_killed_leaves_whole_keys() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return change_without_end(Path::new(&folder));
    }
    let place = filled();
    let mut rotated = 2;
    for kills in 1..=if std::env::var_os("KEYWAY_NIGHTLY").is_some() { 40 } else { 6 } {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "disk::a_process_that_is_killed_leaves_whole_keys", "--nocapture"])
            .env(FOLDER, place.dir.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // Killed while it makes the next change, or the one after it.
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let told = lines.filter_map(|line| line.strip_prefix("version ")?.parse().ok());
        let told: u32 = told.take(kills % 4 + 1).last().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let store = place.open();
        let version = store.show("a").unwrap().versions.last().unwrap().number;
        assert!(version >= told && told > rotated, "{rotated}, then {told}, then {version}");
        assert_eq!(store.show("b").unwrap().versions.len(), 1);
        rotated = version;
    }
}

fn change_without_end(dir: &Path) {
    let store = try_open(&dir.join("keys"), &dir.join("master")).unwrap();
    loop {
        let version = store.rotate("a", Material::NEW, &manager(), now()).unwrap();
        println!("\nversion {version}");
    }
}
