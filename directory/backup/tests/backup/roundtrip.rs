//! Files come out as they went in, and are stored once.

use crate::support::{
    Files, HISTORY, PIECE, at, bytes, create, engine, key, reopen, repository, restore, stored,
    verified,
};
use keyway_backup::{Error, Gap, Repository, Segment};
use serde_json::Value;
use std::fs;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::os::unix::fs::PermissionsExt;

#[test]
fn files_of_every_length_come_out_as_they_went_in() {
    let (_scratch, repository) = repository();
    let lengths =
        [0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 16 * PIECE, 16 * PIECE + 1, 150 * PIECE + 7];
    let files: Files = lengths
        .iter()
        .enumerate()
        .map(|(seed, length)| (format!("of/{length}"), bytes(seed as u64, *length)))
        .collect();
    let (name, put) = create(&repository, 1_800_000_000, &files, 7);
    assert_eq!(name.to_string(), "00000001-20270115T080000Z");
    let repository = reopen(&repository);
    assert_eq!(restore(&repository, "latest").unwrap(), files);
    assert_eq!(restore(&repository, &name.to_string()).unwrap(), files);
    assert_eq!(verified(&repository), []);
    let backup = repository.backup("latest").unwrap();
    let manifest = backup.manifest();
    assert_eq!(manifest.created_unix_s, 1_800_000_000);
    assert_eq!((manifest.bytes, manifest.pieces), (put.bytes, put.chunks));
    assert_eq!(manifest.feed.unwrap().position, 7);
    assert_eq!(manifest.meta["files"], 9);
    assert!(matches!(backup.read("no"), Err(Error::NoFile { .. })));
}

#[test]
fn any_json_may_be_metadata() {
    let (_scratch, repository) = repository();
    let deep = (0..100).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
    let text =
        r#"{"a": [1.1e-300, 123456789.12345679, -0.0, 18446744073709551615], "ä\u0000": null}"#;
    for meta in [deep, serde_json::from_str(text).unwrap(), Value::Null, "x".into()] {
        repository.begin(at(0)).unwrap().finish(meta, None).unwrap();
    }
    let long = Value::String("x".repeat(2 << 20));
    let why = repository.begin(at(0)).unwrap().finish(long, None).unwrap_err();
    assert!(matches!(why, Error::Limit { .. }), "{why}");
    let too_deep = (0..1000).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
    let why = repository.begin(at(0)).unwrap().finish(too_deep, None).unwrap_err();
    assert!(matches!(why, Error::Unfit(_)), "{why}");
    let listed = repository.backups().unwrap();
    assert_eq!(listed.len(), 4);
    assert_eq!(listed[1].manifest.as_ref().unwrap().meta["a"][3], u64::MAX);
}

#[test]
fn a_file_that_needs_full_lists_is_read_back() {
    let (_scratch, repository) = repository();
    let pieces = 2 * 2048 + 3;
    let length = (pieces * PIECE) as u64;
    let mut creating = repository.begin(at(0)).unwrap();
    let (mut zeros, mut done) = (io::repeat(0).take(length), Vec::new());
    let put = creating.put("zeros", 0o600, &mut zeros, &mut |bytes| done.push(bytes)).unwrap();
    // One piece, a full list and a list of three.
    assert_eq!((put.chunks, put.new_chunks), (pieces as u64, 3));
    assert!(done.is_sorted() && done.last() == Some(&length));
    creating.finish(Value::Null, None).unwrap();
    let backup = repository.backup("latest").unwrap();
    let (mut contents, mut piece, mut read) = (backup.read("zeros").unwrap(), vec![1; 1 << 20], 0);
    loop {
        match contents.read(&mut piece).unwrap() {
            0 => break,
            bytes => {
                assert!(piece[..bytes].iter().all(|byte| *byte == 0));
                read += bytes as u64;
            }
        }
    }
    assert_eq!(read, length);
}

