//! kill -9 at calls of the system, by strace, all through a create and a restore.

use crate::site::{Site, ended};
use crate::state::{State, check, export};
use crate::writers::administrator;
use keyway_tests::{Server, available, finish, nightly};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The calls that change files. Not all are there on every processor.
const CALLS: [&str; 12] = [
    "openat",
    "write",
    "pwrite64",
    "ftruncate",
    "fsync",
    "fdatasync",
    "?rename",
    "?renameat",
    "?mkdir",
    "mkdirat",
    "flock",
    "unlinkat",
];

/// strace before a program.
fn strace(command: &Command, flags: &[&str]) -> Command {
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-e", "signal=none"]).args(flags);
    strace.arg(command.get_program()).args(command.get_args());
    strace
}

/// So many calls, evenly spread over those that a command makes, each with its number among those of its thread.
fn calls(command: &Command, record: &Path, most: usize) -> Vec<(&'static str, usize)> {
    let calls = format!("trace={}", CALLS.join(","));
    let flags = ["-e", &calls, "-o", record.to_str().unwrap()];
    finish(&mut strace(command, &flags), "").expect(0);
    let text = fs::read_to_string(record).unwrap();
    let mut made: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for line in text.lines() {
        let (thread, call) = line.split_once(' ').unwrap();
        let (name, _) = call.trim_start().split_once('(').unwrap_or_default();
        *made.entry((name, thread)).or_default() += 1;
    }
    let mut all = Vec::new();
    for call in CALLS {
        let of = made.iter().filter(|((name, _), _)| *name == call.trim_start_matches('?'));
        let most = of.map(|(_, number)| *number).max().unwrap_or(0);
        all.extend((1..=most).map(|number| (call, number)));
    }
    let chosen = all.len().min(most);
    (0..chosen).map(|number| all[(2 * number + 1) * all.len() / (2 * chosen)]).collect()
}

/// Runs it until that call. Whether it was killed, and did not end before.
fn killed_at(command: &Command, (call, number): (&str, usize)) -> bool {
    let trace = format!("trace={call}");
    let inject = format!("inject={call}:signal=KILL:when={number}");
    let done = finish(&mut strace(command, &["-e", &trace, "-e", &inject, "-o", "/dev/null"]), "");
    // strace ends as what it has started did.
    let is_killed = done.code == -1;
    if !is_killed {
        ended(done).expect(0);
    }
    is_killed
}

fn change(client: &mut keyway_tests::client::Client, number: usize) {
    for person in 0..20 {
        let name = format!("n{number}-{person}");
        let dn = format!("cn={name},ou=Groups,dc=example,dc=com");
        client.add(&dn, &[("objectClass", &["device"]), ("cn", &[&name])]).unwrap();
    }
}

#[test]
fn a_create_that_is_killed_leaves_older_backups_whole_and_the_next_works() {
    if !available(&["strace"]) {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let site = Site::in_folder(place.path());
    let server = Server::start(&site.data, &["--sample", "100"]);
    let mut client = administrator(&server);
    let most = if nightly() { 40 } else { 4 };
    let (mut kills, mut tried) = (0, 0);

    // The first, which makes the repository and its key as well.
    let record = place.path().join("calls");
    let first = calls(&site.create_command(), &record, most);
    for at in first {
        fs::remove_dir_all(&site.repository).unwrap();
        fs::remove_file(&site.key).unwrap();
        kills += usize::from(killed_at(&site.create_command(), at));
        tried += 1;
        let state = export(&site.data);
        site.create();
        site.verify(&[]).expect(0);
        restores(&site, place.path(), &site.list(), &state);
    }

    // Others. A restore of each gives what the directory had then.
    let mut made = BTreeMap::<String, State>::new();
    made.extend(site.list().into_iter().map(|name| (name, export(&site.data))));
    change(&mut client, 0);
    let others = calls(&site.create_command(), &record, most);
    made.extend(site.list().into_iter().last().map(|name| (name, export(&site.data))));
    for (round, at) in others.into_iter().enumerate() {
        change(&mut client, round + 1);
        kills += usize::from(killed_at(&site.create_command(), at));
        tried += 1;
        let state = export(&site.data);
        let listed = site.list();
        let new: Vec<&String> = listed.iter().filter(|name| !made.contains_key(*name)).collect();
        assert!(new.len() <= 1 && listed.len() == made.len() + new.len(), "{at:?}: {listed:?}");
        made.extend(new.into_iter().map(|name| (name.clone(), state.clone())));
        site.verify(&[]).expect(0);
        made.insert(site.create()["backup"].as_str().unwrap().to_owned(), state);
    }
    assert!(server.stop().success());
    site.verify(&[]).expect(0);
    for (name, state) in &made {
        restores(&site, place.path(), std::slice::from_ref(name), state);
    }
    assert!(kills > tried / 2, "{kills} of {tried} were killed");
    eprintln!("creates: {kills} of {tried} were killed, {} backups are whole", made.len());
}

/// Asserts what a restore of each of these gives.
fn restores(site: &Site, place: &Path, names: &[String], state: &State) {
    for name in names {
        let to = place.join("restored");
        site.try_restore(&to, &["--backup", name]).expect(0);
        assert!(export(&to) == *state, "{name}");
        fs::remove_dir_all(&to).unwrap();
    }
}

#[test]
fn a_restore_that_is_killed_leaves_no_folder_or_a_whole_one() {
    if !available(&["strace"]) {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let site = Site::in_folder(place.path());
    let server = Server::start(&site.data, &["--sample", "100"]);
    change(&mut administrator(&server), 0);
    site.create();
    let state = export(&site.data);
    assert!(server.stop().success());
    let to = place.path().join("restored");
    let command = site.restore_command(&to, &[]);
    let chosen = calls(&command, &place.path().join("calls"), if nightly() { 80 } else { 6 });
    let (mut kills, mut whole) = (0, 0);
    let tried = chosen.len();
    for at in chosen {
        fs::remove_dir_all(&to).unwrap();
        kills += usize::from(killed_at(&command, at));
        match to.exists() {
            true => whole += 1,
            false => {
                site.try_restore(&to, &[]).expect(0);
                assert!(!place.path().join(".restored.restoring").exists(), "{at:?}");
            }
        }
        check(&to);
        assert!(export(&to) == state, "{at:?}");
    }
    assert!(kills > tried / 2, "{kills} of {tried} were killed");
    eprintln!("restores: {kills} of {tried} were killed, {whole} had a whole folder by then");
}
