//! The feed: what a commit leaves in it, what is kept, and what is noticed.

use std::path::Path;

use keyway_store::{
    Change, EditKind, Entry, EntryId, Error, FeedHead, FeedRow, Options, Store, Write,
};

const IDENTITY: &str = "entryUUID";

fn options() -> Options {
    Options { sync: false, map_bytes_max: 64 << 20, identity: Some(IDENTITY), ..Options::default() }
}

fn open(dir: &Path) -> Store {
    Store::open(dir, options()).unwrap()
}

fn person(name: &str, mail: &[&str]) -> Entry {
    let mail = mail.iter().map(|value| value.as_bytes().to_vec()).collect();
    let attributes =
        vec![(IDENTITY.into(), vec![format!("id of {name}").into_bytes()]), ("mail".into(), mail)];
    Entry { rdn: format!("uid={name}"), attributes, ..Entry::default() }
}

fn add(write: &mut Write<'_>, parent: EntryId, name: &str) -> Result<EntryId, Error> {
    write.insert(parent, name.as_bytes(), &person(name, &["a", "b"]), &[])
}

fn head(store: &Store) -> FeedHead {
    store.read().unwrap().view().feed_head().unwrap().unwrap()
}

fn rows(store: &Store, after: u64) -> Result<Vec<FeedRow>, Error> {
    let read = store.read()?;
    let rows = read.view().feed_after(after)?;
    rows.collect()
}

#[test]
fn a_commit_is_a_position_and_says_what_has_changed() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let none = head(&store);
    assert_eq!((none.position, none.first, none.changes), (0, 1, 0));
    let (top, ann) = store
        .write_now(|write| {
            write.note(b"by me");
            let top = add(write, EntryId::ROOT, "top")?;
            Ok::<_, Error>((top, add(write, top, "ann")?))
        })
        .unwrap();
    store
        .write_now(move |write| {
            let mut entry = person("Ann", &["b", "c"]);
            entry.attributes.push(("sn".into(), vec![b"Other".to_vec()]));
            write.rename(ann, top, b"ann", b"Ann")?;
            write.update(ann, &entry, &[], &[])
        })
        .unwrap();
    store.write_now(move |write| write.delete(ann, b"Ann", &[])).unwrap();
    let found = rows(&store, 0).unwrap();
    let positions: Vec<_> = found.iter().map(|row| (row.position, row.first_change)).collect();
    assert_eq!(positions, [(1, 1), (2, 3), (3, 5)]);
    assert_eq!(found[1].before, found[0].digest);
    assert_eq!(found[0].jobs[0].note, b"by me");
    assert!(found[1].jobs[0].note.is_empty(), "a note is one job's");
    let [Change::Inserted(_), Change::Inserted(inserted)] = &found[0].jobs[0].changes[..] else {
        panic!("{found:?}")
    };
    assert_eq!((inserted.id, inserted.parent, inserted.above.as_str()), (ann, top, "uid=top"));
    assert_eq!(
        (&inserted.entry, inserted.component.as_slice()),
        (&person("ann", &["a", "b"]), &b"ann"[..])
    );
    let [Change::Moved(moved), Change::Updated(updated)] = &found[1].jobs[0].changes[..] else {
        panic!("{found:?}")
    };
    assert_eq!(moved.component, [b"ann".to_vec(), b"Ann".to_vec()]);
    assert_eq!(moved.identity, b"id of ann");
    assert_eq!(updated.rdn, ["uid=ann", "uid=Ann"]);
    let edits: Vec<_> =
        updated.attributes.iter().map(|edit| (edit.kind, edit.name.as_str())).collect();
    let wanted =
        [(EditKind::Changed, IDENTITY), (EditKind::Changed, "mail"), (EditKind::New, "sn")];
    assert_eq!(edits, wanted);
    assert_eq!(updated.attributes[1].removed, [b"a".to_vec()]);
    assert_eq!(updated.attributes[1].added, [b"c".to_vec()]);
    let [Change::Deleted(deleted)] = &found[2].jobs[0].changes[..] else { panic!("{found:?}") };
    assert_eq!(deleted.entry.rdn, "uid=Ann");
    let last = head(&store);
    assert_eq!((last.position, last.changes, last.digest), (3, 5, found[2].digest));
    let at = |change| store.read().unwrap().view().feed_position(change).unwrap();
    let all: Vec<_> = (0..=6).map(at).collect();
    assert_eq!(all, [None, Some(1), Some(1), Some(2), Some(2), Some(3), None]);
}

