//! Cuts of power at every moment of a first start, an import, a restore, a snapshot and a rollback to it, a change of
//! password and a renewal of the certificate; and of many writers.
//!
//! The program's calls on its files are recorded with strace. From the record follows what a disk
//! may hold if the power fails before a given call: all that was synced, and any part of the rest.
//! On each such state the program has to start by itself, and what it or the server had said to be
//! done before that moment has to be there. Writes through a mapping are not in the record: LMDB's
//! lock file and the page of counters, of which nothing has to last.

mod disk;
mod record;

use disk::{Disk, Left, Loss};
use keyway_tests::client::Client;
use keyway_tests::{Server, available, finish, keyway, nightly};
use record::Event;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::HashSet;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

/// States of one record that are tried, evenly spread over it where there are more.
const STATES_MAX: usize = 8;
/// With time for more.
const STATES_MAX_NIGHTLY: usize = 30;
/// With time for more, of a record of many writers.
const WRITERS_STATES_MAX_NIGHTLY: usize = 200;
/// Clients that write at once, and how many entries each adds.
const WRITERS: usize = 16;
const ADDED_BY_EACH: usize = 12;
/// Where the data folder is below the root of a record; the first start makes all of them.
const DATA: &str = "a/b/data";
const ADMINISTRATOR: &str = "cn=admin,cn=keyway";
const SUFFIX: &str = "dc=example,dc=com";
const NEW_PASSWORD: &str = "correct horse battery staple";

/// A change that was said to be done.
#[derive(Clone, Debug, PartialEq)]
enum Done {
    /// The server was ready, and had these files: name and text.
    Ready(Vec<(&'static str, String)>),
    /// The entry of this name was added.
    Added(String),
    /// So many entries were imported.
    Imported(usize),
    /// The folder was restored.
    Restored,
    /// The snapshot was made.
    Kept,
    /// It took the store's place.
    RolledBack,
    /// The administrator's password is the new one.
    NewPassword,
}

/// A record that is being made, and what it is made of.
struct Recording {
    place: TempDir,
    before: Disk,
    said: Vec<(u128, Done)>,
}

impl Recording {
    /// A record of what comes after `left`, or after nothing.
    fn new(left: Option<&Left>) -> Recording {
        let place = tempfile::tempdir().unwrap();
        for folder in ["root", "calls"] {
            fs::create_dir(place.path().join(folder)).unwrap();
        }
        if let Some(left) = left {
            left.make(&place.path().join("root"));
        }
        let before = Disk::of(&place.path().join("root"));
        Recording { place, before, said: Vec::new() }
    }

    fn root(&self) -> PathBuf {
        // As the program names it to the system.
        self.place.path().join("root").canonicalize().unwrap()
    }

    fn data(&self) -> PathBuf {
        self.root().join(DATA)
    }

    fn program(&self) -> Command {
        let mut command = record::recorder(&self.place.path().join("calls"));
        command.arg(keyway());
        command
    }

    fn say(&mut self, done: Done) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
        self.said.push((now, done));
    }

    /// Starts a server and waits until it says that it is ready.
    fn start(&mut self, arguments: &[&str]) -> Recorded {
        let mut command = self.program();
        command.args(["up", "--json"]).args(arguments).arg("--data").arg(self.data());
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("strace starts");
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let ready = serde_json::from_str(&line).unwrap_or_else(|why| panic!("{line:?}: {why}"));
        self.say(Done::Ready(lasting(&self.data())));
        Recorded { child, output, ready }
    }

    /// Every state that a cut at any moment may leave, with what had been said by then.
    fn states(&self) -> Vec<State> {
        let mut disk = self.before.clone();
        let mut states = Vec::new();
        let mut seen = HashSet::new();
        let events = record::read(&self.place.path().join("calls"), &self.root());
        assert!(events.len() > 10, "{events:?}");
        let add = |disk: &Disk, next: Option<&Event>, states: &mut Vec<State>, seen: &mut _| {
            let by_then = |at: &u128| next.is_none_or(|next| *at < next.at);
            let said = self.said.iter().filter(|(at, _)| by_then(at));
            let said: Vec<Done> = said.map(|(_, done)| done.clone()).collect();
            for loss in Loss::ALL {
                let left = disk.after(loss);
                let seen: &mut HashSet<_> = seen;
                if seen.insert((left.hash(), said.len())) {
                    let before = format!("{loss:?} is lost before {:.150}", format!("{next:?}"));
                    states.push(State { left, said: said.clone(), before });
                }
            }
        };
        for event in &events {
            add(&disk, Some(event), &mut states, &mut seen);
            disk.apply(&event.change);
        }
        add(&disk, None, &mut states, &mut seen);
        states
    }
}

/// A server whose calls are recorded.
struct Recorded {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
    ready: Value,
}

impl Recorded {
    fn client(&self) -> Client {
        connect(self.ready["ldap"].as_str().unwrap())
    }