#[test]
fn what_is_stored_is_not_stored_again() {
    let (_scratch, repository) = repository();
    let mut content = bytes(1, 400 * PIECE);
    let files = |content: &[u8]| Files::from([("store".to_owned(), content.to_vec())]);
    let (_, first) = create(&repository, 0, &files(&content), 0);
    assert_eq!(first.new_chunks, 400 + 1);
    assert!(first.new_bytes > first.bytes / 3 && first.new_bytes < first.bytes, "{first:?}");
    let (_, again) = create(&repository, 60, &files(&content), 0);
    assert_eq!((again.new_chunks, again.new_bytes), (0, 0));
    // One piece in a hundred.
    for piece in [17, 101, 250, 399] {
        content[piece * PIECE + 5] ^= 1;
    }
    let (_, changed) = create(&repository, 120, &files(&content), 0);
    assert_eq!(changed.new_chunks, 4 + 1);
    assert!(changed.new_bytes * 10 < first.new_bytes, "{changed:?}");
    assert_eq!(restore(&repository, "latest").unwrap(), files(&content));
}

#[test]
fn nothing_in_the_folder_is_readable_by_others_or_has_the_content_in_it() {
    let (_scratch, repository) = repository();
    let secret = b"dn: cn=admin,dc=example,dc=com".repeat(100);
    create(&repository, 0, &Files::from([("store/data".to_owned(), secret)]), 0);
    let files = stored(&repository, "");
    assert!(files.len() > 6, "{files:?}");
    for path in files {
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{path:?}");
        let content = fs::read(&path).unwrap();
        for word in [&b"example"[..], b"store/data"] {
            assert!(!content.windows(word.len()).any(|it| it == word), "{path:?}");
        }
    }
}

#[test]
fn the_latest_backup_is_the_one_that_was_made_last_whatever_its_time() {
    let (_scratch, repository) = repository();
    let files = |word: &str| Files::from([("f".to_owned(), word.as_bytes().to_vec())]);
    create(&repository, 2_000_000_000, &files("of a clock that is fast"), 0);
    create(&repository, 1_800_000_000, &files("newer"), 0);
    create(&repository, 1_800_000_000, &files("newest, in the second of the one before"), 0);
    let latest = files("newest, in the second of the one before");
    assert_eq!(restore(&repository, "latest").unwrap(), latest);
    let names: Vec<_> =
        repository.backups().unwrap().into_iter().map(|it| it.name.number).collect();
    assert_eq!(names, [1, 2, 3]);
}

#[test]
fn a_name_that_no_backup_has_is_an_error() {
    let (_scratch, repository) = repository();
    let why = repository.backup("latest").err().unwrap().to_string();
    assert!(why.contains("has no backup yet"), "{why}");
    create(&repository, 0, &Files::new(), 0);
    for name in ["", "1", "00000002-19700101T000000Z", "../keyway-backup", "Latest"] {
        let why = repository.backup(name).err().unwrap();
        assert!(matches!(why, Error::NoBackup { .. }), "{name}: {why}");
    }
}

#[test]
fn paths_that_could_not_be_restored_are_refused() {
    let (_scratch, repository) = repository();
    for paths in [
        &["/etc/passwd"][..],
        &["../up"],
        &["a/../../b"],
        &["a//b"],
        &["a/"],
        &[""],
        &["."],
        &["a\nb"],
        &["a\0b"],
        &["same", "same"],
        &["file", "file/below"],
        &["folder/file", "folder-not", "folder"],
    ] {
        let mut creating = repository.begin(at(0)).unwrap();
        let (last, before) = paths.split_last().unwrap();
        for path in before {
            creating.put(path, 0o600, &mut &b"x"[..], &mut |_| {}).unwrap();
        }
        let why = creating.put(last, 0o600, &mut &b"x"[..], &mut |_| {}).unwrap_err();
        assert!(matches!(why, Error::Unfit(_)), "{paths:?}: {why}");
        assert!(creating.finish(Value::Null, None).is_err(), "it has failed");
    }
    assert!(repository.backups().unwrap().is_empty());
}

