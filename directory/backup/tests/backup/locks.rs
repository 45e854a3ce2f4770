//! Who writes, and who reads.

use crate::support::{Files, at, bytes, create, reopen, repository, restore};
use keyway_backup::{Error, Keep};
use serde_json::Value;

const LAST: Keep = Keep { last: 1, daily: 0, weekly: 0, monthly: 0 };

#[test]
fn a_second_writer_is_told_who_the_first_is() {
    let (_scratch, repository) = repository();
    let creating = repository.begin(at(0)).unwrap();
    let second = reopen(&repository);
    let whys = [
        second.begin(at(0)).err().unwrap(),
        second.prune(LAST, false).err().unwrap(),
        second.prune(LAST, true).err().unwrap(),
        second.set_aside(&[]).err().unwrap(),
    ];
    for why in whys {
        assert!(matches!(why, Error::InUse { .. }), "{why}");
        let process = format!("process {} on ", std::process::id());
        assert!(why.to_string().starts_with(&process), "{why}");
    }
    drop(creating);
    second.begin(at(0)).unwrap();
}

#[test]
fn nothing_is_removed_below_a_reader_and_backups_go_on() {
    let (_scratch, repository) = repository();
    let files = |seed| Files::from([("f".to_owned(), bytes(seed, 300_000))]);
    let (first, _) = create(&repository, 0, &files(1), 0);
    create(&repository, 1, &files(2), 0);
    let backup = repository.backup(&first.to_string()).unwrap();
    let other = reopen(&repository);
    let why = other.prune(LAST, false).err().unwrap();
    assert!(matches!(why, Error::BeingRead(_)), "{why}");
    create(&other, 2, &files(3), 0);
    assert_eq!(restore(&other, &first.to_string()).unwrap(), files(1));
    drop(backup);
    assert_eq!(other.prune(LAST, false).unwrap().removed.len(), 2);
    assert_eq!(restore(&other, "latest").unwrap(), files(3));
}

#[test]
fn a_piece_of_the_feed_is_stored_beside_a_create() {
    let (_scratch, repository) = repository();
    let creating = repository.begin(at(0)).unwrap();
    let segment = keyway_backup::Segment { history: [1; 16], first: 1, last: 2 };
    reopen(&repository).put_segment(segment, b"changes").unwrap();
    creating.finish(Value::Null, None).unwrap();
    assert_eq!(&**repository.read_segment(&segment).unwrap(), b"changes");
}