    /// kill -9: later writes are not in the record.
    fn kill(self) {}
}

impl Drop for Recorded {
    fn drop(&mut self) {
        let pid = self.ready["pid"].as_i64().and_then(|pid| Pid::from_raw(pid as i32));
        pid.map(|pid| kill_process(pid, Signal::KILL));
        let _ = self.output.read_to_end(&mut Vec::new());
        let _ = self.child.wait();
    }
}

/// A state that a disk may have after a cut.
struct State {
    left: Left,
    said: Vec<Done>,
    before: String,
}

/// Says which state it was, if a test fails on it.
struct Told<'s>(&'s State);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let said =
                self.0.said.iter().map(|done| format!("{done:?}").chars().take(60).collect());
            let said: Vec<String> = said.collect();
            eprintln!("power cut: {}; said by then: {said:?}", self.0.before);
        }
    }
}

/// The files of which a server that was ready has to keep what is in them.
fn lasting(data: &Path) -> Vec<(&'static str, String)> {
    ["version", "keyway.toml", "ca.pem", "server.pem", "admin-password"]
        .map(|name| (name, fs::read_to_string(data.join(name)).unwrap()))
        .to_vec()
}

fn connect(url: &str) -> Client {
    Client::connect(url.trim_start_matches("ldap://").parse().unwrap()).unwrap()
}

fn add(client: &mut Client, name: &str) -> Result<(), String> {
    client.add(&format!("cn={name},{SUFFIX}"), &[("objectClass", &["device"])])
}

/// Starts the program on states from all of a record, and looks for what had been said.
fn try_states(states: &[State]) {
    let most = if nightly() { STATES_MAX_NIGHTLY } else { STATES_MAX };
    try_some(states, most, &["--sample", "2"]);
}

/// So many of the states at most, evenly spread. The last is always among them.
fn spread(states: &[State], most: usize) -> impl Iterator<Item = &State> {
    let chosen = states.len().min(most);
    (1..=chosen).map(move |number| &states[number * states.len() / chosen - 1])
}

/// Tries so many of the states; a first start gets these arguments.
fn try_some(states: &[State], most: usize, first_start: &[&str]) {
    for state in spread(states, most) {
        let told = Told(state);
        let place = tempfile::tempdir().unwrap();
        state.left.make(place.path());
        let data = place.path().join(DATA);
        // Before the server makes anything anew.
        for done in &state.said {
            if let Done::Ready(files) = done {
                for (name, text) in files {
                    let found = fs::read_to_string(data.join(name)).ok();
                    assert_eq!(found.as_ref(), Some(text), "{name}");
                }
            }
        }
        let is_first = !state.said.iter().any(|done| matches!(done, Done::Ready(_)));
        let server = Server::start(&data, if is_first { first_start } else { &[] });
        look_for(&state.said, &server, &data);
        drop(server);
        let mut check = Command::new(keyway());
        check.args(["directory", "check", "--feed", "--json", "--data"]).arg(&data);
        let checked: Value = serde_json::from_str(&finish(&mut check, "").expect(0).out).unwrap();
        // A sample and an import are loads into an empty directory, which the feed leaves out.
        let is_whole = first_start.contains(&"--empty");
        assert_eq!(checked["feed"]["replayed"], is_whole, "{checked}");
        drop(told);
    }
}