#[test]
fn what_is_refused_undone_or_of_this_store_alone_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store.write_now(|write| add(write, EntryId::ROOT, "a")).unwrap();
    assert!(store.write_now(|write| add(write, EntryId::ROOT, "a")).is_err());
    let undone = store.write_now(|write| {
        add(write, EntryId::ROOT, "b")?;
        Err::<(), _>(Error::NotFound)
    });
    assert!(undone.is_err());
    store.write_now(|write| write.local_put("mine", b"1")).unwrap();
    store.write_now(|write| write.local_delete("mine")).unwrap();
    assert_eq!(head(&store).position, 1);
    store.write_now(|write| write.meta_put("ours", b"1")).unwrap();
    store.write_now(|write| write.meta_put("ours", b"1")).unwrap();
    store.write_now(|write| write.meta_delete("ours")).unwrap();
    let found = rows(&store, 1).unwrap();
    let values = found.iter().flat_map(|row| &row.jobs[0].changes).map(|change| match change {
        Change::Meta(meta) => meta.value.clone(),
        other => panic!("{other:?}"),
    });
    let one = Some(b"1".to_vec());
    assert_eq!(values.collect::<Vec<_>>(), [[None, one.clone()], [one, None]]);
}

#[test]
fn jobs_of_one_commit_have_their_own_notes_and_no_row_has_a_job_that_was_run_again() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let (hold, held) = std::sync::mpsc::channel::<()>();
    let wait = move |_: &mut Write<'_>| -> Result<(), Error> {
        let _ = held.recv();
        Ok(())
    };
    store.submit(wait, drop).unwrap();
    let (answer, answers) = std::sync::mpsc::channel();
    for n in 0..6 {
        let answer = answer.clone();
        let name = n.to_string();
        let job = move |write: &mut Write<'_>| {
            write.note(name.as_bytes());
            add(write, EntryId::ROOT, &name)?;
            match n == 3 {
                true => Err(Error::NotFound),
                false => Ok(()),
            }
        };
        store.submit(job, move |result| answer.send(result.is_ok()).unwrap()).unwrap();
    }
    drop((hold, answer));
    assert_eq!(answers.iter().filter(|good| *good).count(), 5);
    let found = rows(&store, 0).unwrap();
    let jobs: Vec<_> = found.iter().flat_map(|row| &row.jobs).collect();
    let notes: Vec<_> = jobs.iter().map(|job| (job.note.as_slice(), job.changes.len())).collect();
    assert_eq!(notes, [b"0", b"1", b"2", b"4", b"5"].map(|note| (note.as_slice(), 1)));
    assert!(found.len() < 5, "a commit holds several: {}", found.len());
    store.read().unwrap().view().check().unwrap();
}

