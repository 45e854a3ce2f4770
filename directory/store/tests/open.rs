//! Folders that cannot be opened, and what is said of them.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;

use keyway_store::{Entry, EntryId, Error, Key, OpenError, Options, Store};

fn options() -> Options {
    Options { map_bytes_max: 64 << 20, ..Options::default() }
}

fn open(dir: &Path) -> Result<Store, OpenError> {
    Store::open(dir, options())
}

fn refused(dir: &Path) -> OpenError {
    match open(dir) {
        Err(error) => error,
        Ok(_) => panic!("it was opened"),
    }
}

/// A closed store with some entries.
fn filled(dir: &Path) {
    let store = open(dir).unwrap();
    store
        .write_now(|w| {
            for n in 0..200u32 {
                let name = format!("cn={n}");
                let entry = Entry {
                    rdn: name.clone(),
                    attributes: vec![("x".into(), vec![n.to_be_bytes().repeat(100)])],
                    ..Entry::default()
                };
                let key = Key::new(b'e', &[b"cn", &n.to_be_bytes()]);
                w.insert(EntryId::ROOT, name.as_bytes(), &entry, &[key])?;
            }
            Ok::<_, Error>(())
        })
        .unwrap();
    store.close().unwrap();
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|found| found.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_new_store_is_for_its_owner_alone_and_keeps_its_identity() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = open(&path).unwrap();
    let incarnation = store.incarnation();
    // The committer makes a file of its own before it runs a job.
    store.write_now(|w| w.meta_put("a", b"b")).unwrap();
    assert_eq!((incarnation[6] >> 4, incarnation[8] >> 6), (4, 2), "UUID version and variant");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
    for name in names(&path) {
        let mode = fs::metadata(path.join(&name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{name}");
    }
    assert!(!names(&path).contains(&"unfinished".to_owned()));
    drop(store);
    assert_eq!(open(&path).unwrap().incarnation(), incarnation);
    assert_ne!(open(&dir.path().join("other")).unwrap().incarnation(), incarnation);
}

#[test]
fn a_folder_of_something_else_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("letter.txt"), "dear").unwrap();
    let error = refused(dir.path());
    assert!(matches!(&error, OpenError::NotOurs { what } if what == "letter.txt"), "{error}");
    assert_eq!(names(dir.path()), ["letter.txt"]);
    let error = refused(&dir.path().join("letter.txt"));
    assert!(matches!(error, OpenError::System { .. }), "{error}");
    let error = refused(&dir.path().join("no/parent"));
    assert!(matches!(error, OpenError::System { .. }), "{error}");
}

#[test]
fn a_store_whose_signature_a_power_cut_took_is_signed_again() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path());
    let lock = dir.path().join("lock");
    for damage in [Some(&b""[..]), Some(&[0; 30]), Some(b"keyw"), None] {
        match damage {
            Some(bytes) => fs::write(&lock, bytes).unwrap(),
            None => fs::remove_file(&lock).unwrap(),
        }
        assert!(Store::is_at(dir.path()));
        let store = open(dir.path()).unwrap();
        assert_eq!(store.read().unwrap().view().check().unwrap().entries, 200);
        assert!(fs::read(&lock).unwrap().starts_with(b"keyway-store\n"));
    }
    // In the midst of being made.
    for name in ["unfinished.draft", "unfinished"] {
        let young = tempfile::tempdir().unwrap();
        fs::write(young.path().join("lock"), "").unwrap();
        fs::write(young.path().join(name), "creating\n").unwrap();
        fs::write(young.path().join("lock.mdb"), "").unwrap();
        open(young.path()).unwrap();
    }
}