#[test]
fn a_source_that_fails_leaves_no_backup() {
    struct Failing(usize);
    impl Read for Failing {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let left = self.0.checked_sub(1).ok_or_else(|| io::Error::other("the disk is old"))?;
            self.0 = left;
            let bytes = out.len().min(1000);
            out[..bytes].fill(left as u8);
            Ok(bytes)
        }
    }
    let (_scratch, repository) = repository();
    let files = Files::from([("f".to_owned(), bytes(3, 5 * PIECE))]);
    create(&repository, 0, &files, 0);
    for reads in [0, 1, 100, 10_000] {
        let mut creating = repository.begin(at(10)).unwrap();
        let why = creating.put("g", 0o600, &mut Failing(reads), &mut |_| {}).unwrap_err();
        assert_eq!(why.to_string(), "cannot read g to store it: the disk is old");
        assert!(creating.put("h", 0o600, &mut &b""[..], &mut |_| {}).is_err());
    }
    assert_eq!(repository.backups().unwrap().len(), 1);
    assert_eq!(restore(&repository, "latest").unwrap(), files);
    assert_eq!(verified(&repository), []);
}

#[test]
fn pieces_of_the_feed_come_out_as_they_went_in_and_gaps_are_told() {
    let (_scratch, repository) = repository();
    let other = [1; 16];
    let segment = |history, first, last| Segment { history, first, last };
    let put = |segment: Segment, seed| repository.put_segment(segment, &bytes(seed, 100_000));
    for (seed, (history, first, last)) in
        [(HISTORY, 1, 9), (HISTORY, 10, 10), (HISTORY, 14, 30), (HISTORY, 20, 25), (other, 5, 6)]
            .into_iter()
            .enumerate()
    {
        put(segment(history, first, last), seed as u64).unwrap();
    }
    put(segment(HISTORY, 31, u64::MAX), 9).unwrap();
    // In the place of the first.
    put(segment(HISTORY, 1, 9), 5).unwrap();
    assert!(matches!(put(segment(HISTORY, 9, 8), 1), Err(Error::Unfit(_))));
    let repository = reopen(&repository);
    let segments = repository.segments(HISTORY).unwrap();
    let positions: Vec<_> = segments.iter().map(|it| (it.first, it.last)).collect();
    assert_eq!(positions, [(1, 9), (10, 10), (14, 30), (20, 25), (31, u64::MAX)]);
    assert_eq!(repository.segments(other).unwrap(), [segment(other, 5, 6)]);
    assert_eq!(repository.segments([2; 16]).unwrap(), []);
    assert_eq!(*repository.read_segment(&segments[0]).unwrap(), bytes(5, 100_000));
    assert_eq!(*repository.read_segment(&segments[2]).unwrap(), bytes(2, 100_000));
    let verified = repository
        .verify(&mut |_, _| ControlFlow::Continue(()), &mut |damage| panic!("{damage:?}"))
        .unwrap();
    assert_eq!(verified.segments, 6);
    assert_eq!(verified.gaps, [Gap { history: HISTORY, first: 11, last: 13 }]);
}

#[test]
fn a_repository_is_made_in_an_empty_folder_only() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("r");
    let why = Repository::open(&folder, engine(), &key(1)).err().unwrap();
    assert!(matches!(why, Error::NoRepository(_)), "{why}");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("notes"), "mine").unwrap();
    let why = Repository::create(&folder, engine(), &key(1)).err().unwrap();
    assert!(why.to_string().contains("\"notes\""), "{why}");
    fs::remove_file(folder.join("notes")).unwrap();
    // A create that was killed before the header was there.
    for name in ["lost+found", "chunks", "chunks/00", "drafts"] {
        fs::create_dir(folder.join(name)).unwrap();
    }
    fs::write(folder.join("lock"), "").unwrap();
    fs::write(folder.join("drafts/keyway-backup"), "half").unwrap();
    let repository = Repository::create(&folder, engine(), &key(1)).unwrap();
    create(&repository, 0, &Files::from([("f".to_owned(), bytes(1, 10))]), 0);
    let why = Repository::create(&folder, engine(), &key(1)).err().unwrap();
    assert!(matches!(why, Error::Exists(_)), "{why}");
    for header in ["keyway-backup", "keyway-backup.copy"] {
        fs::remove_file(folder.join(header)).unwrap();
    }
    let whys = [
        Repository::create(&folder, engine(), &key(1)).err().unwrap(),
        Repository::open(&folder, engine(), &key(1)).err().unwrap(),
    ];
    for why in whys {
        assert!(matches!(why, Error::NoHeader(_)), "{why}");
    }
}
