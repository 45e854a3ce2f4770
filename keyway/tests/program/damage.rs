//! Stores whose data file the disk has spoilt: nothing dies of them, and what can be read is saved.

use crate::support::{Finished, KEYWAY, Running, finish, installed, keyway, keyway_with, nightly};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const PAGE_BYTES: u64 = 4096;

/// A number that looks random and is the same in every run.
struct Seed(u64);

impl Seed {
    fn next(&mut self) -> u64 {
        // xorshift64
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// A stopped server's folder with people in it, and what an export of it says.
struct Sample {
    _place: tempfile::TempDir,
    data: PathBuf,
    sound: Vec<u8>,
    ldif: String,
}

impl Sample {
    fn new(people: &str) -> Sample {
        let place = tempfile::tempdir().unwrap();
        let data = place.path().join("data");
        Running::start(&data, &["--sample", people]).stop();
        let sound = fs::read(data.join("store/data.mdb")).unwrap();
        let ldif = directory(&data, &["export"]).well().out.to_lowercase();
        Sample { _place: place, data, sound, ldif }
    }

    /// The data file as it was, but for these bytes.
    fn spoil(&self, at: u64, bytes: &[u8]) {
        let path = self.data.join("store/data.mdb");
        fs::write(&path, &self.sound).unwrap();
        File::options().write(true).open(path).unwrap().write_all_at(bytes, at).unwrap();
    }

    fn pages(&self) -> u64 {
        self.sound.len() as u64 / PAGE_BYTES
    }
}

fn directory(data: &Path, arguments: &[&str]) -> Finished {
    keyway(["directory"].iter().chain(arguments).chain(&["--data", data.to_str().unwrap()]))
}

/// Records of an LDIF file, without comments.
fn records(ldif: &str) -> BTreeSet<&str> {
    ldif.split("\n\n").map(str::trim).filter(|record| record.starts_with("dn:")).collect()
}

/// A start that ends as soon as it is ready: nothing can be written to it by then.
fn up(data: &Path) -> Finished {
    let mut command = Command::new("timeout");
    command.args(["-s", "TERM", "60", "sh", "-c"]);
    command.arg(
        ": > \"$2/said\"; \"$1\" up --json --listen 127.0.0.1:0 --listen-tls off --data \"$2\" > \"$2/said\" & \
         until grep -q ready \"$2/said\" || ! kill -0 $! 2> /dev/null; do :; done; \
         kill $! 2> /dev/null; wait $!; code=$?; grep '\"failed\"' \"$2/said\" >&2; exit $code",
    );
    finish(command.arg("sh").arg(KEYWAY).arg(data), "")
}

/// Nothing was killed: an exit status of its own, and a word about it if it is not 0.
fn is_an_answer(done: &Finished) -> bool {
    let says_so = done.err.contains("keyway: ") || done.err.contains("\"event\":\"failed\"");
    done.code == Some(0) || (done.code == Some(1) && says_so)
}

/// Spoils a store at so many places, one at a time. Returns how many of them are told by `check`
/// and by `up`.
fn spoil_and_try(sample: &Sample, places: u64, seed: u64) -> (u64, u64) {
    let mut seed = Seed(seed);
    let (mut checked, mut refused) = (0, 0);
    for place in 0..places {
        let page = place * sample.pages() / places;
        // Each field of a page's head, the places of its rows, and what is in it.
        let within = [0, 10, 12, 14, 16, 17, 24, 16 + seed.next() % (PAGE_BYTES - 24)];
        let at = page * PAGE_BYTES + within[(place % within.len() as u64) as usize];
        let bytes = seed.next().to_ne_bytes();
        let bytes = &bytes[..1 + (seed.next() % 8) as usize];
        sample.spoil(at, bytes);
        let shown = format!("{} bytes at {at} (page {page})", bytes.len());

        let export = directory(&sample.data, &["export", "--continue"]);
        assert!(is_an_answer(&export), "{shown}: {:?} {}", export.code, export.err);
        // A name that was lost comes back in its normal form.
        let out = export.out.to_lowercase();
        let (whole, got) = (records(&sample.ldif), records(&out));
        let lost = whole.difference(&got).count();
        // An entry has less than a page, so that a page cannot have more than these.
        assert!(lost <= 24, "{shown}: {lost} entries are lost: {}", export.err);
        let unsure = export.err.contains("how many more there should be");
        let says_so = export.code == Some(1);
        assert!(says_so == (lost > 0) || unsure, "{shown}: {lost} lost: {}", export.err);

        let check = directory(&sample.data, &["check"]);
        assert!(is_an_answer(&check), "{shown}: {:?} {}", check.code, check.err);
        checked += u64::from(check.code == Some(1));
        if lost > 0 {
            assert_eq!(check.code, Some(1), "{shown}: lost entries are not noticed");
        }
        let up = up(&sample.data);
        assert!(is_an_answer(&up), "{shown}: {:?} {}", up.code, up.err);
        refused += u64::from(up.code == Some(1));
        if up.code == Some(1) {
            assert_eq!(check.code, Some(1), "{shown}: {}", up.err);
        }
    }
    (checked, refused)
}

#[test]
fn whatever_is_spoilt_nothing_dies_of_it() {
    let sample = Sample::new("100");
    let (checked, refused) = spoil_and_try(&sample, 16, 0x5EED);
    assert!(checked >= 4 && refused >= 4, "{checked} are found by a check, {refused} at a start");
}

/// As above, at hundreds of places, by `cargo xtask nightly`.
#[test]
fn whatever_is_spoilt_at_hundreds_of_places() {
    if !nightly() {
        return;
    }
    let sample = Sample::new("300");
    let places = 400;
    let (checked, refused) = spoil_and_try(&sample, places, 0xDA7A);
    eprintln!("{places} places: a check finds {checked}, a start refuses {refused}");
}

#[test]
fn a_spoilt_page_is_named_and_what_to_do() {
    let sample = Sample::new("100");
    // A leaf of the entries: nothing else has the people's attributes by name. Some are of an earlier
    // state, and free.
    let is_leaf =
        |page: &[u8]| page[10] == 2 && page.windows(11).any(|bytes| bytes == b"entryUUID\x01\x24");
    let pages = (0..).zip(sample.sound.chunks(PAGE_BYTES as usize));
    let leaves: Vec<u64> = pages.filter(|(_, page)| is_leaf(page)).map(|(at, _)| at).collect();
    let is_used = |page: &&u64| {
        sample.spoil(**page * PAGE_BYTES + 10, &[1]);
        directory(&sample.data, &["check"]).code != Some(0)
    };
    let page = *leaves.iter().rev().find(is_used).unwrap();
    let named = format!("page {page} (byte {} of the data file) of table \"entry\"", page * 4096);
    let data = sample.data.to_str().unwrap().to_owned();
    let todo = ["`keyway directory check --data", "export --continue FILE --data", &data];
    let arguments = ["up", "--listen", "127.0.0.1:0", "--listen-tls", "off", "--data", &data];
    keyway(arguments).refused(1, &[&named, todo[0], todo[1], todo[2]]);
    directory(&sample.data, &["export"]).refused(1, &[&named, todo[1]]);
    let check = directory(&sample.data, &["check"]);
    assert_eq!(check.code, Some(1));
    assert!(check.err.contains(&named) && check.err.contains("at 1 places"), "{}", check.err);
    let check = directory(&sample.data, &["check", "--json"]);
    assert_eq!((check.code, &check.json()["sound"]), (Some(1), &Value::Bool(false)));
    assert_eq!(check.json()["damage"][0]["page"], page);

    // Only the page's head is spoilt: its entries are there by their checksums.
    let export = directory(&sample.data, &["export", "--continue"]).well();
    assert_eq!(records(&export.out.to_lowercase()), records(&sample.ldif));
    // All of the page: its entries are named by the tree.
    sample.spoil(page * PAGE_BYTES, &[0; PAGE_BYTES as usize]);
    let file = sample.data.join("rest.ldif");
    let arguments = ["export", "--continue", "--json", file.to_str().unwrap()];
    let export = directory(&sample.data, &arguments);
    let said = export.json();
    assert_eq!((export.code, &said["whole"]), (Some(1), &Value::Bool(false)), "{said}");
    let lost = said["lost_entries"].as_array().unwrap();
    assert!(!lost.is_empty() && said["lost_without_trace"] == 0, "{said}");
    assert!(lost.iter().all(|lost| lost["dn"].as_str().unwrap().contains('=')), "{said}");
    let written = fs::read_to_string(&file).unwrap().to_lowercase();
    let whole = records(&sample.ldif);
    let rest = records(&written);
    assert!(rest.is_subset(&whole) && rest.len() + lost.len() == whole.len(), "{said}");
    assert!(written.contains(&format!("# lost: entry {}, ", lost[0]["id"])), "{written}");
}

/// One entry's bytes are spoilt: a client that asks for it is told so, and others are served.
#[test]
fn a_spoilt_entry_is_an_error_of_its_own_and_in_the_log() {
    if !installed("ldapsearch") {
        return;
    }
    let sample = Sample::new("100");
    let mut data = sample.sound.clone();
    // Behind the name stands how many values there are, and how long this one is.
    let record: Vec<usize> = places(&data, b"uid\x01\x0aanna.weber").collect();
    assert!(!record.is_empty());
    record.iter().for_each(|at| data[at + 6] ^= 1);
    fs::write(sample.data.join("store/data.mdb"), data).unwrap();
    let running = Running::start(&sample.data, &[]);
    let search = |base: &str, filter: &str| {
        let mut command = Command::new("ldapsearch");
        command.args(["-x", "-LLL", "-H", running.text("ldap")]);
        command.args(["-D", running.text("administrator")]);
        command.args([
            "-y",
            running.text("administrator_password_file"),
            "-b",
            base,
            filter,
            "1.1",
        ]);
        finish(command.env("LDAPCONF", "/dev/null"), "")
    };
    let (people, dn) =
        ("ou=People,dc=example,dc=com", "uid=anna.weber,ou=People,dc=example,dc=com");
    let found = search(dn, "objectClass=*");
    assert_eq!(found.code, Some(80), "{}", found.err);
    assert!(found.err.contains("the store is damaged: entry "), "{}", found.err);
    let found = search(people, "uid=jan.mueller").well();
    assert!(found.out.contains("uid=jan.mueller"), "{}", found.out);
    running.stop();
    let log = fs::read_to_string(sample.data.join("log/error.log")).unwrap();
    let line = log.lines().find(|line| line.contains("the store is damaged: entry ")).expect(&log);
    assert!(line.contains(" error search ") && line.contains(dn), "{line}");
    let check = directory(&sample.data, &["check"]);
    check.refused(1, &["entry ", "its checksum is wrong", "export --continue"]);
}

fn places<'a>(data: &'a [u8], wanted: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    data.windows(wanted.len()).enumerate().filter(move |(_, at)| *at == wanted).map(|(at, _)| at)
}

/// A store that may not grow any more says which setting makes it.
#[test]
fn a_full_store_names_the_setting() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    Running::start(&data, &["--sample", "0"]).stop();
    let file = data.join("keyway.toml");
    let text = fs::read_to_string(&file).unwrap();
    let small = text.replace("store_bytes_max = 274877906944", "store_bytes_max = 1048576");
    assert_ne!(small, text);
    fs::write(&file, small).unwrap();
    let mut ldif = "dn: o=x\nobjectClass: organization\no: x\n\n".to_owned();
    for n in 0..2000 {
        ldif.push_str(&format!(
            "dn: ou={n},o=x\nobjectClass: organizationalUnit\nou: {n}\ndescription: {}\n\n",
            "filled ".repeat(200)
        ));
    }
    let full = keyway_with(["directory", "import", "-", "--data", data.to_str().unwrap()], &ldif);
    full.refused(1, &["store is full", "1048576 bytes", "store_bytes_max in keyway.toml"]);
}

/// The process that reads the store gets the signal that a failed assertion of LMDB gives, when it opens the
/// configuration.
#[test]
fn a_check_whose_process_is_killed_says_by_which_signal_and_what_to_do() {
    if !installed("strace") {
        return;
    }
    let sample = Sample::new("3");
    let data = sample.data.to_str().unwrap();
    let check = |arguments: &[&str]| {
        let mut strace = Command::new("strace");
        strace.args(["-f", "-o", "/dev/null", "-P"]).arg(sample.data.join("keyway.toml"));
        strace.args(["-e", "inject=openat:signal=ABRT", KEYWAY, "directory", "check"]);
        finish(strace.args(arguments).args(["--data", data]), "")
    };
    let parts = ["(SIGABRT), before the first row", "export --continue FILE --data", data];
    check(&[]).refused(1, &parts);
    let said = check(&["--json"]);
    assert_eq!((said.code, &said.json()["sound"]), (Some(1), &Value::Bool(false)));
    assert!(said.json()["why"].as_str().unwrap().contains(parts[0]), "{}", said.out);
}
