//! Relaxed mode: what a cut of power leaves is a state that was there, no older than was allowed; all else loses nothing.
//!
//! A cut is made by hand: of each page the disk has what it had at the last sync, or anything that was written since.

use keyway_store::{
    CutShort, Entry, EntryId, Error, Key, OpenError, Options, Relaxed, Store, put_back,
};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

const PAGE: usize = 4096;
const NEVER: Duration = Duration::from_secs(3600);
/// Where each of the two places of the kept head has the identity of the system's run.
const BOOTS: [usize; 2] = [12, (128 << 10) + 12];

fn options() -> Options {
    Options { map_bytes_max: 64 << 20, ..Options::default() }
}

fn at_most(changes_max: u64) -> Option<Relaxed> {
    Some(Relaxed { changes_max, age_max: NEVER })
}

struct Case {
    dir: TempDir,
    store: Store,
    top: EntryId,
    /// The entries, by their numbers.
    model: BTreeMap<u64, EntryId>,
    next: u64,
    random: u64,
}

impl Case {
    fn new(seed: u64) -> Case {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("store"), options()).unwrap();
        let top = Entry { rdn: "dc=x".into(), ..Entry::default() };
        let top = store.write_now::<_, Error>(move |w| w.insert(EntryId::ROOT, b"dc=x", &top, &[]));
        let top = top.unwrap();
        Case { dir, store, top, model: BTreeMap::new(), next: 0, random: seed }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("store")
    }

    fn random(&mut self, below: u64) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.random >> 33) % below
    }

    /// Adds an entry or deletes one.
    fn change(&mut self) {
        let some = self.model.keys().copied().nth(self.next as usize % self.model.len().max(1));
        let (top, number) = (self.top, self.next);
        match some.filter(|_| self.model.len() > 40 && !number.is_multiple_of(3)) {
            Some(gone) => {
                let id = self.model.remove(&gone).unwrap();
                let row = component(gone);
                self.store.write_now(move |w| w.delete(id, row.as_bytes(), &[key(gone)])).unwrap();
            }
            None => {
                let bytes = 100 + self.random(3000) as usize;
                let entry = Entry {
                    rdn: component(number),
                    attributes: vec![("cn".into(), vec![vec![number as u8; bytes]])],
                    ..Entry::default()
                };
                let row = component(number);
                let add = move |w: &mut keyway_store::Write<'_>| {
                    w.insert(top, row.as_bytes(), &entry, &[key(number)])
                };
                let id = self.store.write_now(add).unwrap();
                self.model.insert(number, id);
            }
        }
        self.next += 1;
    }

    fn data(&self) -> Vec<u8> {
        fs::read(self.path().join("data.mdb")).unwrap()
    }

    /// Brings all to the disk without an end of the mode.
    fn sync(&mut self) {
        self.store.relax(at_most(0)).unwrap();
        self.change();
    }

    /// The store as a cut leaves it, of pages as they were on the disk and as they are now.
    fn cut(&mut self, disk: &[u8]) -> TempDir {
        let now = self.data();
        let mut left = now.clone();
        for (at, page) in left.chunks_mut(PAGE).enumerate() {
            let was = disk.get(at * PAGE..).unwrap_or_default();
            if self.random(2) == 0 {
                let was = was.get(..page.len()).map_or_else(|| vec![0; page.len()], <[u8]>::to_vec);
                page.copy_from_slice(&was);
            }
        }
        let place = tempfile::tempdir().unwrap();
        copy(&self.path(), place.path());
        fs::write(place.path().join("data.mdb"), &left).unwrap();
        start_again(place.path());
        place
    }
}

fn component(number: u64) -> String {
    format!("cn=entry {number}")
}

fn key(number: u64) -> Key {
    Key::new(b'e', &[b"cn", number.to_string().as_bytes()])
}

fn copy(from: &Path, to: &Path) {
    for file in fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

/// The system is started again: the kept head is of another run.
fn start_again(dir: &Path) {
    let path = dir.join("synced");
    let mut bytes = fs::read(&path).unwrap();
    for at in BOOTS {
        bytes[at..at + 16].fill(1);
    }
    fs::write(path, bytes).unwrap();
}

fn has(store: &Store, model: &BTreeMap<u64, EntryId>) {
    let read = store.read().unwrap();
    let checked = read.view().check().unwrap();
    assert_eq!(checked.entries, 1 + model.len() as u64);
    for (number, id) in model {
        assert!(read.view().contains(&key(*number), *id).unwrap(), "{number}");
    }
}

fn no_rows(_: &CutShort<'_>) -> Vec<(String, Vec<u8>)> {
    Vec::new()
}

#[test]
fn a_cut_leaves_the_last_state_that_is_on_the_disk() {
    for seed in 0..12 {
        let mut case = Case::new(seed);
        for _ in 0..60 {
            case.change();
        }
        case.store.relax(at_most(0)).unwrap();
        for _ in 0..4 {
            case.sync();
            let (disk, model) = (case.data(), case.model.clone());
            case.store.relax(at_most(1_000_000)).unwrap();
            for _ in 0..case.random(80) {
                case.change();
            }
            has(&case.store, &case.model);
            let left = case.cut(&disk);
            let position = Store::open(left.path(), options()).map(drop).unwrap_err();
            assert!(matches!(position, OpenError::CutShort), "{position}");
            let read = Store::open_to_read(left.path(), &options()).map(drop).unwrap_err();
            assert!(matches!(read, OpenError::CutShort), "{read}");
            let was = case.store.incarnation();
            let mut rows = |cut: &CutShort<'_>| {
                assert_eq!(cut.incarnation, was);
                assert!(cut.position.is_some() && cut.row("nothing").is_none());
                vec![("left".to_owned(), b"row".to_vec())]
            };
            let (incarnation, epoch) = put_back(left.path(), &mut rows).unwrap();
            let store = Store::open(left.path(), options()).unwrap();
            assert_ne!(incarnation, was);
            assert_eq!((store.incarnation(), store.epoch().unwrap(), epoch), (incarnation, 2, 2));
            assert_eq!(store.read().unwrap().view().meta_get("left").unwrap(), Some(&b"row"[..]));
            has(&store, &model);
            // It goes on from there.
            let (top, entry) = (case.top, Entry { rdn: "cn=new".into(), ..Entry::default() });
            store.write_now::<_, Error>(move |w| w.insert(top, b"cn=new", &entry, &[])).unwrap();
            store.close().unwrap();
            assert!(put_back(left.path(), &mut no_rows).is_err());
        }
    }
}

