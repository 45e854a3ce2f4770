//! Copies of a data file that is being written: each is one state, opens as a store of its own, and can be brought to any
//! later state by rows of the feed.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use keyway_store::{
    Entry, EntryId, Error, OpenError, Options, RawRow, Snapshot, Store, inspect, restored,
};
use tempfile::TempDir;

const WRITERS: usize = 4;
const DIR: &str = "KEYWAY_STORE_TEST_SNAPSHOT_DIR";
/// The entries that the writer in another process changes.
const WRITTEN: [EntryId; 2] = [EntryId(1), EntryId(2)];

fn options() -> Options {
    Options { map_bytes_max: 256 << 20, ..Options::default() }
}

fn unsynced() -> Options {
    Options { sync: false, ..options() }
}

fn entry(text: &str) -> Entry {
    let attributes = vec![("description".into(), vec![text.as_bytes().to_vec()])];
    Entry { rdn: "cn=x".into(), attributes, ..Entry::default() }
}

/// A folder with the copy in it, opened nowhere yet: read and written in two ways, which come to the same bytes.
fn copy(mut snapshot: Snapshot) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let create = |name: &str| fs::File::create(dir.path().join(name)).unwrap();
    let (file, mut other) = (create("data.mdb"), create("other"));
    let (length, mut told) = (snapshot.length(), 0);
    snapshot.write_to(&file, &mut |at| told = at.max(told)).unwrap();
    assert_eq!(told, length);
    assert_eq!(io::copy(&mut snapshot, &mut other).unwrap(), length);
    let data = fs::read(dir.path().join("data.mdb")).unwrap();
    assert!(fs::read(dir.path().join("other")).unwrap() == data);
    fs::remove_file(dir.path().join("other")).unwrap();
    // Both heads are there, alike but for the numbers of their places, and all that they lead to.
    let page_bytes = u32::from_ne_bytes(*data[40..].first_chunk().unwrap()) as usize;
    assert_eq!(data[8..page_bytes], data[page_bytes + 8..2 * page_bytes]);
    assert_eq!((data[..8].to_vec(), data[page_bytes]), (vec![0; 8], 1));
    inspect(dir.path(), &mut |damage| panic!("{damage}")).unwrap();
    dir
}

fn head(store: &Store) -> keyway_store::FeedHead {
    store.read().unwrap().view().feed_head().unwrap().unwrap()
}

/// How far each writer came: its entry says how many changes it has made.
fn counts(store: &Store, ids: &[EntryId]) -> Vec<u64> {
    let read = store.read().unwrap();
    let count = |id: &EntryId| {
        let found = read.view().entry(*id).unwrap().unwrap().to_entry();
        let text = String::from_utf8(found.attributes[0].1[0].clone()).unwrap();
        text.split(' ').next().unwrap().parse().unwrap()
    };
    ids.iter().map(count).collect()
}

fn change(store: &Store, id: EntryId, number: u64) {
    // Of different lengths, so that pages are freed and used again.
    let text = format!("{number} {}", "x".repeat((number as usize * 37) % 3000));
    store.write_now(move |write| write.update(id, &entry(&text), &[], &[])).unwrap();
}

#[test]
fn copies_beside_writers_are_states_that_there_were() {
    let dir = tempfile::tempdir().unwrap();
    // Without syncs they would fill the store.
    let store = Store::open(dir.path(), options()).unwrap();
    let ids: Vec<EntryId> = (0..WRITERS)
        .map(|writer| {
            let name = [b'a' + writer as u8];
            store.write_now(move |w| w.insert(EntryId::ROOT, &name, &entry("0"), &[])).unwrap()
        })
        .collect();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for id in &ids {
            let (store, is_over) = (&store, &is_over);
            scope.spawn(move || {
                for number in 1.. {
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    change(store, *id, number);
                }
            });
        }
        let mut seen = BTreeMap::new();
        for _ in 0..30 {
            let before = head(&store).position;
            let snapshot = store.snapshot().unwrap();
            let found = snapshot.feed_head().unwrap().unwrap();
            assert!(found.position >= before);
            assert_eq!(snapshot.entries().unwrap(), WRITERS as u64);
            let (incarnation, epoch) = (snapshot.incarnation(), snapshot.epoch().unwrap());
            let place = copy(snapshot);
            let (new, next) = restored(place.path(), &[]).unwrap();
            assert_eq!((new == incarnation, epoch, next), (false, 1, 2));
            let copied = Store::open(place.path(), unsynced()).unwrap();
            assert_eq!((copied.incarnation(), copied.epoch().unwrap()), (new, 2));
            copied.read().unwrap().view().check().unwrap();
            assert_eq!(head(&copied), found);
            // A commit may have changes of several writers: all that a row has is there, and no more.
            let counts = counts(&copied, &ids);
            assert_eq!(found.changes, WRITERS as u64 + counts.iter().sum::<u64>());
            seen.insert(found.position, (place, copied));
        }
        is_over.store(true, Ordering::Relaxed);
        // Each can be brought to where the store is.
        let read = store.read().unwrap();
        let last = read.view().feed_head().unwrap().unwrap();
        for (position, (_place, copied)) in seen.into_iter().step_by(7) {
            for row in read.view().feed_after(position).unwrap().raw() {
                copied.apply_row(&row.unwrap()).unwrap();
            }
            assert_eq!(head(&copied), last);
            assert_eq!(copied.read().unwrap().view().difference(read.view()).unwrap(), None);
        }
    });
}