#[test]
fn what_a_folder_without_a_signature_holds_says_whose_it_is() {
    let ours = tempfile::tempdir().unwrap();
    filled(ours.path());
    let data = fs::read(ours.path().join("data.mdb")).unwrap();
    let renamed = |from: &[u8], to: &[u8]| {
        let mut data = data.clone();
        for at in 0..data.len() - from.len() {
            if data[at..].starts_with(from) {
                data[at..at + from.len()].copy_from_slice(to);
            }
        }
        data
    };
    let cases: [(&str, &str, Vec<u8>); 5] = [
        ("another's tables", "data.mdb", renamed(b"posting", b"poStIng")),
        ("no tables", "data.mdb", b"something".to_vec()),
        ("nothing", "data.mdb", Vec::new()),
        ("cut within its tables", "data.mdb", data[..8192].to_vec()),
        ("another file beside them", "letter.txt", b"dear".to_vec()),
    ];
    for (what, name, bytes) in cases {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("data.mdb"), &data).unwrap();
        fs::write(dir.path().join(name), &bytes).unwrap();
        let before = names(dir.path());
        assert!(!Store::is_at(dir.path()), "{what}");
        assert!(matches!(refused(dir.path()), OpenError::NotOurs { .. }), "{what}");
        assert_eq!(names(dir.path()), before, "{what}");
        assert_eq!(fs::read(dir.path().join(name)).unwrap(), bytes, "{what}");
    }
}

#[test]
fn a_second_opening_is_refused_and_told_who_has_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    let read = store.read().unwrap();
    let error = refused(dir.path());
    assert!(matches!(error, OpenError::Locked { pid } if pid == std::process::id()), "{error}");
    drop(store);
    assert!(matches!(refused(dir.path()), OpenError::Locked { .. }), "a read keeps it open");
    drop(read);
    open(dir.path()).unwrap();
}

#[test]
fn another_format_is_named() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path());
    // The row `format` with its value; the store writes it once, when it is created.
    let path = dir.path().join("data.mdb");
    let mut data = fs::read(&path).unwrap();
    let at: Vec<_> =
        (0..data.len() - 10).filter(|&i| data[i..].starts_with(b"format\0\0\0\x03")).collect();
    assert!(!at.is_empty());
    at.into_iter().for_each(|at| data[at + 9] = 9);
    fs::write(&path, data).unwrap();
    let error = refused(dir.path());
    assert!(matches!(error, OpenError::OtherVersion { found: 9, ours: 3 }), "{error}");
}

#[test]
fn damaged_files_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path());
    let path = dir.path().join("data.mdb");
    let whole = fs::read(&path).unwrap();
    // Empty, cut inside the head, cut in the middle, no magic, contradicting itself.
    for cut in [0, 100, 5000, whole.len() / 2, whole.len() - 4096] {
        fs::write(&path, &whole[..cut]).unwrap();
        let error = refused(dir.path());
        assert!(matches!(error, OpenError::Damaged { .. }), "{cut}: {error}");
    }
    for at in [16, 40, 136, 128, 4096 + 16, 4096 + 136] {
        fs::write(&path, &whole).unwrap();
        File::options().write(true).open(&path).unwrap().write_all_at(&[0x55; 8], at).unwrap();
        match open(dir.path()) {
            Err(OpenError::Damaged { .. }) => {}
            Err(error) => panic!("{at}: {error}"),
            // The older of the two heads is not used.
            Ok(store) => drop(store.read().unwrap().view().check().unwrap()),
        }
    }
    fs::write(&path, &whole).unwrap();
    open(dir.path()).unwrap().read().unwrap().view().check().unwrap();
}

#[test]
fn a_spoiled_entry_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path());
    let path = dir.path().join("data.mdb");
    let mut data = fs::read(&path).unwrap();
    let value = 77u32.to_be_bytes().repeat(100);
    let at: Vec<_> = (0..data.len() - 400).filter(|&i| data[i..].starts_with(&value)).collect();
    assert!(!at.is_empty());
    at.into_iter().for_each(|at| data[at + 3] ^= 4);
    fs::write(&path, data).unwrap();
    let store = open(dir.path()).unwrap();
    let read = store.read().unwrap();
    let id = read.view().child(EntryId::ROOT, b"cn=77").unwrap().unwrap();
    let error = read.view().entry(id).unwrap_err();
    let is_its = |error: &Error| matches!(error, Error::Damaged { what, entry } if what.contains("checksum") && *entry == Some(id));
    assert!(is_its(&error), "{error}");
    assert_eq!(read.view().dn_in_tree(id).unwrap().as_deref(), Some("cn=77"));
    assert!(read.view().entry(EntryId(id.0 + 1)).unwrap().is_some(), "others can be read");
    let checked = read.view().check().unwrap_err();
    assert!(is_its(&checked) && checked.to_string().ends_with(" (cn=77)"), "{checked}");
}

