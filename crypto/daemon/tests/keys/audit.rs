//! The audit log.

use crate::{ENGINE, MAC, MAC_PURPOSE, Place, caller, manager, now, user};
use keyway_daemon::keys::{KeyStore, Master, MasterKey, Material, Wanted};
use keyway_engine::Algorithm;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::{Arc, Mutex};

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn changes_and_refusals_have_a_line_each_and_secrets_none() {
    let place = Place::new();
    let store = place.open();
    let secret = [0x41; 32];
    store.add("k", MAC, Material::Secret(&secret), &manager(), now()).unwrap();
    store.add("k", MAC, Material::NEW, &manager(), now()).unwrap_err();
    store.allow("k", &user(7), MAC_PURPOSE, &manager(), now()).unwrap();
    store.rotate("k", Material::NEW, &manager(), now()).unwrap();
    let wanted = Wanted::new(Algorithm::HmacSha256, MAC_PURPOSE);
    store.session("k", &caller(7), wanted, now()).unwrap();
    store.session("k", &caller(8), wanted, now()).unwrap_err();
    store.session("none", &caller(8), wanted, now()).unwrap_err();
    store.session("not\na name", &caller(8), wanted, now()).unwrap_err();
    store.forbid("k", &user(7), MAC_PURPOSE, &manager(), now()).unwrap();
    store.revoke("k", &manager(), now()).unwrap();
    store.delete("k", &manager(), now()).unwrap();

    let path = place.folder().join("audit.log");
    let lines = lines(&path);
    let of = |field: &str| -> Vec<String> {
        let text = |line: &Value| line[field].as_str().unwrap_or("-").to_owned();
        lines.iter().map(text).collect()
    };
    assert_eq!(
        of("action"),
        [
            "import", "generate", "allow", "rotate", "session", "session", "session", "forbid",
            "revoke", "delete"
        ]
    );
    assert_eq!(of("key"), ["k", "k", "k", "k", "k", "none", "-", "k", "k", "k"]);
    let results = of("result");
    assert_eq!(results.iter().filter(|result| *result == "ok").count(), 6);
    assert_eq!(results[1], "there is a key `k` already");
    assert_eq!(results[4], "key `k` is not allowed to this caller");
    assert_eq!(results[5], "there is no key `none`");
    assert_eq!(lines[2]["detail"], "mac to uid 7");
    assert_eq!(lines[3]["version"], 2);
    assert_eq!(lines[4]["uid"], 8);
    assert_eq!(lines[4]["pid"], 1);
    assert_eq!(lines[4]["executable"], "/usr/bin/client");
    assert_eq!(lines[0]["time"], "2023-11-14T22:13:20Z");
    assert!(!fs::read_to_string(&path).unwrap().contains("AAAA"));
}

#[test]
fn a_flood_of_refusals_has_few_lines_and_their_number() {
    let place = Place::new();
    let store = place.open();
    store.add("k", MAC, Material::NEW, &manager(), now()).unwrap();
    let wanted = Wanted::new(Algorithm::HmacSha256, MAC_PURPOSE);
    for _ in 0..5_000 {
        store.session("k", &caller(8), wanted, now()).unwrap_err();
    }
    store.session("k", &caller(9), wanted, now()).unwrap_err();
    // The acts of a manager are written, and so is what a manager is refused.
    for _ in 0..50 {
        store.allow("none", &user(7), MAC_PURPOSE, &manager(), now()).unwrap_err();
    }
    let later = now() + std::time::Duration::from_secs(120);
    store.session("k", &caller(8), wanted, later).unwrap_err();
    let lines = lines(&place.folder().join("audit.log"));
    let of = |uid: u64| lines.iter().filter(|line| line["uid"] == uid).count();
    assert_eq!(lines.iter().filter(|line| line["action"] == "allow").count(), 50);
    assert_eq!((of(9), of(8)), (1, 32 + 2));
    let counted = lines.iter().find(|line| line["action"] == "refusals").unwrap();
    assert_eq!((&counted["uid"], &counted["count"]), (&8.into(), &(5_000 - 32).into()));
}

#[test]
fn a_full_disk_is_reported_once_and_stops_nothing() {
    let place = Place::new();
    let reports = Arc::new(Mutex::new(Vec::new()));
    let master = MasterKey::from_file(&place.master()).unwrap();
    let report = {
        let reports = reports.clone();
        move |what: &str| reports.lock().unwrap().push(what.to_owned())
    };
    let store = KeyStore::open(&place.folder(), Master::Key(&master), &ENGINE, report).unwrap();
    let path = place.folder().join("audit.log");
    symlink("/dev/full", &path).unwrap();
    for name in ["a", "b", "c"] {
        store.add(name, MAC, Material::NEW, &manager(), now()).unwrap();
    }
    assert_eq!(reports.lock().unwrap().len(), 1);
    assert!(reports.lock().unwrap()[0].contains("lines of it are lost"));
    fs::remove_file(&path).unwrap();
    store.revoke("a", &manager(), now()).unwrap();
    store.revoke("b", &manager(), now()).unwrap();
    assert_eq!(lines(&path).len(), 2);
    assert_eq!(reports.lock().unwrap().len(), 2);
}

#[test]
fn refusals_do_not_fill_the_disk() {
    let place = Place::new();
    let reports = Arc::new(Mutex::new(Vec::new()));
    let master = MasterKey::from_file(&place.master()).unwrap();
    let report = {
        let reports = reports.clone();
        move |what: &str| reports.lock().unwrap().push(what.to_owned())
    };
    let store = KeyStore::open(&place.folder(), Master::Key(&master), &ENGINE, report).unwrap();
    let path = place.folder().join("audit.log");
    // As long as the limit, and without a byte on the disk.
    let file = fs::File::create(&path).unwrap();
    file.set_len(64 << 20).unwrap();
    let wanted = Wanted::new(Algorithm::HmacSha256, MAC_PURPOSE);
    let refuse = || store.session("none", &caller(8), wanted, now()).unwrap_err();
    let bytes = || fs::metadata(&path).unwrap().len();
    for _ in 0..3 {
        refuse();
    }
    assert_eq!(bytes(), 64 << 20);
    store.add("k", MAC, Material::NEW, &manager(), now()).unwrap();
    refuse();
    assert!(bytes() > 64 << 20);
    assert_eq!(reports.lock().unwrap().len(), 1);
    // Moved away by an operator.
    fs::rename(&path, place.folder().join("audit.log.1")).unwrap();
    refuse();
    assert_eq!(lines(&path).len(), 1);
}
