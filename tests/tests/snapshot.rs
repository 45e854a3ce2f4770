//! Snapshots: made beside a server that goes on writing, listed, deleted, and put back; and what goes wrong with them.

use keyway_tests::cryptod::eventually;
use keyway_tests::{Finished, Server, UNPRIVILEGED, available, finish, keyway, sample};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

const BASE: &str = "dc=example,dc=com";
const TOOLS: [&str; 2] = ["ldapmodify", "ldapsearch"];
const WRITERS: usize = 3;

fn snapshot(data: &Path, words: &[&str]) -> Finished {
    let mut command = Command::new(keyway());
    finish(command.arg("snapshot").args(words).arg("--data").arg(data), "")
}

fn json(finished: &Finished) -> Value {
    let line = finished.out.lines().last().unwrap_or_default();
    serde_json::from_str(line)
        .unwrap_or_else(|why| panic!("{}{}: {why}", finished.out, finished.err))
}

/// The list, each line of it read.
fn list(data: &Path) -> Vec<Value> {
    let listed = snapshot(data, &["list", "--json"]);
    listed.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn names(data: &Path) -> Vec<String> {
    list(data).iter().map(|one| one["snapshot"].as_str().unwrap().to_owned()).collect()
}

fn export(data: &Path) -> String {
    let mut export = Command::new(keyway());
    finish(export.args(["directory", "export", "--data"]).arg(data), "").expect(0).out
}

fn check(data: &Path) {
    let mut check = Command::new(keyway());
    finish(check.args(["directory", "check", "--data"]).arg(data), "").expect(0);
}

fn change(server: &Server, ldif: &str) {
    finish(&mut server.admin_tool("ldapmodify"), ldif).expect(0);
}

fn add(server: &Server, name: &str) {
    change(
        server,
        &format!(
            "dn: cn={name},ou=Groups,{BASE}\nchangetype: add\nobjectClass: organizationalRole\ncn: {name}\n\n"
        ),
    );
}

/// All entries, with all that they have.
fn search(server: &Server) -> String {
    let mut search = server.admin_tool("ldapsearch");
    search.args(["-LLL", "-o", "ldif-wrap=no", "-b", BASE, "(objectClass=*)", "*", "+"]);
    finish(&mut search, "").expect(0).out
}

/// Ends the writers.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Each snapshot has what was acknowledged before it began, nothing that was sent after it had ended, and of each
/// writer nothing without what that had written before.
#[test]
fn a_rollback_leads_to_the_moment_beside_writers_and_back_again() {
    if !available(&TOOLS) {
        return;
    }
    let (place, server) = sample(200);
    let data = place.path().join("data");
    let acknowledged: Vec<AtomicUsize> = (0..WRITERS).map(|_| AtomicUsize::new(0)).collect();
    let sent: Vec<AtomicUsize> = (0..WRITERS).map(|_| AtomicUsize::new(0)).collect();
    let is_done = AtomicBool::new(false);
    let numbers =
        |all: &[AtomicUsize]| all.iter().map(|one| one.load(Ordering::SeqCst)).collect::<Vec<_>>();
    let mut moments = Vec::new();
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (acknowledged, sent) = (&acknowledged[writer], &sent[writer]);
            let (server, is_done) = (&server, &is_done);
            scope.spawn(move || {
                for number in 1.. {
                    if is_done.load(Ordering::SeqCst) {
                        return;
                    }
                    sent.store(number, Ordering::SeqCst);
                    add(server, &format!("w{writer}-{number}"));
                    acknowledged.store(number, Ordering::SeqCst);
                }
            });
        }
        // Also where the rest of this fails.
        let _ends = Ends(&is_done);
        eventually("all writers write", || numbers(&acknowledged).iter().all(|number| *number > 0));
        for at in 0..3 {
            let before = numbers(&acknowledged);
            let name = format!("moment-{at}");
            let made = json(&snapshot(&data, &["create", &name, "--json"]).expect(0));
            assert_eq!(
                (&made["event"], &made["snapshot"]),
                (&"snapshot made".into(), &name.into())
            );
            moments.push((made, before, numbers(&sent)));
        }
    });
    let quiet = search(&server);
    let made = json(&snapshot(&data, &["create", "quiet", "--json"]).expect(0));
    assert_eq!(made["epoch"].as_u64(), Some(1), "{made}");
    // Much is changed.
    let mut search_people = server.admin_tool("ldapsearch");
    search_people.args([
        "-LLL",
        "-o",
        "ldif-wrap=no",
        "-b",
        &format!("ou=People,{BASE}"),
        "-s",
        "one",
        "1.1",
    ]);
    let people = finish(&mut search_people, "").expect(0).out;
    let people: Vec<&str> = people.lines().filter(|line| line.starts_with("dn:")).collect();
    assert!(people.len() >= 150, "{}", people.len());
    let mut ldif = String::new();
    for (number, person) in people.iter().enumerate() {
        ldif += &match number % 3 {
            0 => format!("{person}\nchangetype: delete\n\n"),
            1 => {
                format!("{person}\nchangetype: modify\nreplace: title\ntitle: changed {number}\n\n")
            }
            _ => String::new(),
        };
    }
    change(&server, &ldif);
    add(&server, "later");
    let later = search(&server);
    assert_ne!(quiet, later);

    let refused = snapshot(&data, &["rollback", "quiet"]).expect(1);
    assert!(refused.err.contains("in use by process"), "{}", refused.err);
    assert!(refused.err.contains("stop it first"), "{}", refused.err);
    let refused = snapshot(&data, &["rollback", "quiet", "--discard"]).expect(1);
    assert!(refused.err.contains("in use by process"), "{}", refused.err);
    assert_eq!(search(&server), later);
    assert!(server.stop().success());

    let done = json(&snapshot(&data, &["rollback", "quiet", "--json"]).expect(0));
    let kept = done["kept"].as_str().unwrap().to_owned();
    assert!(kept.starts_with("before-rollback-"), "{done}");
    assert_eq!((&done["entries"], &done["position"]), (&made["entries"], &made["position"]));
    assert_eq!(done["epoch"].as_u64(), Some(2), "{done}");
    assert_ne!(done["incarnation"], made["incarnation"]);
    check(&data);
    let server = Server::start(&data, &[]);
    assert_eq!(search(&server), quiet);
    // It takes changes, and its feed goes on where the snapshot's ended.
    add(&server, "again");
    let again = json(&snapshot(&data, &["create", "again", "--json"]).expect(0));
    assert!(again["position"].as_u64() > made["position"].as_u64(), "{again}");
    assert_eq!(again["incarnation"], done["incarnation"]);
    assert!(server.stop().success());
    let moments_and = ["moment-0", "moment-1", "moment-2", "quiet", &kept, "again"];
    assert_eq!(BTreeSet::from(moments_and.map(str::to_owned)), names(&data).into_iter().collect());

    // The rollback of the rollback.
    snapshot(&data, &["rollback", &kept]).expect(0);
    let server = Server::start(&data, &[]);
    assert_eq!(search(&server), later);
    assert!(server.stop().success());
    check(&data);
    for (made, before, after) in &moments {
        let name = made["snapshot"].as_str().unwrap();
        snapshot(&data, &["rollback", name, "--discard"]).expect(0);
        check(&data);
        let text = export(&data);
        for writer in 0..WRITERS {
            let prefix = format!("\ndn: cn=w{writer}-");
            let found = text.match_indices(&prefix).map(|(at, _)| &text[at + prefix.len()..]);
            let numbers: BTreeSet<usize> =
                found.map(|rest| rest.split_once(',').unwrap().0.parse().unwrap()).collect();
            let last = numbers.len();
            assert!(numbers.iter().copied().eq(1..=last), "writer {writer}: {numbers:?}");
            assert!((before[writer]..=after[writer]).contains(&last), "writer {writer}: {last}");
        }
    }
    let before_rollback = |name: &&String| name.starts_with("before-rollback-");
    assert_eq!(names(&data).iter().filter(before_rollback).count(), 2, "none of --discard");
    let mut history = Command::new(keyway());
    let history = finish(history.args(["directory", "history", "--data"]).arg(&data), "").expect(0);
    assert_eq!(history.out.matches("  rollback  ").count(), 5, "{}", history.out);
}

