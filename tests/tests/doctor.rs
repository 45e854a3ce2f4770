//! `keyway doctor`, on folders with and without faults, and on disks of their own.

use keyway_tests::{Finished, Server, available, finish, keyway};
use serde_json::Value;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

fn doctor(data: &Path) -> Finished {
    finish(Command::new(keyway()).args(["doctor", "--json", "--data"]).arg(data), "")
}

/// What was found, without the last line.
fn findings(finished: &Finished) -> Vec<Value> {
    let lines = finished.out.lines().map(|line| serde_json::from_str(line).unwrap());
    let mut lines: Vec<Value> = lines.collect();
    let last = lines.pop().unwrap();
    let faults = lines.iter().filter(|line| line["verdict"] == "fault").count();
    assert_eq!((&last["event"], &last["faults"]), (&"examined".into(), &faults.into()), "{last}");
    lines
}

/// The verdicts on one thing.
fn verdicts(all: &[Value], about: &str) -> Vec<String> {
    let them = all.iter().filter(|one| one["about"] == about);
    them.map(|one| one["verdict"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_folder_is_examined_beside_its_server_and_without() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let refused = doctor(&data).expect(1);
    assert!(refused.out.contains("holds no data"), "{}", refused.out);
    let server = Server::start(&data, &["--sample", "10"]);
    let beside = findings(&doctor(&data));
    for about in ["file system", "free space", "sync time", "permissions", "limits", "clock"] {
        assert!(!verdicts(&beside, about).is_empty(), "{about}");
    }
    assert_eq!(verdicts(&beside, "store"), ["good"]);
    assert_eq!(verdicts(&beside, "settings"), ["good"]);
    assert_eq!(verdicts(&beside, "permissions"), ["good"]);
    let said = |all: &[Value], text: &str| {
        all.iter().any(|one| one["found"].as_str().unwrap().contains(text))
    };
    assert!(said(&beside, "there is no backup"));
    assert!(server.stop().success());
    let text = finish(Command::new(keyway()).args(["doctor", "--data"]).arg(&data), "");
    assert!(text.out.contains("permissions") && !text.out.contains("FAULT  "), "{}", text.out);

    // A backup, and its verification.
    let repository = folder.path().join("repository");
    let key = folder.path().join("backup.key");
    let backup = |word: &str| {
        let mut command = Command::new(keyway());
        command.args(["backup", word]).arg(&repository).arg("--key-file").arg(&key);
        finish(command.arg("--data").arg(&data), "").expect(0);
    };
    backup("create");
    let all = findings(&doctor(&data));
    assert!(said(&all, "No backup was ever verified") && !said(&all, "there is no backup"));
    backup("verify");
    assert!(!said(&findings(&doctor(&data)), "verified"));

    // What endangers it.
    fs::set_permissions(data.join("admin-password"), Permissions::from_mode(0o644)).unwrap();
    let found = doctor(&data).expect(1);
    let all = findings(&found);
    assert_eq!(verdicts(&all, "permissions"), ["fault"], "{}", found.out);
    fs::set_permissions(data.join("admin-password"), Permissions::from_mode(0o600)).unwrap();
    fs::write(data.join("keyway.toml"), "[limits]\nconnections_max = 0\n").unwrap();
    assert_eq!(verdicts(&findings(&doctor(&data)), "settings"), ["fault"]);
    fs::write(data.join("keyway.toml"), "[limits]\nconnections_max = 4000000\n").unwrap();
    assert_eq!(verdicts(&findings(&doctor(&data)), "limits"), ["warning"]);
    fs::remove_dir_all(data.join("store")).unwrap();
    assert_eq!(verdicts(&findings(&doctor(&data)), "store"), ["fault"]);
}

/// A file system, mounted.
struct Mounted<'a>(&'a Path);

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

fn mount<'a>(arguments: &[&str], at: &'a Path) -> Mounted<'a> {
    let mut command = Command::new("mount");
    finish(command.args(arguments).arg(at), "").expect(0);
    Mounted(at)
}

#[test]
fn the_store_has_a_disk_of_its_own() {
    if !available(&["mkfs.ext4", "mount", "umount"]) {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        let ci = std::env::var("CI").is_ok_and(|value| value == "true" || value == "1");
        assert!(!ci, "nothing may be skipped in CI, but to mount a file system takes root");
        eprintln!("skipped: to mount a file system takes root");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (image, data) = (folder.path().join("image"), folder.path().join("data"));
    let store = data.join("store");
    File::create(&image).unwrap().set_len(256 << 20).unwrap();
    finish(Command::new("mkfs.ext4").arg("-q").arg(&image), "").expect(0);
    fs::create_dir_all(&store).unwrap();
    for path in [&data, &store] {
        fs::set_permissions(path, Permissions::from_mode(0o700)).unwrap();
    }
    fs::write(data.join("keyway.toml"), "").unwrap();
    let disk = mount(&["-o", "loop,nobarrier", image.to_str().unwrap()], &store);
    fs::set_permissions(&store, Permissions::from_mode(0o700)).unwrap();
    assert!(store.join("lost+found").is_dir());
    let server = Server::start(&data, &["--sample", "10"]);
    let all = findings(&doctor(&data));
    let options = all.iter().find(|one| one["about"] == "mount options").unwrap();
    assert_eq!(options["verdict"], "fault", "{options}");
    let mut snapshot = Command::new(keyway());
    let refused = finish(snapshot.args(["snapshot", "create", "--data"]).arg(&data), "").expect(1);
    assert!(refused.err.contains("on a disk of its own"), "{}", refused.err);
    assert!(server.stop().success());
    let server = Server::start(&data, &[]);
    assert!(server.stop().success());
    drop(disk);

    // One that is gone with the machine.
    let disk = mount(&["-t", "tmpfs", "-o", "size=64m,mode=0700", "none"], &store);
    let all = findings(&doctor(&data));
    let fault = all.iter().find(|one| one["found"].as_str().unwrap().contains("tmpfs")).unwrap();
    assert_eq!(fault["verdict"], "fault");
    drop(disk);
}
