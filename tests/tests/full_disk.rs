//! A directory on a disk that is full, on file systems of our own: nothing dies of it, what is there can be
//! read, also after a start, and with room again changes are made.

use keyway_tests::disk::Disk;
use keyway_tests::{Server, available, finish, nightly};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long anything may take that takes a second on an idle machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// LDAP's `success` and `unavailable`.
const DONE: i32 = 0;
const UNAVAILABLE: i32 = 52;

/// Adds an entry; how that ended.
fn add(server: &Server, name: &str) -> i32 {
    let filler = "x".repeat(2_000);
    let ldif = format!(
        "dn: uid={name},ou=People,dc=example,dc=com\nobjectClass: inetOrgPerson\ncn: x\nsn: x\n\
         description: {filler}\nuid: {name}\n"
    );
    finish(&mut server.admin_tool("ldapadd"), &ldif).code
}

fn is_there(server: &Server, name: &str) -> bool {
    let mut search = server.admin_tool("ldapsearch");
    search.args(["-LLL", "-b", "dc=example,dc=com", &format!("(uid={name})"), "1.1"]);
    finish(&mut search, "").out.contains(name)
}

#[track_caller]
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn log(data: &Path) -> String {
    fs::read_to_string(data.join("log/error.log")).unwrap_or_default()
}

fn survives(kind: &str, mib: u64) {
    if !available(&["ldapadd", "ldapsearch"]) {
        return;
    }
    let Some(disk) = Disk::new(kind, mib) else { return };
    let data = disk.at.join("data");
    let start = || Server::start(&data, &["--sample", "5"]);
    let mut server = start();
    assert_eq!(add(&server, "before"), DONE);
    let mut acknowledged = vec!["before".to_owned()];
    let mut number = 0;
    eventually("no change is refused", || {
        disk.fill(number);
        number += 1;
        let name = format!("n{number}");
        match add(&server, &name) {
            DONE => acknowledged.push(name),
            code => return code == UNAVAILABLE,
        }
        false
    });
    // Where every change takes room there may be none for the log either.
    if kind != "btrfs" {
        let line = " error store text=\"changes are refused: the disk is full";
        eventually("nothing is said of it", || log(&data).contains(line));
    }
    for round in 0..5 {
        disk.fill(1_000 + round);
        // It may be opening its store again, and then has it open.
        eventually("it cannot be read", || acknowledged.iter().all(|name| is_there(&server, name)));
        let name = format!("m{round}");
        if add(&server, &name) == DONE {
            acknowledged.push(name);
        }
    }
    assert!(server.is_up());
    assert!(!log(&data).contains("was killed"), "{}", log(&data));
    assert!(server.stop().success());
    disk.fill(2_000);
    let mut server = start();
    assert!(acknowledged.iter().all(|name| is_there(&server, name)));
    disk.make_room();
    eventually("no change is made", || add(&server, "after") == DONE || is_there(&server, "after"));
    assert!(server.is_up());
    assert!(server.stop().success());
}

/// Where the disk is full, another inode takes room too: for a socket, above all.
#[test]
fn a_full_xfs_is_survived() {
    survives("xfs", 300);
}

#[test]
fn a_full_ext4_is_survived() {
    if nightly() {
        survives("ext4", 64);
    }
}

/// Where every change takes room.
#[test]
fn a_full_btrfs_is_survived() {
    if nightly() {
        survives("btrfs", 120);
    }
}