fn look_for(said: &[Done], server: &Server, data: &Path) {
    let mut client = connect(server.ldap());
    let password = fs::read_to_string(data.join("admin-password")).unwrap();
    let old = client.bind(ADMINISTRATOR, &password);
    if old.is_err() || said.contains(&Done::NewPassword) {
        old.unwrap_err();
        client.bind(ADMINISTRATOR, NEW_PASSWORD).unwrap();
    }
    for done in said {
        match done {
            Done::Added(name) => {
                assert_eq!(client.search(SUFFIX, "cn", name), Ok(1), "{name}");
                assert_eq!(audited(data, name), 1, "the audit log has {name} once");
            }
            Done::Imported(entries) => {
                assert_eq!(client.search(SUFFIX, "objectClass", "device"), Ok(*entries));
            }
            Done::Ready(_) | Done::Restored | Done::Kept | Done::RolledBack | Done::NewPassword => {
            }
        }
    }
    // It takes changes again.
    if client.search(SUFFIX, "objectClass", "domain") == Ok(1) {
        add(&mut client, "after").unwrap();
    }
}

/// How often the audit log says that an entry was added, once it does.
/// How many sound lines tell of it. A line whose beginning or end was lost has zeros there, and is written once more.
fn audited(data: &Path, name: &str) -> usize {
    let is_sound = |line: &&str| !line.contains('\0');
    let is_it = |line: &&str| {
        is_sound(line) && line.contains(" audit add ") && line.contains(&format!("cn={name},"))
    };
    for _ in 0..500 {
        let text = fs::read(data.join("log/audit.log")).unwrap_or_default();
        let found = String::from_utf8_lossy(&text).lines().filter(is_it).count();
        if found > 0 {
            return found;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    0
}

#[test]
fn a_first_start_a_renewal_and_a_new_password_survive_power_cuts() {
    if !available(&["strace", "ldappasswd"]) {
        return;
    }
    let mut first = Recording::new(None);
    let server = first.start(&["--sample", "2", "--listen", "127.0.0.1:0", "--listen-tls", "off"]);
    let mut client = server.client();
    let password = fs::read_to_string(first.data().join("admin-password")).unwrap();
    client.bind(ADMINISTRATOR, &password).unwrap();
    for name in ["one", "two", "three"] {
        add(&mut client, name).unwrap();
        first.say(Done::Added(name.to_owned()));
    }
    server.kill();
    let states = first.states();
    try_states(&states);

    // Another name, for which the certificate has to be made anew.
    let mut second = Recording::new(states.last().map(|state| &state.left));
    let old = fs::read(second.data().join("server.pem")).unwrap();
    let server = second.start(&[
        "--listen",
        "127.0.0.1:0",
        "--listen-tls",
        "off",
        "--name",
        "ldap.example.com",
    ]);
    assert_ne!(fs::read(second.data().join("server.pem")).unwrap(), old);
    let mut change = Command::new("ldappasswd");
    change.args(["-x", "-ZZ", "-H", server.ready["ldap"].as_str().unwrap()]);
    change.args(["-D", ADMINISTRATOR, "-w", &password, "-s", NEW_PASSWORD]);
    change.env("LDAPTLS_CACERT", second.data().join("ca.pem")).env("LDAPCONF", "/dev/null");
    finish(&mut change, "").expect(0);
    second.say(Done::NewPassword);
    server.kill();
    let added = first.said.iter().filter(|(_, done)| matches!(done, Done::Added(_)));
    let mut states = second.states();
    for state in &mut states {
        state.said.extend(added.clone().map(|(_, done)| done.clone()));
    }
    try_states(&states);
}

/// Entries below the suffix, as a file to import.
fn devices(entries: usize) -> String {
    let mut text = format!("version: 1\n\ndn: {SUFFIX}\nobjectClass: domain\ndc: example\n");
    for number in 0..entries {
        text.push_str(&format!(
            "\ndn: cn=d{number},{SUFFIX}\nobjectClass: device\ncn: d{number}\n"
        ));
    }
    text
}

#[test]
fn an_import_survives_power_cuts() {
    if !available(&["strace"]) {
        return;
    }
    const ENTRIES: usize = 40;
    let mut recording = Recording::new(None);
    let file = recording.place.path().join("all.ldif");
    fs::write(&file, devices(ENTRIES)).unwrap();
    let mut import = recording.program();
    import.args(["directory", "import"]).arg(&file).arg("--data").arg(recording.data());
    finish(&mut import, "").expect(0);
    recording.say(Done::Imported(ENTRIES));
    try_states(&recording.states());
}

/// The folder is whole once it has its name, and a restore that was cut off is in no other's way.
#[test]
fn a_restore_survives_power_cuts() {
    if !available(&["strace"]) {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    let restore = |mut command: Command, to: &Path| {
        command.arg("restore").arg(path("repository")).arg("--key-file").arg(path("key"));
        finish(command.arg("--to").arg(to), "").expect(0);
    };
    fs::write(path("all.ldif"), devices(40)).unwrap();
    let mut import = Command::new(keyway());
    import.args(["directory", "import"]).arg(path("all.ldif"));
    finish(import.arg("--data").arg(path("data")), "").expect(0);
    let mut create = Command::new(keyway());
    create.args(["backup", "create", "--with", "keys,config"]).arg(path("repository"));
    create.arg("--key-file").arg(path("key")).arg("--data").arg(path("data"));
    finish(&mut create, "").expect(0);
    let all = export(&path("data"));

    let mut recording = Recording::new(None);
    fs::create_dir_all(recording.data().parent().unwrap()).unwrap();
    recording.before = Disk::of(&recording.root());
    restore(recording.program(), &recording.data());
    recording.say(Done::Restored);
    let states = recording.states();
    let most = if nightly() { STATES_MAX_NIGHTLY } else { STATES_MAX };
    // Most moments are before it has its name, and the ones behind that are few.
    let is_named = |state: &State| {
        let place = tempfile::tempdir().unwrap();
        state.left.make(place.path());
        place.path().join(DATA).exists()
    };
    let (named, unnamed): (Vec<_>, Vec<_>) = states.into_iter().partition(is_named);
    assert!(!named.is_empty() && !unnamed.is_empty());
    for state in spread(&unnamed, most).chain(spread(&named, most)) {
        let told = Told(state);
        let place = tempfile::tempdir().unwrap();
        state.left.make(place.path());
        let data = place.path().join(DATA);
        if !data.exists() {
            assert!(!state.said.contains(&Done::Restored), "it was said to be there");
            restore(Command::new(keyway()), &data);
        }
        check(&data);
        assert_eq!(export(&data), all);
        drop(told);
    }
}

fn export(data: &Path) -> String {
    let mut export = Command::new(keyway());
    finish(export.args(["directory", "export", "--data"]).arg(data), "").expect(0).out
}

fn check(data: &Path) {
    let mut check = Command::new(keyway());
    finish(check.args(["directory", "check", "--data"]).arg(data), "").expect(0);
}

fn snapshot(mut program: Command, data: &Path, words: &[&str]) -> String {
    finish(program.arg("snapshot").args(words).arg("--data").arg(data), "").expect(0).out
}

/// The names of the snapshots, each of them whole.
fn snapshots(data: &Path) -> Vec<String> {
    let listed = snapshot(Command::new(keyway()), data, &["list", "--json"]);
    let one = |line: &str| serde_json::from_str::<Value>(line).unwrap();
    listed.lines().map(|line| one(line)["snapshot"].as_str().unwrap().to_owned()).collect()
}

/// A snapshot is there whole, or not at all. A rollback was done whole, and the store of before kept, or not at all. What
/// was cut off is in no other's way.
#[test]
fn a_snapshot_and_a_rollback_survive_power_cuts() {
    if !available(&["strace"]) {
        return;
    }
    let most = if nightly() { STATES_MAX_NIGHTLY } else { STATES_MAX };
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("all.ldif"), devices(40)).unwrap();
    let import = |data: &Path, file: &str| {
        let mut import = Command::new(keyway());
        import.args(["directory", "import"]).arg(place.path().join(file));
        finish(import.arg("--data").arg(data), "").expect(0);
    };
    let mut first = Recording::new(None);
    let data = first.data();
    import(&data, "all.ldif");
    first.before = Disk::of(&first.root());
    let old = export(&data);
    snapshot(first.program(), &data, &["create", "s"]);
    first.say(Done::Kept);
    for state in spread(&first.states(), most) {
        let told = Told(state);
        let place = tempfile::tempdir().unwrap();
        state.left.make(place.path());
        let data = place.path().join(DATA);
        let is_there = snapshots(&data) == ["s"];
        assert!(is_there || !state.said.contains(&Done::Kept), "it was said to be there");
        if !is_there {
            snapshot(Command::new(keyway()), &data, &["create", "s"]);
        }
        let found = fs::read_dir(data.join("snapshots")).unwrap();
        assert_eq!(found.count(), 1, "what was cut off is gone");
        snapshot(Command::new(keyway()), &data, &["rollback", "s", "--discard"]);
        assert_eq!((export(&data), snapshots(&data)), (old.clone(), vec!["s".to_owned()]));
        check(&data);
        drop(told);
    }

    let more = "dn: cn=later,dc=example,dc=com\nobjectClass: device\ncn: later\n";
    fs::write(place.path().join("more.ldif"), more).unwrap();
    import(&data, "more.ldif");
    let new = export(&data);
    assert_ne!(old, new);
    let mut second = Recording::new(None);
    fs::create_dir_all(second.data().parent().unwrap()).unwrap();
    fs::rename(&data, second.data()).unwrap();
    second.before = Disk::of(&second.root());
    let store = fs::read(second.data().join("store/data.mdb")).unwrap();
    snapshot(second.program(), &second.data(), &["rollback", "s"]);
    second.say(Done::RolledBack);
    // Most moments are before the two stores change places, and the ones behind that are few.
    let is_done = |state: &State| {
        let place = tempfile::tempdir().unwrap();
        state.left.make(place.path());
        fs::read(place.path().join(DATA).join("store/data.mdb")).unwrap() != store
    };
    let (done, undone): (Vec<_>, Vec<_>) = second.states().into_iter().partition(is_done);
    assert!(!done.is_empty() && !undone.is_empty());
    for (state, is_done) in
        spread(&undone, most).map(|it| (it, false)).chain(spread(&done, most).map(|it| (it, true)))
    {
        let told = Told(state);
        let place = tempfile::tempdir().unwrap();
        state.left.make(place.path());
        let data = place.path().join(DATA);
        assert!(is_done || !state.said.contains(&Done::RolledBack), "it was said to be done");
        assert_eq!(export(&data), *if is_done { &old } else { &new });
        check(&data);
        let kept = snapshots(&data).into_iter().find(|name| name != "s");
        assert!(kept.is_some() || !is_done, "the store of before is kept");
        if let Some(kept) = kept {
            snapshot(Command::new(keyway()), &data, &["rollback", &kept]);
            assert_eq!(export(&data), new);
        }
        snapshot(Command::new(keyway()), &data, &["rollback", "s"]);
        assert_eq!(export(&data), old);
        check(&data);
        drop(told);
    }
}

#[test]
fn many_writers_lose_nothing_and_the_feed_leads_to_what_is_left() {
    if !available(&["strace"]) {
        return;
    }
    let arguments = ["--empty", "--listen", "127.0.0.1:0", "--listen-tls", "off"];
    let mut first = Recording::new(None);
    first.start(&arguments).kill();
    let mut recording = Recording::new(first.states().last().map(|state| &state.left));
    let file = recording.data().join("keyway.toml");
    let text = fs::read_to_string(&file).unwrap();
    let text =
        text.replace("\nnaming_contexts = []", &format!("\nnaming_contexts = [\"{SUFFIX}\"]"));
    assert!(text.contains(&format!("[\"{SUFFIX}\"]")), "{text}");
    fs::write(&file, text).unwrap();
    recording.before = Disk::of(&recording.root());
    let server = recording.start(&arguments);
    let password = fs::read_to_string(recording.data().join("admin-password")).unwrap();
    let bound = || {
        let mut client = server.client();
        client.bind(ADMINISTRATOR, &password).unwrap();
        client
    };
    let top = [("objectClass", ["domain"].as_slice()), ("dc", &["example"])];
    bound().add(SUFFIX, &top).unwrap();
    let said = std::sync::Mutex::new(&mut recording);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (mut client, said) = (bound(), &said);
            scope.spawn(move || {
                for number in 0..ADDED_BY_EACH {
                    let name = format!("w{writer}-{number}");
                    add(&mut client, &name).unwrap();
                    said.lock().unwrap().say(Done::Added(name));
                }
            });
        }
    });
    server.kill();
    let most = if nightly() { WRITERS_STATES_MAX_NIGHTLY } else { STATES_MAX };
    try_some(&recording.states(), most, &["--empty"]);
}
