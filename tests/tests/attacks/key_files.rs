//! Key files that are damaged, or older ones that are put back, and names that are none.

use keyway_tests::cryptod::{Cryptod, beside_neighbours};
use keyway_tests::{ALL_CALLERS, Finished, Server, finish, keyway};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

fn key(cryptod: &Cryptod, arguments: &[&str]) -> Finished {
    let mut command = Command::new(keyway());
    finish(command.arg("key").args(arguments).arg("--socket").arg(cryptod.socket()), "text")
}

fn make(cryptod: &Cryptod, name: &str) {
    key(cryptod, &["generate", name, "--algorithm", "ed25519", "--for", ALL_CALLERS]).expect(0);
}

fn file(cryptod: &Cryptod, name: &str) -> PathBuf {
    cryptod.data().join(format!("cryptod/keys/{name}.key"))
}

/// The states of all keys.
fn states(cryptod: &Cryptod) -> Vec<(String, String)> {
    let listed: Value =
        serde_json::from_str(&key(cryptod, &["list", "--json"]).expect(0).out).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let keys = listed["keys"].as_array().unwrap().iter();
    keys.map(|key| (text(&key["name"]), text(&key["state"]))).collect()
}

fn spoil(file: &Path) {
    let mut bytes = fs::read(file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(file, bytes).unwrap();
}

#[test]
fn an_older_file_does_not_revive_a_revoked_key() {
    let cryptod = Cryptod::start(&[]);
    make(&cryptod, "revoked");
    make(&cryptod, "other");
    let old = fs::read(file(&cryptod, "revoked")).unwrap();
    key(&cryptod, &["sign", "revoked"]).expect(0);
    key(&cryptod, &["revoke", "revoked"]).expect(0);
    let folder = cryptod.folder().clone();
    let path = file(&cryptod, "revoked");
    assert!(cryptod.stop().success());
    fs::write(&path, old).unwrap();
    beside_neighbours(Cryptod::start_on(&folder, &[]), |cryptod| {
        let state = |name: &str, state: &str| (name.to_owned(), state.to_owned());
        assert_eq!(states(cryptod), [state("other", "active"), state("revoked", "disabled")]);
        let refused = key(cryptod, &["sign", "revoked"]).expect(1);
        assert!(refused.err.contains("damaged or not the newest"), "{}", refused.err);
        key(cryptod, &["sign", "other"]).expect(0);
        let listed = key(cryptod, &["list"]).expect(0).out;
        assert!(listed.contains("an older file of it was put back"), "{listed}");
        // Nor is it revived by being made anew, or by a start after that.
        let again = ["generate", "revoked", "--algorithm", "ed25519"];
        assert!(key(cryptod, &again).expect(1).err.contains("already"));
        key(cryptod, &["delete", "revoked"]).expect(0);
        key(cryptod, &["sign", "revoked"]).expect(1);
    });
}

#[test]
fn a_damaged_file_disables_its_key_and_nothing_else() {
    let cryptod = Cryptod::start(&[]);
    for name in ["spoilt", "whole"] {
        make(&cryptod, name);
    }
    let folder = cryptod.folder().clone();
    let path = file(&cryptod, "spoilt");
    let good = fs::read(&path).unwrap();
    assert!(cryptod.stop().success());
    // In the file's place comes a FIFO. To open that would wait for a process at its other end.
    fs::remove_file(&path).unwrap();
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let cryptod = Cryptod::start_on(&folder, &[]);
    key(&cryptod, &["sign", "spoilt"]).expect(1);
    assert!(cryptod.stop().success());
    fs::remove_file(&path).unwrap();
    fs::write(&path, &good).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    spoil(&path);
    beside_neighbours(Cryptod::start_on(&folder, &[]), |cryptod| {
        key(cryptod, &["sign", "spoilt"]).expect(1);
        key(cryptod, &["sign", "whole"]).expect(0);
        let why = key(cryptod, &["accept", "spoilt"]).expect(1).err;
        assert!(why.contains("spoilt.key"), "{why}");
        // A file that is gone is said to be, and not by the system's name for that.
        fs::remove_file(&path).unwrap();
        let why = key(cryptod, &["accept", "spoilt"]).expect(1).err;
        assert!(why.contains("there is no such file; put it back from a backup"), "{why}");
        // Restored from a backup while the daemon runs.
        fs::write(&path, &good).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        key(cryptod, &["accept", "spoilt"]).expect(0);
        key(cryptod, &["sign", "spoilt"]).expect(0);
    });
}

/// A directory whose cryptod has a damaged key starts, also if it is that of its certificate.
#[test]
fn a_directory_starts_beside_damaged_keys() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let start = || Server::start(&data, &[]);
    assert!(start().stop().success());
    let keys = data.join("cryptod/keys");
    let mut spoilt = 0;
    for file in fs::read_dir(&keys).unwrap().map(|file| file.unwrap().path()) {
        if file.file_name().is_some_and(|it| it.to_string_lossy().starts_with("tls-server")) {
            spoil(&file);
            spoilt += 1;
        }
    }
    assert!(spoilt > 0);
    assert!(start().stop().success());
}

#[test]
fn names_that_are_options_folders_or_not_what_they_look_like_are_refused() {
    let cryptod = Cryptod::start(&[]);
    for name in [".", "..", "-x", ".hidden", "a/b", "\u{202e}web", "we\u{2066}b", "web\n"] {
        let arguments = ["generate", "--algorithm", "ed25519", "--", name];
        let mut command = Command::new(keyway());
        command.arg("key").args(&arguments[..1]).arg("--socket").arg(cryptod.socket());
        let said = finish(command.args(&arguments[1..]), "").expect(1).err;
        assert!(said.contains("a key's name begins with"), "{name:?}: {said}");
    }
    assert_eq!(states(&cryptod), []);
    assert!(cryptod.stop().success());
}
