//! A writer that is killed: acknowledged changes are there, and the store is sound.
//!
//! Shows that acknowledging comes after committing. It does not show that the disk was reached:
//! the page cache survives a killed process.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::slice::from_ref;
use std::sync::mpsc::channel;

use keyway_store::{Entry, EntryId, Error, Key, LargeEdit, Options, Store, ValueKey};

const GROUP: &[u8] = b"group";
const MEMBER: &str = "member";
const DIR: &str = "KEYWAY_STORE_TEST_DIR";

/// A change of the group's members: those of these numbers come, and the first of them go.
fn members(numbers: std::ops::Range<u32>, gone: u32) -> LargeEdit {
    let name = |n: u32| format!("member {n}").into_bytes();
    let removed = (numbers.start.saturating_sub(gone)..numbers.start).map(name);
    LargeEdit {
        name: MEMBER.to_owned(),
        removed: removed.map(|name| ValueKey::of(&name)).collect(),
        added: numbers.map(name).map(|name| (ValueKey::of(&name), name)).collect(),
    }
}

fn group(edit: LargeEdit) -> Entry {
    Entry { rdn: "cn=group".into(), large: vec![edit], ..Entry::default() }
}

/// Adds entries without end, deletes every third, and says so when it is told that it is done. With
/// each, one member of a large group comes and every second time one goes.
/// Does nothing unless the test below has started it.
#[test]
fn the_writer_that_is_killed() {
    let Some(dir) = env::var_os(DIR) else { return };
    let store = Store::open(Path::new(&dir), Options::default()).unwrap();
    let made =
        store.write_now(|w| w.insert(EntryId::ROOT, GROUP, &group(members(0..5000, 0)), &[]));
    let first = match made {
        Err(Error::Exists) => u32::MAX / 2,
        made => made.map(|_| 5000).unwrap(),
    };
    let (slot, slots) = channel();
    for n in 0u32.. {
        // So many under way at one time.
        if n >= 16 {
            slots.recv().unwrap();
        }
        let slot = slot.clone();
        let name = format!("{}-{n}", std::process::id());
        let said = name.clone();
        let key = Key::new(b'e', &[b"n", name.as_bytes()]);
        let job = move |w: &mut keyway_store::Write<'_>| {
            let entry = Entry { rdn: name.clone(), attributes: vec![], ..Entry::default() };
            let id = w.insert(EntryId::ROOT, name.as_bytes(), &entry, from_ref(&key))?;
            if n % 3 == 0 {
                w.delete(id, name.as_bytes(), from_ref(&key))?;
            }
            let of = w.view().child(EntryId::ROOT, GROUP)?.unwrap();
            w.update(of, &group(members(first + n..first + n + 1, n % 2)), &[], &[])?;
            Ok::<_, Error>(id)
        };
        store
            .submit(job, move |result| {
                let what = if n % 3 == 0 { "deleted" } else { "added" };
                // To the descriptor itself: the test harness would keep what is printed.
                let line = format!("\n{what} {said} {}\n", result.unwrap());
                std::io::stderr().write_all(line.as_bytes()).unwrap();
                slot.send(()).unwrap();
            })
            .unwrap();
    }
}

#[test]
fn what_was_acknowledged_survives() {
    let dir = tempfile::tempdir().unwrap();
    let mut acknowledged = Vec::new();
    for round in 1..=3 {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "the_writer_that_is_killed", "--nocapture"])
            .env(DIR, dir.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let mut lines = lines.filter(|l| l.starts_with("added ") || l.starts_with("deleted "));
        acknowledged.extend(lines.by_ref().take(150));
        child.kill().unwrap();
        child.wait().unwrap();
        // The output between the last line and its end counts too; the last line may be cut off.
        let mut rest: Vec<String> = lines.collect();
        rest.pop();
        acknowledged.extend(rest);
        assert!(acknowledged.len() >= round * 150);

        let store = Store::open(dir.path(), Options::default()).unwrap();
        let read = store.read().unwrap();
        read.view().check().unwrap();
        let group = read.view().child(EntryId::ROOT, GROUP).unwrap().unwrap();
        let entry = read.view().entry(group).unwrap().unwrap();
        let large = entry.large().next().unwrap();
        assert!(large.count >= 5000 && large.name == MEMBER);
        let values = read.view().large_values(group, &large).unwrap();
        assert_eq!(values.map(Result::unwrap).count() as u64, large.count);
        for line in &acknowledged {
            let [what, name, id] = line.split(' ').collect::<Vec<_>>().try_into().unwrap();
            let id = EntryId(id.parse().unwrap());
            let found = read.view().child(EntryId::ROOT, name.as_bytes()).unwrap();
            let key = Key::new(b'e', &[b"n", name.as_bytes()]);
            assert_eq!(found, (what == "added").then_some(id), "{line}");
            assert_eq!(read.view().contains(&key, id).unwrap(), what == "added", "{line}");
        }
    }
}