#[test]
fn no_more_changes_than_allowed_are_lost() {
    for changes_max in [2, 5, 20] {
        let mut case = Case::new(changes_max);
        case.store.relax(at_most(changes_max)).unwrap();
        let mut models = vec![case.model.clone()];
        for number in 0..120 {
            case.change();
            models.push(case.model.clone());
            if number % 7 == 0 {
                let disk = case.data();
                let left = case.cut(&disk);
                put_back(left.path(), &mut no_rows).unwrap();
                let store = Store::open(left.path(), options()).unwrap();
                let from = (models.len() - 1).saturating_sub(changes_max as usize);
                let is_one = |model: &BTreeMap<u64, EntryId>| {
                    let read = store.read().unwrap();
                    read.view().entry_count().unwrap() == 1 + model.len() as u64
                        && model
                            .iter()
                            .all(|(number, id)| read.view().contains(&key(*number), *id).unwrap())
                };
                assert!(models[from..].iter().any(is_one), "of {changes_max}, after {number}");
                store.read().unwrap().view().check().unwrap();
            }
        }
    }
}

#[test]
fn without_a_cut_nothing_is_lost() {
    let mut case = Case::new(1);
    case.store.relax(at_most(1_000_000)).unwrap();
    for _ in 0..50 {
        case.change();
    }
    assert!(case.path().join("synced").exists());
    // The process is killed: all that it has written is there.
    let left = tempfile::tempdir().unwrap();
    copy(&case.path(), left.path());
    Store::open_to_read(left.path(), &options()).unwrap();
    let store = Store::open(left.path(), options()).unwrap();
    assert_eq!(store.incarnation(), case.store.incarnation());
    has(&store, &case.model);
    assert!(!left.path().join("synced").exists());
    store.close().unwrap();

    // The mode ends, and so does the risk.
    case.store.relax(None).unwrap();
    assert!(!case.path().join("synced").exists());
    case.change();
    case.store.relax(at_most(10)).unwrap();
    case.store.relax(at_most(20)).unwrap();
    case.change();
    let (path, model) = (case.path(), case.model.clone());
    let Case { dir, store, .. } = case;
    store.close().unwrap();
    assert!(!path.join("synced").exists());
    has(&Store::open(&path, options()).unwrap(), &model);
    drop(dir);
}

#[test]
fn what_is_old_is_brought_to_the_disk() {
    let mut case = Case::new(1);
    let limits = Relaxed { changes_max: 1_000_000, age_max: Duration::from_millis(20) };
    case.store.relax(Some(limits)).unwrap();
    for _ in 0..5 {
        case.change();
    }
    let model = case.model.clone();
    let last = |case: &mut Case| {
        let disk = case.data();
        let left = case.cut(&disk);
        put_back(left.path(), &mut no_rows).unwrap();
        let count = Store::open(left.path(), options()).unwrap();
        count.read().unwrap().view().entry_count().unwrap()
    };
    // Ends, since no change is made any more.
    while last(&mut case) != 1 + model.len() as u64 {}
}

#[test]
fn a_store_is_put_back_however_often_it_is_killed_meanwhile() {
    let mut case = Case::new(3);
    for _ in 0..30 {
        case.change();
    }
    case.store.relax(at_most(0)).unwrap();
    case.sync();
    let (disk, model) = (case.data(), case.model.clone());
    case.store.relax(at_most(1_000_000)).unwrap();
    for _ in 0..30 {
        case.change();
    }
    let left = case.cut(&disk);
    let kept = fs::read(left.path().join("synced")).unwrap();
    for _ in 0..3 {
        put_back(left.path(), &mut no_rows).unwrap();
        // As if it had been killed before its last step, and with the mark of the one before.
        fs::write(left.path().join("synced"), &kept).unwrap();
        fs::write(left.path().join("unfinished"), "loading\n").unwrap();
        let refused = Store::open(left.path(), options()).map(drop).unwrap_err();
        assert!(matches!(refused, OpenError::CutShort), "{refused}");
    }
    put_back(left.path(), &mut no_rows).unwrap();
    has(&Store::open(left.path(), options()).unwrap(), &model);
    fs::write(left.path().join("synced"), "nothing").unwrap();
    let damaged = Store::open(left.path(), options()).map(drop).unwrap_err();
    assert!(matches!(damaged, OpenError::Damaged { .. } | OpenError::Locked { .. }), "{damaged}");
}
