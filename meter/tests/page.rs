//! The page as another process sees it, and pages that lie.

use keyway_meter::limits::{
    COUNTERS_MAX, HISTOGRAM_BUCKETS, HISTOGRAMS_MAX, NAME_BYTES_MAX, PAGE_BYTES, SHARDS,
};
use keyway_meter::{Error, Fault, Reader, Snapshot, counter, histogram};
use proptest::prelude::*;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Set in the environment of the process that plays the writer: the path of its page.
const WRITER: &str = "KEYWAY_METER_TEST_PAGE";

/// Plays the other process when [`WRITER`] is set; the tests below start it.
#[test]
fn writer() {
    let Some(path) = std::env::var_os(WRITER) else { return };
    keyway_meter::open(Some(Path::new(&path))).unwrap();
    assert!(matches!(keyway_meter::open(Some(Path::new(&path))), Err(Error::AlreadyOpen)));
    assert!(matches!(keyway_meter::open(None), Err(Error::AlreadyOpen)));
    let searches = counter("ldap.search");
    let add = || (0..1_000).for_each(|_| searches.increment());
    std::thread::scope(|scope| {
        (0..4).for_each(|_| {
            scope.spawn(add);
        });
    });
    counter("ldap.bytes_in").add(u64::from(u32::MAX) + 7);
    let run = histogram("engine.software.sha-256.run");
    (1..=100).for_each(|value| run.record(value));
    println!("\nready");
    // Until the reader closes the pipe.
    let _ = std::io::stdin().read(&mut [0]);
    searches.add(42);
    run.record(9_000);
    println!("\nmore");
    let _ = std::io::stdin().read(&mut [0]);
}

fn start_writer(path: &Path) -> (Child, impl FnMut(&str)) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "writer", "--nocapture", "--test-threads=1"])
        .env(WRITER, path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let wait_for = move |line: &str| {
        assert!(lines.any(|seen| seen.unwrap() == line), "the writer ended before {line:?}");
    };
    (child, wait_for)
}

#[test]
fn another_process_sees_what_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("meter");
    fs::write(&path, "left by an earlier process").unwrap();
    let (mut child, mut wait_for) = start_writer(&path);
    wait_for("ready");

    let metadata = fs::metadata(&path).unwrap();
    assert_eq!(metadata.len(), PAGE_BYTES as u64);
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);

    let reader = Reader::open(&path).unwrap();
    let snapshot = reader.snapshot().unwrap();
    assert_eq!(snapshot.pid, child.id());
    let names: Vec<_> = snapshot.counters.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["overflow", "ldap.search", "ldap.bytes_in"]);
    assert_eq!(snapshot.value("ldap.search"), Some(4_000));
    assert_eq!(snapshot.value("ldap.bytes_in"), Some(u64::from(u32::MAX) + 7));
    assert_eq!(snapshot.value("ldap.bind"), None);
    let names: Vec<_> = snapshot.histograms.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["overflow", "engine.software.sha-256.run"]);
    let run = snapshot.histogram("engine.software.sha-256.run").unwrap();
    assert_eq!((run.count, run.sum, run.min, run.max), (100, 5_050, 1, 100));
    assert_eq!((run.mean(), run.percentile(50.0)), (50.5, 51));
    assert_eq!(Snapshot::from_bytes(&fs::read(&path).unwrap()).unwrap(), snapshot);
    assert!(reader.alive());
    assert!(Reader::open(&path).unwrap().alive());

    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"x").unwrap();
    wait_for("more");
    assert_eq!(reader.snapshot().unwrap().value("ldap.search"), Some(4_042));
    let between = reader.snapshot().unwrap().since(&snapshot);
    assert_eq!(between.pid, child.id());
    assert_eq!((between.value("ldap.search"), between.value("ldap.bytes_in")), (Some(42), Some(0)));
    let run = between.histogram("engine.software.sha-256.run").unwrap();
    assert_eq!((run.count, run.sum, run.percentile(1.0), run.max), (1, 9_000, 9_000, 9_000));
    assert!(reader.alive());

    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!reader.alive());
    assert_eq!(reader.snapshot().unwrap().value("ldap.search"), Some(4_042));
}

#[test]
fn a_page_that_cannot_be_created_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let error = keyway_meter::open(Some(&folder.path().join("missing/meter"))).unwrap_err();
    assert!(matches!(&error, Error::System { source, .. }
        if source.kind() == std::io::ErrorKind::NotFound));
    assert!(error.to_string().contains("missing/meter"), "{error}");
    // A folder in the page's place.
    let taken = folder.path().join("taken");
    fs::create_dir_all(taken.join("in-the-way")).unwrap();
    assert!(!write_under(":", &taken));
    // No room for the whole page, as a limit on the size of files plays it.
    let no_room = folder.path().join("no-room");
    assert!(!write_under("ulimit -f 64; trap '' XFSZ", &no_room));
    assert!(!no_room.exists());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "a draft was left behind");
    // The same with room for it succeeds.
    assert!(write_under("ulimit -f 16384; trap '' XFSZ", &no_room));
}