#[test]
fn rows_are_trimmed_from_the_front_in_pieces() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    for n in 0..10 {
        store.write_now(move |write| add(write, EntryId::ROOT, &n.to_string())).unwrap();
    }
    let all = rows(&store, 0).unwrap();
    assert!(store.write_now(|write| write.trim_feed(7, 3)).unwrap());
    assert!(store.write_now(|write| write.trim_feed(7, 3)).unwrap());
    assert!(!store.write_now(|write| write.trim_feed(7, 3)).unwrap());
    assert!(!store.write_now(|write| write.trim_feed(7, 3)).unwrap());
    assert_eq!(head(&store).first, 8);
    assert_eq!(rows(&store, 7).unwrap(), all[7..]);
    assert_eq!(head(&store).bytes, all[7..].iter().map(|row| row.bytes).sum::<u64>());
    assert!(matches!(rows(&store, 6), Err(Error::FeedTrimmed { position: 6, first: 8 })));
    assert!(matches!(rows(&store, 11), Err(Error::FeedAhead { position: 11, last: 10 })));
    assert!(matches!(rows(&store, u64::MAX), Err(Error::FeedAhead { .. })));
    let at = |change| store.read().unwrap().view().feed_position(change).unwrap();
    assert_eq!((at(7), at(8), at(10)), (None, Some(8), Some(10)));
    store.read().unwrap().view().check().unwrap();
    store.write_now(|write| write.trim_feed(u64::MAX, u64::MAX)).unwrap();
    assert!(head(&store).is_empty() && rows(&store, 10).unwrap().is_empty());
    assert_eq!(head(&store).bytes, 0);
    store.write_now(|write| add(write, EntryId::ROOT, "one more")).unwrap();
    assert_eq!(rows(&store, 10).unwrap()[0].before, all[9].digest);
    store.read().unwrap().view().check().unwrap();
}

#[test]
fn changes_without_the_feed_take_it_along() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store.write_now(|write| add(write, EntryId::ROOT, "a")).unwrap();
    store.close().unwrap();
    let without = Options { feed: false, ..options() };
    let store = Store::open(dir.path(), without.clone()).unwrap();
    store.write_now(|write| write.local_put("mine", b"1")).unwrap();
    assert_eq!(rows(&store, 0).unwrap().len(), 1, "nothing was changed that it would have");
    store.write_now(|write| add(write, EntryId::ROOT, "b")).unwrap();
    store.write_now(|write| add(write, EntryId::ROOT, "c")).unwrap();
    store.close().unwrap();
    let store = open(dir.path());
    assert_eq!((head(&store).position, head(&store).first), (3, 4));
    store.write_now(|write| add(write, EntryId::ROOT, "d")).unwrap();
    assert!(matches!(rows(&store, 1), Err(Error::FeedTrimmed { first: 4, .. })));
    assert_eq!(rows(&store, 3).unwrap().len(), 1);
    store.read().unwrap().view().check().unwrap();
}

#[test]
fn a_commit_that_is_left_out_takes_its_neighbours_and_the_rows_before_along() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store.write_now(|write| add(write, EntryId::ROOT, "a")).unwrap();
    let left_out = store.write_now(|write| {
        write.leave_feed_out();
        add(write, EntryId::ROOT, "b")
    });
    left_out.unwrap();
    assert_eq!((head(&store).position, head(&store).first), (2, 3));
    store.write_now(|write| add(write, EntryId::ROOT, "c")).unwrap();
    assert_eq!(rows(&store, 2).unwrap().len(), 1);
    assert!(matches!(rows(&store, 0), Err(Error::FeedTrimmed { first: 3, .. })));
    store.read().unwrap().view().check().unwrap();
}

/// Each of many places of a row is spoilt in its turn: reading says so.
#[test]
fn spoilt_rows_are_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    for n in 0..3 {
        store.write_now(move |write| add(write, EntryId::ROOT, &format!("name {n}"))).unwrap();
    }
    store.close().unwrap();
    let file = dir.path().join("data.mdb");
    let whole = std::fs::read(&file).unwrap();
    // The feed alone has the text of an entry behind the empty name above it and its component.
    let wanted = b"\0\x06name 1";
    let places: Vec<_> = (0..whole.len()).filter(|at| whole[*at..].starts_with(wanted)).collect();
    assert!(!places.is_empty());
    for by in 0..60 {
        let mut bytes = whole.clone();
        places.iter().for_each(|at| bytes[at + by - 30.min(by)] ^= 1 << (by % 8));
        std::fs::write(&file, &bytes).unwrap();
        let store = open(dir.path());
        let read = store.read().unwrap();
        let checked = read.view().check();
        assert!(matches!(&checked, Err(Error::Damaged { .. })), "{by}: {checked:?}");
    }
}