#[test]
fn an_interrupted_creation_starts_over() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path());
    fs::write(dir.path().join("unfinished"), "creating\n").unwrap();
    fs::write(dir.path().join("data.mdb"), "half of a head").unwrap();
    let store = open(dir.path()).unwrap();
    assert_eq!(store.read().unwrap().view().entry_count().unwrap(), 0);
    drop(store);
    fs::write(dir.path().join("unfinished"), "cre").unwrap();
    assert!(matches!(refused(dir.path()), OpenError::Damaged { .. }));
}

#[test]
fn a_load_that_was_not_closed_is_not_taken_for_whole() {
    let dir = tempfile::tempdir().unwrap();
    let loading = Options { sync: false, ..options() };
    let store = Store::open(dir.path(), loading).unwrap();
    let marked = fs::read(dir.path().join("unfinished")).unwrap();
    store.close().unwrap();
    assert!(!dir.path().join("unfinished").exists());
    open(dir.path()).unwrap();
    fs::write(dir.path().join("unfinished"), marked).unwrap();
    assert!(matches!(refused(dir.path()), OpenError::Unfinished));
}

#[test]
fn more_address_space_than_there_is_is_halved() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Options { map_bytes_max: 1 << 50, ..options() }).unwrap();
    store.write_now(|w| w.meta_put("a", b"b")).unwrap();
}

#[test]
fn a_store_that_has_to_be_there_is_not_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    let (path, other) = (dir.path().join("store"), dir.path().join("other"));
    filled(&path);
    filled(&other);
    let incarnation = |path: &Path| open(path).unwrap().incarnation();
    let (own, foreign) = (incarnation(&path), incarnation(&other));
    let expecting = |path: &Path| {
        Store::open(path, Options { expected: Some(own), ..options() }).map(|store| store.close())
    };
    expecting(&path).unwrap().unwrap();
    let found = expecting(&other).map(|_| ()).unwrap_err();
    assert!(matches!(found, OpenError::Another { found } if found == foreign), "{found:?}");
    fs::remove_file(path.join("data.mdb")).unwrap();
    let before = names(&path);
    for gone in [path.as_path(), &dir.path().join("nowhere")] {
        let found = expecting(gone).map(|_| ()).unwrap_err();
        assert!(matches!(found, OpenError::Missing), "{found:?}");
    }
    assert_eq!(names(&path), before);
    assert!(!dir.path().join("nowhere").exists());
}

/// A change written to a file that no process will find is not acknowledged.
#[test]
fn a_store_that_is_moved_removed_or_replaced_acknowledges_nothing_more() {
    type Harm = fn(&Path, &Path);
    let harms: [(&str, Harm); 4] = [
        ("its folder is moved", |dir, aside| fs::rename(dir, aside).unwrap()),
        ("its folder is removed", |dir, _| fs::remove_dir_all(dir).unwrap()),
        ("its file is removed", |dir, _| fs::remove_file(dir.join("data.mdb")).unwrap()),
        ("its file is replaced by a copy", |dir, aside| {
            fs::copy(dir.join("data.mdb"), aside).unwrap();
            fs::rename(aside, dir.join("data.mdb")).unwrap();
        }),
    ];
    for (what, harm) in harms {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store");
        let store = open(&path).unwrap();
        let add = |name: &'static str| {
            store.write_now(move |w| {
                w.insert(EntryId::ROOT, name.as_bytes(), &Entry::default(), &[])
            })
        };
        add("cn=before").unwrap();
        harm(&path, &dir.path().join("aside"));
        let refused = add("cn=after").unwrap_err();
        assert!(
            matches!(&refused, Error::Displaced { path: at } if at.starts_with(&path)),
            "{what}"
        );
        assert!(store.failed().is_some_and(|why| why.contains("data.mdb")), "{what}");
        assert!(matches!(add("cn=again"), Err(Error::Failed { .. })), "{what}");
    }
}
