//! Backups beside clients that write all the time, on file systems of three kinds.

use crate::site::Site;
use crate::state::{check, export};
use crate::writers::{Replay, beside_writers, plant};
use keyway_tests::dice::seed;
use keyway_tests::disk::Disk;
use keyway_tests::{Server, nightly};
use std::fs;

/// Changes of each client from one backup to the next.
const CHANGES_BETWEEN: usize = 5;

/// Each restored backup is the state of one moment, not before the command began and not after it had ended.
fn are_of_one_moment(kind: &str, mib: u64) {
    let Some(disk) = Disk::new(kind, mib) else { return };
    let (backups, clients) = if nightly() { (10, 16) } else { (1, 4) };
    let seed = seed(kind);
    let site = Site::in_folder(&disk.at);
    let server = Server::start(&site.data, &["--sample", "100"]);
    plant(&server, clients);
    let before = export(&site.data);
    let (journals, made) = beside_writers(&server, clients, seed, |count| {
        let mut made = Vec::new();
        for _ in 0..backups {
            count.advance(CHANGES_BETWEEN);
            let began = count.tick();
            let name = site.create()["backup"].as_str().unwrap().to_owned();
            made.push((name, began, count.tick()));
        }
        count.advance(CHANGES_BETWEEN);
        made
    });
    let last = export(&site.data);
    assert!(server.stop().success());
    site.verify(&[]).expect(0);
    let mut replay = Replay::new(&journals);
    let all: Vec<usize> = journals.iter().map(|journal| journal.changes.len()).collect();
    let mut beside = 0;
    for (name, began, ended) in &made {
        let to = disk.at.join("restored");
        site.try_restore(&to, &["--backup", name]).expect(0);
        check(&to);
        let state = export(&to);
        let cut = replay.assert_one_moment(&state, *began, *ended);
        assert!(replay.others(&state) == replay.others(&before), "others than clients' entries");
        let is_beside = |sent: u64, acknowledged: u64| sent < *ended && acknowledged > *began;
        let changes = journals.iter().flat_map(|journal| &journal.changes);
        beside += changes.filter(|it| is_beside(it.sent, it.acknowledged)).count();
        assert!(cut.iter().all(|changes| *changes > 0), "{cut:?}");
        fs::remove_dir_all(&to).unwrap();
    }
    replay.assert_at(&last, &all);
    let changes: usize = all.iter().sum();
    eprintln!(
        "{kind}: {backups} backups, {clients} clients, {changes} changes, {beside} beside backups"
    );
}

#[test]
fn backups_on_ext4_are_of_one_moment() {
    are_of_one_moment("ext4", 512);
}

#[test]
fn backups_on_xfs_are_of_one_moment() {
    are_of_one_moment("xfs", 512);
}

#[test]
fn backups_on_btrfs_are_of_one_moment() {
    if nightly() {
        are_of_one_moment("btrfs", 512);
    }
}
