//! The operations of the store in a second: `cargo run --release -p keyway-store --example storing`.
//!
//! One line a figure. People in a two-level tree, each in 57 posting lists: 4 of the store's own,
//! 10 for equality, 6 for presence, the rest for substrings. The data lies below the folder given,
//! or the present one: a file system in memory would make syncs free.

use std::error::Error as StdError;
use std::hint::black_box;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use keyway_store::{Entry, EntryId, Error, Key, Names, Options, Store, Write};

const PEOPLE: u64 = 100_000;
const PEOPLE_PER_JOB: u64 = 10_000;

type Result<T> = std::result::Result<T, Box<dyn StdError>>;

fn main() -> Result<()> {
    let base = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("."), PathBuf::from);
    let dir = tempfile::tempdir_in(base)?;
    let path = dir.path().join("store");
    let store = Store::open(&path, Options { sync: false, ..Options::default() })?;
    bulk(&store)?;
    store.close()?;
    let bytes = std::fs::metadata(path.join("data.mdb"))?.len();
    println!("data file: {} B an entry", bytes / PEOPLE);
    let store = Store::open(&path, Options::default())?;
    for submitters in [1, 32] {
        singles(&store, submitters)?;
    }
    reads(&store)?;
    let start = Instant::now();
    let checked = store.read()?.view().check()?;
    println!("check of {checked:?}: {:.2?}", start.elapsed());
    Ok(())
}

fn bulk(store: &Store) -> Result<()> {
    let start = Instant::now();
    store.write_now(|w| {
        let top = w.insert(EntryId::ROOT, b"dc=example", &Entry::default(), &[])?;
        w.insert(top, b"ou=people", &Entry::default(), &[])
    })?;
    for job in 0..PEOPLE / PEOPLE_PER_JOB {
        store.write_now(move |w| {
            let mut people = job * PEOPLE_PER_JOB..(job + 1) * PEOPLE_PER_JOB;
            people.try_for_each(|n| person(w, n).map(drop))
        })?;
    }
    println!("bulk: {:.0} adds/s", PEOPLE as f64 / start.elapsed().as_secs_f64());
    Ok(())
}

/// Synced single adds, each submitter with one under way.
fn singles(store: &Store, submitters: u64) -> Result<()> {
    let (answer, answers) = channel();
    let first = store.read()?.view().entry_count()?;
    let (mut sent, mut heard) = (0, 0);
    let before = written()?;
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(5) {
        while sent - heard < submitters {
            let (n, answer) = (first + sent, answer.clone());
            store.submit(move |w| person(w, n), move |result| drop(answer.send(result)))?;
            sent += 1;
        }
        answers.recv()??;
        heard += 1;
    }
    println!(
        "single synced adds, {submitters} under way: {:.0} adds/s, {} kB written for each",
        heard as f64 / start.elapsed().as_secs_f64(),
        (written()? - before) / heard / 1000,
    );
    for _ in heard..sent {
        answers.recv()??;
    }
    Ok(())
}

/// Bytes that this process has handed to `write` so far.
fn written() -> Result<u64> {
    let io = std::fs::read_to_string("/proc/self/io")?;
    let line = io.lines().find_map(|line| line.strip_prefix("wchar: "));
    Ok(line.unwrap_or_default().parse()?)
}

fn reads(store: &Store) -> Result<()> {
    const ROUNDS: u64 = 500_000;
    per("begin a read transaction", ROUNDS, || Ok(store.read()?))?;
    let read = store.read()?;
    let view = read.view();
    let mut n = 0;
    let mut next = || {
        n = (n + 7919) % PEOPLE;
        n
    };
    per("get an entry", ROUNDS, || Ok(view.entry(EntryId(next() + 3))?))?;
    let mut last = 2;
    per("get the next entry", ROUNDS, || {
        last = last % PEOPLE + 1;
        Ok(view.entry(EntryId(last))?)
    })?;
    let mut names = Names::new();
    per("get an entry and its name", ROUNDS, || Ok(view.dn(EntryId(next() + 3), &mut names)?))?;
    per("find by name", ROUNDS, || {
        Ok(view.child(EntryId(2), format!("uid=user{}", next()).as_bytes())?)
    })?;
    per("find by a unique value", ROUNDS, || {
        let key = Key::new(b'e', &[b"uid", format!("user{}", next()).as_bytes()]);
        Ok(view.postings(&key, EntryId::ROOT)?.next())
    })?;
    let person = Key::new(b'e', &[b"objectclass", b"person"]);
    per("resume in a long posting list", ROUNDS, || {
        Ok(view.postings(&person, EntryId(next()))?.next())
    })?;
    per("ask a long posting list for one id", ROUNDS, || {
        Ok(view.contains(&person, EntryId(next() + 3))?)
    })?;
    let start = Instant::now();
    let mut ids = 0;
    for _ in 0..10 {
        for id in view.postings(&person, EntryId::ROOT)? {
            black_box(id?);
            ids += 1;
        }
    }
    println!("scan a posting list: {:.1} ns/id", start.elapsed().as_nanos() as f64 / ids as f64);
    Ok(())
}

fn per<T>(what: &str, rounds: u64, mut work: impl FnMut() -> Result<T>) -> Result<()> {
    let start = Instant::now();
    for _ in 0..rounds {
        black_box(work()?);
    }
    println!("{what}: {:.0} ns", start.elapsed().as_nanos() as f64 / rounds as f64);
    Ok(())
}

fn person(write: &mut Write<'_>, n: u64) -> std::result::Result<EntryId, Error> {
    let uid = format!("user{n}");
    let spread = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let surname = format!("name{}", spread >> 50);
    let mail = format!("{uid}@example.com");
    let cn = format!("Given {surname}");
    let telephone = format!("+1 555 {}", spread >> 40);
    let uuid = format!("{spread:016x}{n:016x}");
    let classes = ["top", "person", "organizationalPerson", "inetOrgPerson"];
    let attributes = [
        ("objectClass", classes.to_vec()),
        ("uid", vec![&uid]),
        ("cn", vec![&cn]),
        ("sn", vec![&surname]),
        ("mail", vec![&mail]),
        ("telephoneNumber", vec![&telephone]),
        ("description", vec!["A person who is here so that there is a record"]),
        ("entryUUID", vec![&uuid]),
    ];
    let mut keys = Vec::new();
    for (name, values) in &attributes {
        let name = name.to_lowercase();
        if !matches!(&*name, "description" | "entryuuid") {
            keys.push(Key::new(b'p', &[name.as_bytes()]));
        }
        for value in values.iter().filter(|_| name != "description") {
            let value = value.to_lowercase();
            keys.push(Key::new(b'e', &[name.as_bytes(), value.as_bytes()]));
            if matches!(&*name, "mail" | "cn" | "sn") {
                let grams = value.as_bytes().windows(3);
                keys.extend(grams.map(|gram| Key::new(b'x', &[name.as_bytes(), gram])));
            }
        }
    }
    keys.sort();
    keys.dedup();
    let attributes = attributes.into_iter().map(|(name, values)| {
        (name.to_owned(), values.into_iter().map(|v| v.as_bytes().to_vec()).collect())
    });
    let attributes = attributes.collect();
    let entry = Entry { rdn: format!("uid={uid}"), attributes, ..Entry::default() };
    write.insert(EntryId(2), entry.rdn.as_bytes(), &entry, &keys)
}
