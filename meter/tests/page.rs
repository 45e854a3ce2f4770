//! The page as another process sees it, and pages that lie.

use keyway_meter::limits::{COUNTERS_MAX, PAGE_BYTES, SHARDS};
use keyway_meter::{Error, Fault, Reader, Snapshot, counter};
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
    println!("\nready");
    // Until the reader closes the pipe.
    let _ = std::io::stdin().read(&mut [0]);
    searches.add(42);
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
    assert_eq!(Snapshot::from_bytes(&fs::read(&path).unwrap()).unwrap(), snapshot);
    assert!(reader.alive());
    assert!(Reader::open(&path).unwrap().alive());

    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"x").unwrap();
    wait_for("more");
    assert_eq!(reader.snapshot().unwrap().value("ldap.search"), Some(4_042));
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
    assert!(write_under("ulimit -f 4096; trap '' XFSZ", &no_room));
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
    for (word, value) in [(1, 1), (2, 4711), (3, 99), (4, COUNTERS_MAX), (5, SHARDS), (6, 2)] {
        set(&mut page, word, value as u64);
    }
    page[64..72].copy_from_slice(b"overflow");
    page[128..137].copy_from_slice(b"ldap.bind");
    let shards = 8 + COUNTERS_MAX * 8;
    set(&mut page, shards + 1, 5);
    set(&mut page, shards + COUNTERS_MAX + 1, 6);
    page
}

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
    assert_eq!(with(1, 2), Fault::OtherVersion { found: 2, ours: 1 });
    for (word, value) in [(2, u64::MAX), (4, 512), (4, u64::MAX), (5, 0), (5, 65), (6, 0)] {
        assert!(matches!(with(word, value), Fault::Damaged(_)), "{word} {value}");
    }
    for used in [3, COUNTERS_MAX as u64, COUNTERS_MAX as u64 + 1, u64::MAX] {
        assert!(matches!(with(6, used), Fault::Damaged(_)), "{used}");
    }
    for byte in [0, b' ', 0x1b, 0x7f, 0xff] {
        assert!(matches!(spoiled(&|page| page[128] = byte), Fault::Damaged(_)), "{byte}");
    }
    assert!(matches!(spoiled(&|page| page[150] = b'x'), Fault::Damaged(_)));
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
        spoils in proptest::collection::vec((0..16usize, prop_oneof![
            any::<u64>(), 0..2048u64, Just(u64::MAX)
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
            for (name, _) in snapshot.counters {
                prop_assert!(name.bytes().all(|byte| byte.is_ascii_graphic()));
            }
        }
    }
}