/// Runs the writer from a shell after `setting`; says whether it succeeded.
fn write_under(setting: &str, path: &Path) -> bool {
    Command::new("sh")
        .args(["-c", &format!("{setting}; exec \"$0\" --exact writer")])
        .arg(std::env::current_exe().unwrap())
        .env(WRITER, path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap()
        .success()
}

/// A page as a process that counted a little leaves it.
fn sound_page() -> Vec<u8> {
    let mut page = vec![0; PAGE_BYTES];
    page[..8].copy_from_slice(b"KW meter");
    let dimensions = [(4, COUNTERS_MAX), (5, SHARDS), (6, HISTOGRAMS_MAX), (7, HISTOGRAM_BUCKETS)];
    for (word, value) in [(1, 2), (2, 4711), (3, 99), (8, 2), (9, 2)].into_iter().chain(dimensions)
    {
        set(&mut page, word, value as u64);
    }
    page[NAMES..NAMES + 8].copy_from_slice(b"overflow");
    page[NAMES + NAME_BYTES_MAX..NAMES + NAME_BYTES_MAX + 9].copy_from_slice(b"ldap.bind");
    set(&mut page, SHARDS_AT / 8 + 1, 5);
    set(&mut page, SHARDS_AT / 8 + COUNTERS_MAX + 1, 6);
    let names = HISTOGRAM_NAMES;
    page[names..names + 8].copy_from_slice(b"overflow");
    page[names + NAME_BYTES_MAX..names + NAME_BYTES_MAX + 14].copy_from_slice(b"engine.x.y.run");
    let cells = SECOND_HISTOGRAM / 8;
    // 5, 5 and 100.
    for (word, value) in [(0, 110), (1, !5), (2, 100), (8 + 5, 2), (8 + 4 * 8 + 4, 1)] {
        set(&mut page, cells + word, value);
    }
    page
}

// Where a page's parts begin, in bytes.
const NAMES: usize = 128;
const SHARDS_AT: usize = NAMES + COUNTERS_MAX * NAME_BYTES_MAX;
const HISTOGRAM_NAMES: usize = SHARDS_AT + SHARDS * COUNTERS_MAX * 8;
const SECOND_HISTOGRAM: usize =
    HISTOGRAM_NAMES + HISTOGRAMS_MAX * NAME_BYTES_MAX + 64 + HISTOGRAM_BUCKETS * 8;

fn set(page: &mut [u8], word: usize, value: u64) {
    page[8 * word..8 * word + 8].copy_from_slice(&value.to_ne_bytes());
}

/// Reads it both ways, from bytes and through a mapping, which must agree.
fn read(page: &[u8]) -> Result<Snapshot, Fault> {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), page).unwrap();
    let mapped = match Reader::open(file.path()) {
        Ok(reader) => Ok(reader.snapshot().unwrap()),
        Err(Error::Page { fault, .. }) => Err(fault),
        Err(other) => panic!("{other}"),
    };
    assert_eq!(Snapshot::from_bytes(page), mapped);
    mapped
}

#[test]
fn a_sound_page_reads() {
    let snapshot = read(&sound_page()).unwrap();
    assert_eq!((snapshot.pid, snapshot.started_unix_ms), (4711, 99));
    assert_eq!(snapshot.counters, [("overflow".into(), 0), ("ldap.bind".into(), 11)]);
    let names: Vec<_> = snapshot.histograms.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["overflow", "engine.x.y.run"]);
    let run = snapshot.histogram("engine.x.y.run").unwrap();
    assert_eq!((run.count, run.sum, run.min, run.max), (3, 110, 5, 100));
    assert_eq!((run.percentile(60.0), run.percentile(67.0)), (5, 100));
}

