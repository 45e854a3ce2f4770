//! Disks that are full or cannot be written.
//!
//! Two ways: small file systems of our own, which take root, and a limit on the size of files in a child
//! process, which needs no rights.

use std::env;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use keyway_store::{
    Entry, EntryId, Error, Key, LargeEdit, OpenError, Options, Store, ValueKey, Write,
};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

fn options() -> Options {
    Options { map_bytes_max: 1 << 30, ..Options::default() }
}

/// Opens a store that no process has open. For a moment a child of another test may hold its lock still:
/// from when it is forked until it has become `mount`.
fn open(dir: &Path) -> Store {
    loop {
        match Store::open(dir, options()) {
            Err(OpenError::Locked { .. }) => std::thread::yield_now(),
            other => return other.unwrap(),
        }
    }
}

fn name(n: u64) -> Vec<u8> {
    format!("cn={n}").into_bytes()
}

fn key() -> Key {
    Key::new(b'p', &[b"jpeg"])
}

fn insert(write: &mut Write<'_>, n: u64, bytes: usize) -> Result<EntryId, Error> {
    let attributes = vec![("jpeg".to_owned(), vec![vec![7; bytes]])];
    let entry = Entry { rdn: format!("cn={n}"), attributes, ..Entry::default() };
    write.insert(EntryId::ROOT, &name(n), &entry, &[key()])
}

fn add(store: &Store, n: u64) -> Result<EntryId, Error> {
    store.write_now(move |w| insert(w, n, 50_000))
}

fn delete(store: &Store, n: u64, id: EntryId) -> Result<(), Error> {
    store.write_now(move |w| w.delete(id, &name(n), &[key()]))
}

/// Adds entries until the disk is full.
fn fill(store: &Store, from: u64) -> Vec<(u64, EntryId)> {
    let mut added = Vec::new();
    for n in from.. {
        match add(store, n) {
            Ok(id) => added.push((n, id)),
            Err(Error::DiskFull) => break,
            Err(other) => panic!("{other:?}"),
        }
    }
    added
}

fn assert_holds(store: &Store, expected: &[(u64, EntryId)]) {
    assert_eq!(store.failed(), None);
    let read = store.read().unwrap();
    assert_eq!(read.view().check().unwrap().entries, expected.len() as u64);
    for (n, id) in expected {
        assert_eq!(read.view().child(EntryId::ROOT, &name(*n)).unwrap(), Some(*id));
    }
}

/// Says so, or fails where nothing may be skipped.
fn skipped(why: &str) {
    let ci = env::var("CI").is_ok_and(|value| value == "true" || value == "1");
    assert!(!ci, "nothing may be skipped in CI: {why}");
    eprintln!("skipped: {why}");
}

/// A small file system, gone with this.
struct Mount {
    dir: PathBuf,
}

impl Mount {
    /// `None`, and a word about it, where this user cannot mount.
    fn new(dir: &Path, size: &str) -> Option<Mount> {
        let dir = dir.to_owned();
        fs::create_dir(&dir).unwrap();
        let option = format!("size={size},mode=0700");
        let done =
            Command::new("mount").args(["-t", "tmpfs", "-o", &option, "tmpfs"]).arg(&dir).output();
        if !done.is_ok_and(|done| done.status.success()) {
            skipped("mounting a small file system takes root");
            return None;
        }
        Some(Mount { dir })
    }

    /// One of this kind, in a file of so many bytes beside `dir`.
    fn image(dir: &Path, kind: &str, bytes: u64) -> Option<Mount> {
        let dir = dir.to_owned();
        let image = dir.with_extension("image");
        fs::create_dir(&dir).unwrap();
        File::create(&image).unwrap().set_len(bytes).unwrap();
        let run = |command: &mut Command| command.output().is_ok_and(|done| done.status.success());
        if run(Command::new(format!("mkfs.{kind}")).arg("-q").arg(&image))
            && run(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&dir))
        {
            return Some(Mount { dir });
        }
        skipped(&format!("a small file system takes root, loop devices and mkfs.{kind}"));
        None
    }

    /// Leaves no room.
    fn fill(&self) {
        let filler = File::create(self.dir.join("filler")).unwrap();
        let mut filled = 0;
        for bytes in [1 << 20, 4 << 10] {
            while fallocate(&filler, FallocateFlags::empty(), filled, bytes).is_ok() {
                filled += bytes;
            }
        }
        filler.sync_all().unwrap();
    }

    fn remount(&self, option: &str) {
        let option = format!("remount,{option}");
        let mount = || Command::new("mount").args(["-o", &option]).arg(&self.dir).status().unwrap();
        let begun = Instant::now();
        // A child that another test forks has this process' files until it executes its program.
        while !mount().success() {
            assert!(begun.elapsed() < Duration::from_secs(60), "it stays busy");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.dir).status();
    }
}

