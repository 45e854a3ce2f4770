//! Old backups are removed, and nothing that is needed.

use crate::support::{Files, HISTORY, bytes, create, repository, restore, stored, verified};
use keyway_backup::{Error, Keep, Segment};
use std::fs;
use std::ops::ControlFlow;

const DAY: i64 = 86_400;

#[test]
fn days_weeks_and_months_keep_their_newest_backups() {
    let (_scratch, repository) = repository();
    // Noon and evening of each day from Thursday, 1 January 1970, to 11 March.
    for day in 0..70 {
        for hour in [12, 20] {
            create(&repository, day * DAY + hour * 3600, &Files::new(), 0);
        }
    }
    let kept = |keep: Keep| -> Vec<String> {
        let pruned = repository.prune(keep, true).unwrap();
        assert_eq!(pruned.kept.len() + pruned.removed.len(), 140);
        let time = |name: &keyway_backup::BackupName| name.to_string()[13..20].to_owned();
        pruned.kept.iter().map(time).collect()
    };
    let keep = Keep::default();
    assert_eq!(kept(Keep { last: 3, ..keep }), ["0310T20", "0311T12", "0311T20"]);
    assert_eq!(kept(Keep { daily: 3, ..keep }), ["0309T20", "0310T20", "0311T20"]);
    assert_eq!(kept(Keep { weekly: 3, ..keep }), ["0301T20", "0308T20", "0311T20"]);
    assert_eq!(kept(Keep { monthly: 9, ..keep }), ["0131T20", "0228T20", "0311T20"]);
    let all = Keep { last: 2, daily: 2, weekly: 2, monthly: 2 };
    assert_eq!(kept(all), ["0228T20", "0308T20", "0310T20", "0311T12", "0311T20"]);
    let why = repository.prune(keep, false).err().unwrap();
    assert!(matches!(why, Error::Unfit(_)), "{why}");
    assert_eq!(repository.backups().unwrap().len(), 140);
}

#[test]
fn chunks_and_pieces_of_the_feed_go_when_no_backup_needs_them() {
    let (_scratch, repository) = repository();
    let files = |seed| {
        let own = ("own".to_owned(), bytes(seed, 200_000));
        Files::from([("shared".to_owned(), bytes(0, 2_000_000)), own])
    };
    for (number, position) in [(1_u32, 10), (2, 20), (3, 30)] {
        create(&repository, i64::from(number), &files(number.into()), position);
    }
    let segment = |first, last| Segment { history: HISTORY, first, last };
    for (first, last) in [(1, 10), (11, 20), (15, 21), (21, 30), (31, 35)] {
        repository.put_segment(segment(first, last), b"changes").unwrap();
    }
    let foreign = Segment { history: [9; 16], first: 100, last: 200 };
    repository.put_segment(foreign, b"of a history that no backup has").unwrap();
    let before = stored(&repository, "");
    let keep = Keep { last: 2, ..Keep::default() };
    let trial = repository.prune(keep, true).unwrap();
    assert_eq!(stored(&repository, ""), before);
    let pruned = repository.prune(keep, false).unwrap();
    assert_eq!(pruned, trial);
    assert_eq!((pruned.removed.len(), pruned.chunks, pruned.segments), (1, 4, 3));
    assert!(pruned.bytes > 70_000 && pruned.held_back.is_none());
    let gone = before.len() - stored(&repository, "").len();
    assert_eq!(gone, 1 + 4 + 3);
    let left = repository.segments(HISTORY).unwrap();
    assert_eq!(left, [segment(15, 21), segment(21, 30), segment(31, 35)]);
    assert_eq!(verified(&repository), []);
    assert_eq!(restore(&repository, "latest").unwrap(), files(3));
    let again = repository.prune(keep, false).unwrap();
    assert_eq!((again.removed.len(), again.chunks, again.segments), (0, 0, 0));
}

#[test]
fn a_backup_that_cannot_be_read_keeps_all_chunks() {
    let (_scratch, repository) = repository();
    let files = |seed| Files::from([("f".to_owned(), bytes(seed, 20 * 65_536))]);
    let (first, _) = create(&repository, 1, &files(1), 1);
    let (second, _) = create(&repository, 2, &files(2), 2);
    create(&repository, 3, &files(3), 3);
    repository.put_segment(Segment { history: HISTORY, first: 1, last: 1 }, b"old").unwrap();
    let manifest = repository.folder().join("manifests").join(second.to_string());
    let whole = fs::read(&manifest).unwrap();
    fs::write(&manifest, &whole[..40]).unwrap();
    let chunks = stored(&repository, "chunks");
    let keep = Keep { last: 1, ..Keep::default() };
    let pruned = repository.prune(keep, false).unwrap();
    assert_eq!((pruned.removed, pruned.unreadable), (vec![first], vec![second.clone()]));
    assert_eq!((pruned.chunks, pruned.segments), (0, 0));
    let why = pruned.held_back.unwrap();
    assert!(why.contains(&second.to_string()) && why.contains("cannot be read"), "{why}");
    assert_eq!(stored(&repository, "chunks"), chunks);
    // It comes back, with all that it needs.
    fs::write(&manifest, &whole).unwrap();
    assert_eq!(restore(&repository, &second.to_string()).unwrap(), files(2));
    // A list that cannot be read is no better.
    let list = chunks.iter().min_by_key(|path| std::cmp::Reverse(path.metadata().unwrap().len()));
    assert!(list.is_some());
    fs::write(&manifest, b"").unwrap();
    let mut damages = Vec::new();
    repository
        .verify(&mut |_, _| ControlFlow::Continue(()), &mut |damage| damages.push(damage))
        .unwrap();
    assert_eq!(repository.set_aside(&damages).unwrap(), 1);
    let pruned = repository.prune(keep, false).unwrap();
    assert_eq!((pruned.chunks, pruned.segments), (2 * 21, 1));
    assert_eq!(restore(&repository, "latest").unwrap(), files(3));
    assert_eq!(verified(&repository), []);
}

#[test]
fn chunks_of_a_backup_that_was_not_finished_go() {
    let (_scratch, repository) = repository();
    let files = Files::from([("f".to_owned(), bytes(1, 300_000))]);
    create(&repository, 0, &files, 0);
    let mut creating = repository.begin(crate::support::at(1)).unwrap();
    creating.put("g", 0o600, &mut &bytes(2, 300_000)[..], &mut |_| {}).unwrap();
    drop(creating);
    let verified = repository
        .verify(&mut |_, _| ControlFlow::Continue(()), &mut |damage| panic!("{damage:?}"))
        .unwrap();
    assert_eq!((verified.chunks, verified.orphans), (5, 5));
    let pruned = repository.prune(Keep { last: 5, ..Keep::default() }, false).unwrap();
    assert_eq!((pruned.removed.len(), pruned.chunks), (0, 5));
    assert_eq!(restore(&repository, "latest").unwrap(), files);
}