#[test]
fn what_cannot_be_is_said_and_changes_nothing() {
    let (place, server) = sample(20);
    let data = place.path().join("data");
    assert_eq!(snapshot(&data, &["list"]).expect(0).out, "there is no snapshot yet\n");
    assert!(!data.join("snapshots").exists(), "a look makes nothing");
    for name in ["", ".hidden", "..", "a/b", "a b", "ä", &"n".repeat(65)] {
        let refused = snapshot(&data, &["create", name]).expect(2);
        assert!(refused.err.contains("cannot be a snapshot's name"), "{name:?}: {}", refused.err);
        for words in [["rollback", name], ["delete", name]] {
            assert_eq!(snapshot(&data, &words).code, 2, "{name:?}");
        }
    }
    snapshot(&data, &["create", "-a"]).expect(2);
    for words in [&["rollback", "none"][..], &["delete", "none"]] {
        let refused = snapshot(&data, words).expect(1);
        // A rollback finds the server first.
        let is_said = refused.err.contains("no snapshot none") || refused.err.contains("in use");
        assert!(is_said, "{}", refused.err);
    }
    let nowhere = place.path().join("nowhere");
    fs::create_dir(&nowhere).unwrap();
    for words in [&["list"][..], &["create"], &["delete", "a"], &["rollback", "a"]] {
        let refused = snapshot(&nowhere, words).expect(1);
        assert!(refused.err.contains("--data DIR"), "{words:?}: {}", refused.err);
    }
    assert_eq!(fs::read_dir(&nowhere).unwrap().count(), 0);

    // A name of its own, the time; the order is that of their making; files are their owner's alone.
    let first = json(&snapshot(&data, &["create", "zzz", "--json"]).expect(0));
    let second = json(&snapshot(&data, &["create", "--json"]).expect(0));
    let name = second["snapshot"].as_str().unwrap().to_owned();
    let time: String = second["time"].as_str().unwrap().replace(['-', ':'], "");
    assert_eq!(name, time);
    let listed = list(&data);
    assert_eq!(listed.len(), 2);
    let (mut told, mut shown) = (second.clone(), listed.clone());
    told["event"] = Value::Null;
    shown.iter_mut().for_each(|one| one["event"] = Value::Null);
    assert!(shown.contains(&told), "{shown:?}");
    assert!(first["bytes"].as_u64() > Some(0));
    let times: Vec<&str> = listed.iter().map(|one| one["time"].as_str().unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");
    let snapshots = data.join("snapshots");
    for (path, mode) in
        [("", 0o700), ("zzz", 0o700), ("zzz/data.mdb", 0o600), ("zzz/meta.json", 0o600)]
    {
        let found = fs::metadata(snapshots.join(path)).unwrap().mode() & 0o777;
        assert_eq!(found, mode, "{path}: {found:o}");
    }
    let taken = snapshot(&data, &["create", "zzz"]).expect(1);
    assert!(taken.err.contains("already"), "{}", taken.err);

    // No backup has them, and no export is written there.
    let mut create = Command::new(keyway());
    let [repository, key] = ["repository", "key"].map(|name| place.path().join(name));
    create.args(["backup", "create", "--with", "keys,config"]).arg(&repository);
    finish(create.arg("--key-file").arg(&key).arg("--data").arg(&data), "").expect(0);
    let mut show = Command::new(keyway());
    show.args(["backup", "show", "--json"]).arg(&repository).arg("--key-file").arg(&key);
    let shown = finish(&mut show, "").expect(0).out;
    assert!(shown.contains("store/data.mdb") && !shown.contains("snapshots/"), "{shown}");
    let mut inside = Command::new(keyway());
    inside.args(["directory", "export"]).arg(snapshots.join("x.ldif")).arg("--data").arg(&data);
    assert!(finish(&mut inside, "").expect(1).err.contains("the data folder's own"));
    assert!(server.stop().success());
    let text = export(&data);

    // Damage is named, and nothing is made of it.
    snapshot(&data, &["delete", "zzz", "none"]).expect(1);
    assert_eq!(names(&data).len(), 2, "all or none");
    let file = OpenOptions::new().write(true).open(snapshots.join("zzz/data.mdb")).unwrap();
    file.set_len(8192).unwrap();
    let listed = snapshot(&data, &["list"]).expect(1);
    assert!(listed.out.contains("zzz  DAMAGED: data.mdb has 8192 bytes"), "{}", listed.out);
    assert!(listed.out.contains(&format!("{name}  ")), "{}", listed.out);
    assert!(snapshot(&data, &["rollback", "zzz"]).expect(1).err.contains("is damaged"));
    fs::write(snapshots.join(&name).join("meta.json"), "{}").unwrap();
    let listed = list(&data);
    assert!(listed.iter().all(|one| one["damaged"].is_string()), "{listed:?}");
    snapshot(&data, &["delete", "zzz", &name, "zzz"]).expect(0);
    assert_eq!(fs::read_dir(&snapshots).unwrap().count(), 0);

    // Spoilt pages, which have their length: found before the stores change places.
    snapshot(&data, &["create", "spoilt"]).expect(0);
    let file = OpenOptions::new().write(true).open(snapshots.join("spoilt/data.mdb")).unwrap();
    for page in 2..file.metadata().unwrap().len() / 4096 {
        file.write_all_at(&[0xA5; 64], page * 4096).unwrap();
    }
    let refused = snapshot(&data, &["rollback", "spoilt"]).expect(1);
    assert!(refused.err.contains("cannot make a store of snapshot spoilt"), "{}", refused.err);
    assert_eq!((export(&data), names(&data)), (text, vec!["spoilt".to_owned()]));
    let names: Vec<_> = fs::read_dir(&snapshots).unwrap().collect();
    assert_eq!(names.len(), 1, "{names:?}");
    check(&data);
}

#[test]
fn links_are_not_followed() {
    let (place, server) = sample(5);
    assert!(server.stop().success());
    let data = place.path().join("data");
    let (snapshots, elsewhere) = (data.join("snapshots"), place.path().join("elsewhere"));
    snapshot(&data, &["create", "good"]).expect(0);
    fs::rename(&snapshots, &elsewhere).unwrap();
    symlink(&elsewhere, &snapshots).unwrap();
    for words in [&["list"][..], &["create", "x"], &["delete", "good"], &["rollback", "good"]] {
        let refused = snapshot(&data, words).expect(1);
        assert!(refused.err.contains("it is no folder"), "{words:?}: {}", refused.err);
    }
    fs::remove_file(&snapshots).unwrap();
    fs::create_dir(&snapshots).unwrap();
    fs::set_permissions(&snapshots, Permissions::from_mode(0o755)).unwrap();
    let open = snapshot(&data, &["create", "x"]).expect(1);
    assert!(open.err.contains("others than its owner"), "{}", open.err);
    fs::set_permissions(&snapshots, Permissions::from_mode(0o700)).unwrap();
    symlink(elsewhere.join("good"), snapshots.join("link")).unwrap();
    fs::create_dir(snapshots.join("parts")).unwrap();
    fs::set_permissions(snapshots.join("parts"), Permissions::from_mode(0o700)).unwrap();
    fs::copy(elsewhere.join("good/meta.json"), snapshots.join("parts/meta.json")).unwrap();
    symlink(elsewhere.join("good/data.mdb"), snapshots.join("parts/data.mdb")).unwrap();
    let listed = snapshot(&data, &["list"]).expect(1);
    assert!(listed.out.contains("link  DAMAGED: it is no folder"), "{}", listed.out);
    assert!(listed.out.contains("parts  DAMAGED: it has no file data.mdb"), "{}", listed.out);
    for name in ["link", "parts"] {
        snapshot(&data, &["rollback", name]).expect(1);
        snapshot(&data, &["delete", name]).expect(0);
    }
    assert!(elsewhere.join("good/data.mdb").exists());
    // A store that is elsewhere stays there.
    let good = fs::rename(elsewhere.join("good"), snapshots.join("good"));
    good.unwrap();
    fs::rename(data.join("store"), elsewhere.join("store")).unwrap();
    symlink(elsewhere.join("store"), data.join("store")).unwrap();
    let refused = snapshot(&data, &["rollback", "good"]).expect(1);
    assert!(refused.err.contains("is no folder"), "{}", refused.err);
    export(&data);
}

/// A damaged store, one of an import that was cut off, and one that is gone have no snapshot, and can be given up.
#[test]
fn a_store_that_cannot_be_kept_is_given_up_on_demand_only() {
    let (place, server) = sample(20);
    let data = place.path().join("data");
    snapshot(&data, &["create", "good"]).expect(0);
    assert!(server.stop().success());
    let text = export(&data);
    let store = data.join("store");
    let spoil: [&dyn Fn(); 3] = [
        &|| {
            let file = OpenOptions::new().write(true).open(store.join("data.mdb")).unwrap();
            file.write_all_at(&[0; 8192], 0).unwrap();
        },
        &|| fs::write(store.join("unfinished"), "loading\n").unwrap(),
        &|| fs::remove_dir_all(&store).unwrap(),
    ];
    for (at, spoil) in spoil.iter().enumerate() {
        spoil();
        let refused = snapshot(&data, &["rollback", "good"]).expect(1);
        assert!(refused.err.contains("--discard"), "{at}: {}", refused.err);
        snapshot(&data, &["create"]).expect(1);
        snapshot(&data, &["rollback", "good", "--discard"]).expect(0);
        assert_eq!((export(&data), names(&data)), (text.clone(), vec!["good".to_owned()]), "{at}");
        check(&data);
    }
    assert!(Server::start(&data, &[]).stop().success());
}

/// A setting that was taken back since does not make the configuration look like what is left of an older one.
#[test]
fn the_configuration_stays_as_it_is() {
    let (place, server) = sample(5);
    let data = place.path().join("data");
    assert!(server.stop().success());
    let file = data.join("keyway.toml");
    let text = fs::read_to_string(&file).unwrap();
    let more: String = (0..40).map(|number| format!("# a remark, number {number}\n")).collect();
    fs::write(&file, format!("{text}{more}")).unwrap();
    assert!(Server::start(&data, &[]).stop().success());
    snapshot(&data, &["create", "s"]).expect(0);
    fs::write(&file, &text).unwrap();
    let mut accept = Command::new(keyway());
    finish(accept.args(["config", "accept", "--data"]).arg(&data), "").expect(0);
    assert!(Server::start(&data, &[]).stop().success());
    snapshot(&data, &["rollback", "s"]).expect(0);
    assert!(Server::start(&data, &[]).stop().success());
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
}

fn is_root(what: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    let ci = std::env::var("CI").is_ok_and(|value| value == "true" || value == "1");
    assert!(is_root || !ci, "nothing may be skipped in CI, but {what} takes root");
    if !is_root {
        eprintln!("skipped: {what} takes root");
    }
    is_root
}

/// All that is below a folder.
fn below(folder: &Path) -> Vec<PathBuf> {
    let mut all = vec![folder.to_owned()];
    if fs::symlink_metadata(folder).unwrap().is_dir() {
        for found in fs::read_dir(folder).unwrap() {
            all.extend(below(&found.unwrap().path()));
        }
    }
    all
}

#[test]
fn what_root_makes_belongs_to_the_folders_owner() {
    if !is_root("to give a folder away") {
        return;
    }
    let (place, server) = sample(5);
    assert!(server.stop().success());
    let data = place.path().join("data");
    fs::set_permissions(place.path(), Permissions::from_mode(0o755)).unwrap();
    for path in below(&data) {
        chown(path, Some(UNPRIVILEGED), Some(UNPRIVILEGED)).unwrap();
    }
    snapshot(&data, &["create", "s"]).expect(0);
    snapshot(&data, &["rollback", "s"]).expect(0);
    for path in below(&data) {
        assert_eq!(fs::symlink_metadata(&path).unwrap().uid(), UNPRIVILEGED, "{}", path.display());
    }
    // A folder of snapshots that is another user's is not used.
    chown(data.join("snapshots"), Some(0), None).unwrap();
    let refused = snapshot(&data, &["create"]).expect(1);
    assert!(refused.err.contains("another user's"), "{}", refused.err);
}

/// A file system, mounted.
struct Mounted(PathBuf);

impl Mounted {
    fn new(at: PathBuf, words: &[&str]) -> Mounted {
        fs::create_dir_all(&at).unwrap();
        let done = Command::new("mount").args(words).arg(&at).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        fs::set_permissions(&at, Permissions::from_mode(0o700)).unwrap();
        Mounted(at)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_is_said_and_leaves_nothing_half() {
    if !available(&["mount"]) || !is_root("to mount a file system") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let disk = Mounted::new(place.path().join("disk"), &["-t", "tmpfs", "-o", "size=64m", "tmpfs"]);
    let data = disk.0.join("data");
    let server = Server::start(&data, &["--sample", "500"]);
    snapshot(&data, &["create", "s"]).expect(0);
    assert!(server.stop().success());
    let text = export(&data);
    let mut fill = File::create(disk.0.join("fill")).unwrap();
    while fill.write_all(&[7; 4096]).is_ok() {}
    // Room for something, and not for a store.
    fill.set_len(fill.metadata().unwrap().len() - (128 << 10)).unwrap();
    for words in [&["create", "t"][..], &["rollback", "s"]] {
        let refused = snapshot(&data, words).expect(1);
        assert!(refused.err.contains("the disk is full; make room"), "{words:?}: {}", refused.err);
        assert_eq!(names(&data), ["s"]);
        assert_eq!(fs::read_dir(data.join("snapshots")).unwrap().count(), 1);
        assert_eq!(export(&data), text);
    }
    fs::remove_file(disk.0.join("fill")).unwrap();
    drop(fill);
    snapshot(&data, &["create", "t"]).expect(0);
    snapshot(&data, &["rollback", "s"]).expect(0);
    assert_eq!(export(&data), text);
}

/// XFS shares blocks: a snapshot beside a server, and a rollback, take little room.
#[test]
fn blocks_are_shared_where_the_file_system_can() {
    if !available(&["mkfs.xfs", "mount", "ldapmodify"]) || !is_root("to mount a file system") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let image = place.path().join("image");
    File::create(&image).unwrap().set_len(400 << 20).unwrap();
    let made = Command::new("mkfs.xfs").arg("-q").arg(&image).status().unwrap();
    assert!(made.success());
    let words = ["-o", "loop", image.to_str().unwrap()];
    let disk = Mounted::new(place.path().join("disk"), &words);
    let data = disk.0.join("data");
    let server = Server::start(&data, &["--sample", "5000"]);
    let free = || {
        rustix::fs::syncfs(File::open(&disk.0).unwrap()).unwrap();
        let stat = rustix::fs::statvfs(&disk.0).unwrap();
        stat.f_bfree * stat.f_frsize
    };
    let before = free();
    let made = json(&snapshot(&data, &["create", "s", "--json"]).expect(0));
    let (taken, bytes) = (before.saturating_sub(free()), made["bytes"].as_u64().unwrap());
    assert!(bytes > 4 << 20 && taken < bytes / 2, "{taken} of {bytes}");
    let quiet = export(&data);
    add(&server, "later");
    assert!(server.stop().success());
    snapshot(&data, &["rollback", "s"]).expect(0);
    assert_eq!(export(&data), quiet);
    check(&data);
}

/// Damage that only a look at every entry finds: the store stays as it is.
#[test]
fn a_snapshot_that_is_damaged_within_is_not_put_in_place() {
    let (place, server) = sample(50);
    let data = place.path().join("data");
    assert!(server.stop().success());
    snapshot(&data, &["create", "spoilt"]).expect(0);
    let before = export(&data);
    let path = data.join("snapshots/spoilt/data.mdb");
    let mut bytes = fs::read(&path).unwrap();
    let mail = b"@example.com";
    let found: Vec<usize> =
        (0..bytes.len() - mail.len()).filter(|at| bytes[*at..].starts_with(mail)).collect();
    assert!(!found.is_empty());
    found.iter().for_each(|at| bytes[*at + 1] ^= 1);
    fs::write(&path, bytes).unwrap();
    for flags in [&["rollback", "spoilt"][..], &["rollback", "spoilt", "--discard"]] {
        let refused = snapshot(&data, flags).expect(1);
        assert!(refused.err.contains("is damaged"), "{}", refused.err);
        assert_eq!(export(&data), before);
        check(&data);
    }
    assert_eq!(names(&data), ["spoilt"]);
}