/// Values `from` to `to` of a large attribute.
fn values(from: u32, to: u32) -> Entry {
    let value = |n: u32| n.to_be_bytes().repeat(12);
    let added = (from..to).map(value).map(|value| (ValueKey::of(&value), value)).collect();
    let large = LargeEdit { name: "member".to_owned(), added, ..LargeEdit::default() };
    Entry { rdn: "cn=group".into(), large: vec![large], ..Entry::default() }
}

#[test]
fn a_full_disk_leaves_a_large_attribute_as_it_was() {
    const STEP: u32 = 500;
    let dir = tempfile::tempdir().unwrap();
    let Some(mount) = Mount::new(&dir.path().join("small"), "8m") else { return };
    let store = open(&mount.dir);
    let id = store.write_now(|w| w.insert(EntryId::ROOT, b"g", &values(0, STEP), &[])).unwrap();
    let mut count = STEP;
    loop {
        let more = values(count, count + STEP);
        match store.write_now(move |w| w.update(id, &more, &[], &[])) {
            Ok(()) => count += STEP,
            Err(Error::DiskFull) => break,
            Err(other) => panic!("{other:?}"),
        }
    }
    assert!(count > 10_000 && store.failed().is_none());
    store.close().unwrap();
    let store = open(&mount.dir);
    let read = store.read().unwrap();
    read.view().check().unwrap();
    let entry = read.view().entry(id).unwrap().unwrap();
    assert_eq!(entry.large().next().unwrap().count, count.into());
}

/// What is deleted leaves a row in the feed, which takes as much room: the oldest rows go for it.
#[test]
fn a_disk_that_is_filled_again_and_again_still_deletes_with_a_feed() {
    let dir = tempfile::tempdir().unwrap();
    let Some(mount) = Mount::new(&dir.path().join("small"), "30m") else { return };
    let store = open(&mount.dir);
    let mut expected = Vec::new();
    for round in 0..5 {
        let mut added = fill(&store, round * 10_000);
        expected.append(&mut added);
        assert!(expected.len() > 60, "{round}: {}", expected.len());
        for (n, id) in expected.drain(..60) {
            delete(&store, n, id).unwrap_or_else(|why| panic!("round {round}, {n}: {why}"));
        }
        assert_holds(&store, &expected);
    }
    let read = store.read().unwrap();
    let head = read.view().feed_head().unwrap().unwrap();
    assert!(head.first > 1 && !head.is_whole(), "{head:?}");
}

#[test]
fn a_full_disk_loses_nothing_and_still_deletes() {
    let dir = tempfile::tempdir().unwrap();
    let Some(mount) = Mount::new(&dir.path().join("small"), "16m") else { return };
    let store = open(&mount.dir);
    let mut expected = fill(&store, 0);
    assert!(expected.len() > 50);
    assert_holds(&store, &expected);
    assert!(matches!(add(&store, 9999), Err(Error::DiskFull)));

    // In one group, what makes room is done and what needs room is refused.
    let (n, id) = expected.pop().unwrap();
    let (answer, answers) = channel();
    let (hold, held) = channel::<()>();
    store
        .submit(
            move |_| {
                let _ = held.recv();
                Ok::<_, Error>(())
            },
            drop,
        )
        .unwrap();
    let heard = answer.clone();
    let large = move |w: &mut Write<'_>| insert(w, 9999, 3_000_000).map(drop);
    store.submit(large, move |result| heard.send(("add", result)).unwrap()).unwrap();
    let gone = move |w: &mut Write<'_>| w.delete(id, &name(n), &[key()]);
    store.submit(gone, move |result| answer.send(("delete", result)).unwrap()).unwrap();
    drop(hold);
    let answers: Vec<_> = answers.iter().collect();
    assert!(
        matches!(&answers[..], [("add", Err(Error::DiskFull)), ("delete", Ok(()))]),
        "{answers:?}"
    );
    assert_holds(&store, &expected);

    // Every reader has its place in a mapped file: it must have room already.
    let reads: Vec<_> = (0..2000).map(|_| store.read().unwrap()).collect();
    drop(reads);

    // A full disk is no reason not to open.
    store.close().unwrap();
    let store = open(&mount.dir);
    assert_holds(&store, &expected);
    for (n, id) in expected.split_off(expected.len() / 2) {
        delete(&store, n, id).unwrap();
    }
    assert_holds(&store, &expected);
    expected.extend(fill(&store, 10_000));
    assert_holds(&store, &expected);
    mount.remount("size=32m");
    expected.push((20_000, add(&store, 20_000).unwrap()));
    assert_holds(&store, &expected);
}