#[test]
fn values_that_lie_are_told_without_nonsense() {
    let with = |spoils: &[(usize, u64)]| {
        let mut page = sound_page();
        for (word, value) in spoils {
            set(&mut page, SECOND_HISTOGRAM / 8 + word, *value);
        }
        read(&page).unwrap().histogram("engine.x.y.run").unwrap().clone()
    };
    let all = u64::MAX;
    let lies: [&[(usize, u64)]; 7] = [
        &[(2, 0)],
        &[(1, 0)],
        &[(0, all), (1, 0), (2, 7)],
        &[(8, all), (9, all), (300, all)],
        &[(0, 0), (2, 1_000_000)],
        &[(8 + HISTOGRAM_BUCKETS - 1, 1)],
        &[(8 + 5, 0), (8 + 36, 0), (2, all)],
    ];
    for lie in lies {
        let values = with(lie);
        assert!(values.min <= values.max, "{lie:?}");
        for percent in [-1.0, 0.0, 50.0, 100.0, 1e9, f64::NAN, f64::INFINITY] {
            let percentile = values.percentile(percent);
            assert!((values.min..=values.max).contains(&percentile), "{lie:?}");
        }
        assert!((values.min as f64..=values.max as f64).contains(&values.mean()), "{lie:?}");
        for other in lies.map(with) {
            let between = values.since(&other);
            assert!((between.min..=between.max).contains(&between.percentile(50.0)), "{lie:?}");
        }
    }
    assert_eq!(with(&[(8 + 5, 0), (8 + 36, 0)]).max, 0);
}

#[test]
fn a_page_that_lies_is_an_error() {
    let spoiled = |spoil: &dyn Fn(&mut Vec<u8>)| {
        let mut page = sound_page();
        spoil(&mut page);
        read(&page).unwrap_err()
    };
    let with = |word, value| spoiled(&|page| set(page, word, value));
    assert_eq!(with(0, 0), Fault::NotAPage);
    for found in [1, 3] {
        assert_eq!(with(1, found), Fault::OtherVersion { found, ours: 2 });
    }
    let dimensions = [(4, 512), (4, u64::MAX), (5, 0), (5, 65), (6, 0), (7, 313)];
    for (word, value) in [(2, u64::MAX), (8, 0), (9, 0)].into_iter().chain(dimensions) {
        assert!(matches!(with(word, value), Fault::Damaged(_)), "{word} {value}");
    }
    for (word, max) in [(8, COUNTERS_MAX as u64), (9, HISTOGRAMS_MAX as u64)] {
        for used in [3, max, max + 1, u64::MAX] {
            assert!(matches!(with(word, used), Fault::Damaged(_)), "{word} {used}");
        }
    }
    for name in [NAMES, HISTOGRAM_NAMES] {
        for byte in [0, b' ', 0x1b, 0x7f, 0xff] {
            assert!(matches!(spoiled(&|page| page[name] = byte), Fault::Damaged(_)), "{byte}");
        }
        assert!(matches!(spoiled(&|page| page[name + 40] = b'x'), Fault::Damaged(_)));
    }
    assert!(matches!(spoiled(&|page| page.truncate(PAGE_BYTES - 1)), Fault::Damaged(_)));
    assert!(matches!(spoiled(&|page| page.truncate(4096)), Fault::Damaged(_)));
    for length in [0, 1, 7] {
        assert_eq!(spoiled(&|page| page.truncate(length)), Fault::NotAPage);
    }
}

#[test]
fn a_file_that_shrinks_or_is_none_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("meter");
    fs::write(&path, sound_page()).unwrap();
    let reader = Reader::open(&path).unwrap();
    assert!(!reader.alive());
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(64).unwrap();
    assert!(matches!(reader.snapshot(), Err(Error::Page { fault: Fault::Damaged(_), .. })));
    assert!(matches!(
        Reader::open(folder.path()),
        Err(Error::Page { fault: Fault::NotAPage, .. } | Error::System { .. })
    ));
    assert!(matches!(Reader::open(&folder.path().join("none")), Err(Error::System { .. })));
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert!(matches!(Reader::open(&pipe), Err(Error::Page { fault: Fault::NotAPage, .. })));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn noise_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..4096)) {
        prop_assert!(Snapshot::from_bytes(&bytes).is_err());
    }

    #[test]
    fn a_spoiled_header_or_directory_never_panics(
        spoils in proptest::collection::vec((0..48usize, prop_oneof![
            any::<u64>(), 0..8192u64, Just(u64::MAX)
        ]), 1..4),
        length in prop_oneof![Just(PAGE_BYTES), 0..PAGE_BYTES],
    ) {
        let mut page = sound_page();
        for (word, value) in spoils {
            set(&mut page, word, value);
        }
        page.truncate(length);
        if let Ok(snapshot) = read(&page) {
            prop_assert!(length == PAGE_BYTES && snapshot.counters.len() <= COUNTERS_MAX);
            let histograms = snapshot.histograms.into_iter().map(|(name, _)| name);
            for name in snapshot.counters.into_iter().map(|(name, _)| name).chain(histograms) {
                prop_assert!(name.bytes().all(|byte| byte.is_ascii_graphic()));
            }
        }
    }
}
