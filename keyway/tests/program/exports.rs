//! Exports that were cut off or changed, compressed files, and the owners of the files that root
//! makes.

use crate::support::{Finished, KEYWAY, UNPRIVILEGED, finish, keyway, keyway_with, nightly};
use rustix::process::geteuid;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const TREE: &str = "dn: dc=shoes\nobjectClass: domain\ndc: shoes\n\n\
    dn: uid=ada,dc=shoes\nobjectClass: account\nobjectClass: shoeOwner\nuid: ada\nshoeSize: 42\n\n\
    dn: uid=bob,dc=shoes\nobjectClass: account\nuid: bob\n\n\
    dn: uid=eve,dc=shoes\nobjectClass: account\nuid: eve\ndescription: the third\n";

const SCHEMA: &str = "attributetype ( 1.3.6.1.4.1.99999.1 NAME 'shoeSize'\n\
    \tSYNTAX 1.3.6.1.4.1.1466.115.121.1.27 )\n\
    objectclass ( 1.3.6.1.4.1.99999.2 NAME 'shoeOwner' SUP top AUXILIARY MAY shoeSize )\n";

fn directory(command: &str, data: &Path, more: &[&str]) -> Finished {
    let data = data.to_str().unwrap();
    keyway([&["directory", command, "--data", data], more].concat())
}

/// A folder with the tree, and its export.
fn exported(place: &TempDir) -> (PathBuf, PathBuf) {
    let (data, tree) = (place.path().join("data"), place.path().join("tree.ldif"));
    let (schema, file) = (place.path().join("shoes.schema"), place.path().join("all.ldif"));
    fs::write(&tree, TREE).unwrap();
    fs::write(&schema, SCHEMA).unwrap();
    let given = [tree.to_str().unwrap(), "--schema", schema.to_str().unwrap()];
    let said = directory("import", &data, &given).well();
    assert!(said.err.contains("whether it is whole is not known"), "{}", said.err);
    directory("export", &data, &[file.to_str().unwrap()]).well();
    (data, file)
}

/// Imports a file into a new folder, and exports what is there.
fn into_new(place: &TempDir, file: &Path, more: &[&str]) -> (Finished, String) {
    let data = place.path().join("new");
    let _ = fs::remove_dir_all(&data);
    let finished = directory("import", &data, &[&[file.to_str().unwrap()], more].concat());
    let there = directory("export", &data, &["-"]);
    (finished, there.out)
}

/// Each is an error, or the folder has what the export has.
#[test]
fn no_damaged_export_is_taken_for_a_whole_one() {
    let place = tempfile::tempdir().unwrap();
    let (_, file) = exported(&place);
    let whole = fs::read_to_string(&file).unwrap();
    let (well, there) = into_new(&place, &file, &["--json"]);
    let json = well.well().json();
    assert_eq!((&json["verified"], &json["records"]), (&true.into(), &4.into()));
    assert_eq!(json["definitions_added"], serde_json::json!(["shoeSize", "shoeOwner"]));
    assert_eq!(there, whole);

    let damaged = place.path().join("damaged.ldif");
    let records: Vec<&str> = whole.split_inclusive("\n\n").collect();
    let places = if nightly() { 60 } else { 4 };
    let mut texts = Vec::new();
    for number in 0..places {
        let at = whole.len() * number / places;
        texts.push(whole.as_bytes()[..at].to_vec());
        let mut flipped = whole.clone().into_bytes();
        flipped[at] ^= 1;
        texts.push(flipped);
    }
    for at in 1..records.len() {
        let (mut less, mut more, mut turned) = (records.clone(), records.clone(), records.clone());
        less.remove(at);
        more.insert(at, records[at]);
        turned.swap(at - 1, at);
        texts.extend([less, more, turned].map(|all| all.concat().into_bytes()));
    }
    for text in texts {
        fs::write(&damaged, &text).unwrap();
        let (finished, there) = into_new(&place, &damaged, &[]);
        let text = String::from_utf8_lossy(&text);
        match finished.code {
            Some(0) => assert_eq!(there, whole, "{text}"),
            code => assert_eq!((code, finished.out.as_str()), (Some(1), ""), "{text}"),
        }
    }

    // It is said what to do, nothing of it is in, and one can go on all the same.
    let cut = whole.find("dn: uid=eve").unwrap();
    fs::write(&damaged, &whole[..cut]).unwrap();
    let (refused, there) = into_new(&place, &damaged, &[]);
    refused
        .refused(1, &["cut off", "behind 3 entries", "nothing of it was imported", "--unverified"]);
    assert!(!there.contains("dn:"), "{there}");
    let (taken, there) = into_new(&place, &damaged, &["--unverified"]);
    assert!(taken.well().err.contains("warning: ") && there.matches("dn:").count() == 3);
    // Damage to input that comes through a pipe is known at its end.
    let data = place.path().join("piped");
    let arguments = ["directory", "import", "-", "--data", data.to_str().unwrap()];
    let refused = keyway_with(arguments, &whole[..cut]);
    refused.refused(1, &["standard input", "cut off", "begin again with a new data folder"]);
    let nothing = place.path().join("nothing.ldif");
    fs::write(&nothing, "version: 1\n").unwrap();
    into_new(&place, &nothing, &[]).0.refused(1, &["there is no record in it"]);
}