/// Changes an entry without end, another one for each line that it is sent, and then says how many readers the store has
/// and how far the oldest of them is behind. Does nothing unless the test below has started it.
#[test]
fn the_writer_in_another_process() {
    let Some(dir) = env::var_os(DIR) else { return };
    let store = Store::open(Path::new(&dir), options()).unwrap();
    let [a, b] = [b"a", b"b"]
        .map(|name| store.write_now(|w| w.insert(EntryId::ROOT, name, &entry("0"), &[])).unwrap());
    assert_eq!([a, b], WRITTEN);
    let is_over = AtomicBool::new(false);
    // To the descriptor itself: the test harness would keep what is printed.
    let say = |line: String| io::stderr().write_all(line.as_bytes()).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1.. {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                change(&store, a, number);
            }
        });
        say("\nbegun 0 0\n".into());
        for (line, number) in io::stdin().lines().zip(1..) {
            line.unwrap();
            change(&store, b, number);
            let size = store.size().unwrap();
            say(format!("\nsize {} {}\n", size.readers, size.reader_lag));
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn copies_beside_another_process_that_writes_are_states_that_it_had() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "the_writer_in_another_process", "--nocapture"])
        .env(DIR, dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ask = child.stdin.take().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let mut answers = lines.filter_map(|line| {
        let line = line.strip_prefix("begun ").or(line.strip_prefix("size "))?;
        let (readers, lag) = line.split_once(' ')?;
        Some((readers.parse::<u64>().unwrap(), lag.parse::<u64>().unwrap()))
    });
    answers.next().unwrap();
    let reading = Store::open_to_read(dir.path(), &options()).unwrap();
    let mut last = 0;
    for _ in 0..12 {
        let snapshot = reading.snapshot().unwrap();
        let found = snapshot.feed_head().unwrap().unwrap();
        assert!(found.position > last, "it is of the last state");
        last = found.position;
        ask.write_all(b"\n").unwrap();
        let (readers, lag) = answers.next().unwrap();
        assert!(readers >= 1 && lag >= 1, "the server sees what holds its pages up: {lag}");
        let place = copy(snapshot);
        ask.write_all(b"\n").unwrap();
        let (readers, _) = answers.next().unwrap();
        assert_eq!(readers, 0, "a copy that is done holds nothing up");
        restored(place.path(), &[]).unwrap();
        let copied = Store::open(place.path(), unsynced()).unwrap();
        copied.read().unwrap().view().check().unwrap();
        assert_eq!(head(&copied), found);
        let changes = counts(&copied, &WRITTEN).iter().sum::<u64>();
        assert_eq!(found.changes, WRITTEN.len() as u64 + changes);
    }
    drop(ask);
    assert!(child.wait().unwrap().success());
    assert!(matches!(restored(tempfile::tempdir().unwrap().path(), &[]), Err(OpenError::Missing)));
}

/// Large values lie in pages of their own, which are free when they are deleted.
#[test]
fn a_copy_has_nothing_of_pages_that_were_deleted() {
    const SECRET: &[u8] = b"a secret that was deleted";
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Options { feed: false, ..unsynced() }).unwrap();
    let text = String::from_utf8(SECRET.repeat(1000)).unwrap();
    let id = store.write_now(move |w| w.insert(EntryId::ROOT, b"a", &entry(&text), &[])).unwrap();
    let is_in = |bytes: &[u8]| bytes.windows(SECRET.len()).any(|found| found == SECRET);
    let mut all = Vec::new();
    store.snapshot().unwrap().read_to_end(&mut all).unwrap();
    assert!(is_in(&all));
    store.write_now(move |w| w.delete(id, b"a", &[])).unwrap();
    let file = fs::read(dir.path().join("data.mdb")).unwrap();
    assert!(is_in(&file), "LMDB leaves it there");
    let place = copy(store.snapshot().unwrap());
    assert!(!is_in(&fs::read(place.path().join("data.mdb")).unwrap()));
    // Pages that are cut in two by a reader's buffer.
    let (mut pieces, mut snapshot) = (Vec::new(), store.snapshot().unwrap());
    let mut piece = [0; 1000];
    while let read @ 1.. = snapshot.read(&mut piece).unwrap() {
        pieces.extend_from_slice(&piece[..read]);
    }
    assert_eq!(pieces, fs::read(place.path().join("data.mdb")).unwrap());
    // What is free can be used again.
    restored(place.path(), &[]).unwrap();
    let copied = Store::open(place.path(), unsynced()).unwrap();
    let id = copied.write_now(|w| w.insert(EntryId::ROOT, b"b", &entry("0"), &[])).unwrap();
    for number in 1..50 {
        change(&copied, id, number);
    }
    copied.read().unwrap().view().check().unwrap();
    copied.close().unwrap();
    inspect(place.path(), &mut |damage| panic!("{damage}")).unwrap();
}