/// Writing to a mapped page takes new blocks where a file system copies on write: with none left,
/// the first reader would die by SIGBUS. To fill one takes up to a minute: `cargo xtask nightly`
/// does.
#[test]
fn a_full_btrfs_kills_no_process() {
    if env::var_os("KEYWAY_NIGHTLY").is_none() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let Some(mount) = Mount::image(&dir.path().join("small"), "btrfs", 128 << 20) else { return };
    let path = mount.dir.join("store");
    let store = open(&path);
    let mut expected = vec![(1, add(&store, 1).unwrap()), (2, add(&store, 2).unwrap())];
    store.close().unwrap();
    // As an earlier version left it.
    let locks = path.join("lock.mdb");
    let bytes = fs::read(&locks).unwrap();
    fs::remove_file(&locks).unwrap();
    fs::write(&locks, bytes).unwrap();

    let store = open(&path);
    mount.fill();
    let reads: Vec<_> = (0..2000).map(|_| store.read().unwrap()).collect();
    drop(reads);
    assert_holds(&store, &expected);
    store.close().unwrap();

    let store = open(&path);
    assert_holds(&store, &expected);
    let (n, id) = expected.pop().unwrap();
    delete(&store, n, id).unwrap();
    assert_holds(&store, &expected);
}

/// XFS refuses room on a full disk also for what a file has already.
#[test]
fn a_full_xfs_is_no_reason_not_to_open() {
    let dir = tempfile::tempdir().unwrap();
    let Some(mount) = Mount::image(&dir.path().join("small"), "xfs", 320 << 20) else { return };
    let path = mount.dir.join("store");
    let store = open(&path);
    let mut expected: Vec<_> = (0..40).map(|n| (n, add(&store, n).unwrap())).collect();
    store.close().unwrap();
    mount.fill();

    let store = open(&path);
    assert_holds(&store, &expected);
    for (n, id) in expected.split_off(10) {
        delete(&store, n, id).unwrap();
    }
    assert_holds(&store, &expected);
    store.close().unwrap();
    assert_holds(&open(&path), &expected);
}

#[test]
fn a_disk_too_small_for_a_new_store_is_said_to_be_full() {
    let dir = tempfile::tempdir().unwrap();
    let Some(mount) = Mount::new(&dir.path().join("small"), "64k") else { return };
    let error = Store::open(&mount.dir, options()).err().unwrap();
    assert!(matches!(error, OpenError::DiskFull), "{error}");
    mount.remount("size=16m");
    add(&open(&mount.dir), 1).unwrap();
}

#[test]
fn a_folder_that_cannot_be_written_is_said_to_be_so() {
    let dir = tempfile::tempdir().unwrap();
    let mount = Mount::new(&dir.path().join("small"), "16m");
    let path = dir.path().join("small");
    drop(open(&path));
    match &mount {
        Some(mount) => mount.remount("ro"),
        None => {
            fs::set_permissions(path.join("lock"), PermissionsExt::from_mode(0o400)).unwrap();
            assert!(File::options().write(true).open(path.join("lock")).is_err());
        }
    }
    let error = Store::open(&path, options()).err().unwrap();
    assert!(matches!(error, OpenError::NotWritable { .. }), "{error}");
}

const DIR: &str = "KEYWAY_STORE_TEST_DIR";

/// Fills the store in a process whose files may grow to 4 MiB, then to any size. Does nothing
/// unless the test below has started it.
#[test]
fn the_writer_with_a_limit() {
    let Some(dir) = env::var_os(DIR) else { return };
    let store = open(Path::new(&dir));
    let unlimited = getrlimit(Resource::Fsize);
    let limited = Rlimit { current: Some(4 << 20), maximum: unlimited.maximum };
    setrlimit(Resource::Fsize, limited).unwrap();
    let mut expected = fill(&store, 0);
    assert!(expected.len() > 30);
    assert_holds(&store, &expected);
    setrlimit(Resource::Fsize, unlimited).unwrap();
    expected.push((10_000, add(&store, 10_000).unwrap()));
    assert_holds(&store, &expected);
}

#[test]
fn a_file_that_may_not_grow_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    // Without the shell the signal would end the child at the first write beyond the limit.
    let done = Command::new("sh")
        .args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"])
        .arg(env::current_exe().unwrap())
        .args(["--exact", "the_writer_with_a_limit"])
        .env(DIR, dir.path())
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
}