#[test]
fn files_of_gzip_and_zstd_are_read_whatever_they_are_called() {
    let place = tempfile::tempdir().unwrap();
    let (data, file) = exported(&place);
    let whole = fs::read_to_string(&file).unwrap();
    for name in ["all.ldif.zst", "all.ldif.gz"] {
        let packed = place.path().join(name);
        directory("export", &data, &[packed.to_str().unwrap()]).well();
        let bytes = fs::read(&packed).unwrap();
        assert!(bytes.len() < whole.len() && !bytes.starts_with(b"#"), "{name}");
        let other = place.path().join("what.it.is");
        fs::write(&other, &bytes).unwrap();
        let (taken, there) = into_new(&place, &other, &[]);
        assert!(taken.well().out.contains("its checksum is right"));
        assert_eq!(there, whole);
        for cut in [bytes.len() - 1, bytes.len() / 2, 10] {
            fs::write(&other, &bytes[..cut]).unwrap();
            let (refused, there) = into_new(&place, &other, &[]);
            refused.refused(1, &["file was cut off", "nothing of it was imported", "--unverified"]);
            assert!(!there.contains("dn:"));
        }
        // One block of zstd that is cut off gives nothing.
        fs::write(&other, &bytes[..bytes.len() - 9]).unwrap();
        let (taken, there) = into_new(&place, &other, &["--unverified"]);
        assert!(taken.err.contains("what could be unpacked of it is in"), "{}", taken.err);
        assert_eq!(there.contains("dn: dc=shoes"), name.ends_with(".gz"), "{there}");
    }
    // The folder's own files are no place for an export.
    std::os::unix::fs::symlink(data.join("store"), place.path().join("link")).unwrap();
    let linked = place.path().join("link/data.mdb");
    for own in ["store/data.mdb", "keyway.toml", "version", "lock", "log"] {
        let refused = directory("export", &data, &[data.join(own).to_str().unwrap()]);
        refused.refused(1, &["is the data folder's own"]);
    }
    directory("export", &data, &[linked.to_str().unwrap()]).refused(1, &["folder's own"]);
    directory("export", &data, &[data.join("backup.ldif").to_str().unwrap()]).well();
    let made = place.path().join("made.ldif.zst");
    keyway(["data", "make", "--count", "20", "-o", made.to_str().unwrap()]).well();
    assert!(into_new(&place, &made, &[]).0.well().out.contains("imported 20 records"));
    fs::write(&made, b"\xFD7zXZ\0").unwrap();
    into_new(&place, &made, &[]).0.refused(1, &["compressed with xz", "xz -dc"]);
}

/// Every command that writes in a data folder leaves what it makes to the folder's owner, even when root runs it.
#[test]
fn what_root_makes_in_a_folder_is_its_owners() {
    if !geteuid().is_root() {
        let ci = std::env::var("CI").is_ok_and(|value| value == "true" || value == "1");
        assert!(!ci, "nothing may be skipped in CI, but this takes root");
        eprintln!("skipped: this takes root");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let (tree, schema) = (place.path().join("tree.ldif"), place.path().join("shoes.schema"));
    fs::write(&tree, TREE).unwrap();
    fs::write(&schema, SCHEMA).unwrap();
    // Files that only root may read are read all the same.
    for file in [&tree, &schema] {
        fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
    }
    let all_owned = |data: &Path, what: &str| {
        let mut left = vec![data.to_owned()];
        while let Some(path) = left.pop() {
            let metadata = fs::symlink_metadata(&path).unwrap();
            assert_eq!(
                (metadata.uid(), metadata.gid()),
                (UNPRIVILEGED, UNPRIVILEGED),
                "{what}: {path:?}"
            );
            if metadata.is_dir() {
                left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            }
        }
    };
    let folder = |name: &str| {
        let data = place.path().join(name);
        fs::create_dir(&data).unwrap();
        fs::set_permissions(&data, fs::Permissions::from_mode(0o700)).unwrap();
        chown(&data, Some(UNPRIVILEGED), Some(UNPRIVILEGED)).unwrap();
        data
    };
    let data = folder("data");
    let given = [tree.to_str().unwrap(), "--schema", schema.to_str().unwrap()];
    directory("import", &data, &given).well();
    all_owned(&data, "import");
    let file = place.path().join("all.ldif");
    let lock = data.join("store/lock.mdb");
    for (command, more) in [
        ("export", vec![file.to_str().unwrap()]),
        ("check", vec![]),
        ("reindex", vec![]),
        ("history", vec![]),
        ("indexes", vec![]),
    ] {
        // It is made anew.
        fs::remove_file(&lock).unwrap();
        fs::remove_file(data.join("lock")).unwrap();
        directory(command, &data, &more).well();
        all_owned(&data, command);
        if !lock.exists() {
            directory("check", &data, &[]).well();
        }
    }
    let set = ["config", "set", "limits.idle_max_s", "700", "--data", data.to_str().unwrap()];
    keyway(set).well();
    all_owned(&data, "config set");
    let made = folder("made");
    let into = ["data", "make", "--count", "5", "--into", made.to_str().unwrap()];
    keyway(into).well();
    all_owned(&made, "data make");
    // Its owner can go on with it.
    let mut own = Command::new("setpriv");
    own.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(KEYWAY);
    own.args(["directory", "check", "--data"]).arg(&data);
    finish(&mut own, "").well();
    // Root is led nowhere by what the owner has put there.
    let trap = folder("trap");
    let target = place.path().join("target");
    fs::write(&target, "precious").unwrap();
    std::os::unix::fs::symlink(&target, trap.join("lock")).unwrap();
    assert_eq!(directory("check", &trap, &[]).code, Some(1));
    assert_eq!(directory("import", &trap, &[tree.to_str().unwrap()]).code, Some(1));
    assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
}