#[test]
fn two_copies_are_equal_but_for_what_was_changed() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), unsynced()).unwrap();
    for number in 0..2000_u32 {
        let name = number.to_be_bytes();
        let text = "y".repeat(700);
        store.write_now(move |w| w.insert(EntryId::ROOT, &name, &entry(&text), &[])).unwrap();
    }
    let pieces = |mut snapshot: Snapshot| {
        let mut all = Vec::new();
        snapshot.read_to_end(&mut all).unwrap();
        all.chunks(64 << 10).map(<[u8]>::to_vec).collect::<Vec<_>>()
    };
    let first = pieces(store.snapshot().unwrap());
    assert_eq!(pieces(store.snapshot().unwrap()), first);
    for number in 0..20 {
        change(&store, EntryId(1 + 100 * number), number);
    }
    let second = pieces(store.snapshot().unwrap());
    let new = second.iter().filter(|piece| !first.contains(piece)).count();
    assert!(new * 2 < second.len(), "{new} of {}", second.len());
}

#[test]
fn a_row_that_is_not_the_next_one_of_this_history_changes_nothing() {
    let [dir, other] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let store = Store::open(dir.path(), unsynced()).unwrap();
    let id = store.write_now(|w| w.insert(EntryId::ROOT, b"a", &entry("0"), &[])).unwrap();
    for number in 1..5 {
        change(&store, id, number);
    }
    let read = store.read().unwrap();
    let rows: Vec<RawRow> =
        read.view().feed_after(0).unwrap().raw().collect::<Result<_, _>>().unwrap();
    let follower = Store::open(other.path(), unsynced()).unwrap();
    let refused = |row: &RawRow| {
        let before = head(&follower);
        assert!(matches!(follower.apply_row(row), Err(Error::NotNext { .. })));
        assert_eq!(head(&follower), before);
    };
    refused(&rows[1]);
    follower.apply_row(&rows[0]).unwrap();
    refused(&rows[0]);
    refused(&rows[2]);
    follower.apply_row(&rows[1]).unwrap();
    // A history that has parted from this one.
    follower.write_now(move |w| w.update(id, &entry("other"), &[], &[])).unwrap();
    refused(&rows[2]);
    refused(&rows[3]);
    for at in 0..rows[2].bytes().len() {
        let mut bytes = rows[2].bytes().to_vec();
        bytes[at] ^= 0x10;
        assert!(RawRow::parse(3, &bytes).is_err());
        assert!(RawRow::parse(3, &rows[2].bytes()[..at]).is_err());
    }
    assert!(RawRow::parse(4, rows[2].bytes()).is_err(), "it is of another position");
    let without =
        Store::open(tempfile::tempdir().unwrap().path(), Options { feed: false, ..unsynced() })
            .unwrap();
    assert!(without.apply_row(&rows[0]).is_err());
}

/// A restore that is killed before it is done leaves a store that does not open.
#[test]
fn a_copy_that_was_cut_off_or_is_half_restored_does_not_open() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), unsynced()).unwrap();
    for number in 0..200_u32 {
        let name = number.to_be_bytes();
        store.write_now(move |w| w.insert(EntryId::ROOT, &name, &entry("z"), &[])).unwrap();
    }
    let whole = copy(store.snapshot().unwrap());
    let data = fs::read(whole.path().join("data.mdb")).unwrap();
    for part in [0, 100, 4096, 8192, data.len() / 2] {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("data.mdb"), &data[..part]).unwrap();
        assert!(restored(place.path(), &[]).is_err(), "{part} bytes");
        assert!(opens(place.path()).is_err(), "{part} bytes");
    }
    fs::write(whole.path().join("unfinished"), "loading\n").unwrap();
    assert!(matches!(opens(whole.path()), Err(OpenError::Unfinished)));
    restored(whole.path(), &[]).unwrap();
    opens(whole.path()).unwrap();
}

fn opens(dir: &Path) -> Result<(), OpenError> {
    Store::open(dir, unsynced()).map(drop)
}
