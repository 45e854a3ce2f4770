//! Encrypted backups: made beside a server that goes on writing, verified, and restored to a server; to any position;
//! and what goes wrong with them.

use keyway_tests::cryptod::eventually;
use keyway_tests::{Finished, Server, available, finish, keyway, sample};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use tempfile::TempDir;

const BASE: &str = "dc=example,dc=com";
const TOOLS: [&str; 3] = ["ldapmodify", "ldapsearch", "ldapdelete"];
const WRITERS: usize = 4;

/// A repository, and the folder that it is made of.
struct Backups {
    place: TempDir,
    data: PathBuf,
}

impl Backups {
    fn of(place: TempDir) -> Backups {
        let data = place.path().join("data");
        Backups { place, data }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn command(&self, words: &[&str], flags: &[&str]) -> Command {
        let mut command = Command::new(keyway());
        command.args(words).arg(self.path("repository"));
        command.arg("--key-file").arg(self.path("backup.key")).args(flags);
        command
    }

    fn ask(&self, words: &[&str], flags: &[&str]) -> Finished {
        finish(&mut self.command(words, flags), "")
    }

    fn create(&self, flags: &[&str]) -> Finished {
        let mut create = self.command(&["backup", "create"], flags);
        finish(create.arg("--json").arg("--data").arg(&self.data), "")
    }

    fn restore(&self, to: &str, flags: &[&str]) -> Finished {
        let mut restore = self.command(&["restore"], flags);
        finish(restore.arg("--json").arg("--to").arg(self.path(to)), "")
    }
}

fn json(finished: &Finished) -> Value {
    let line = finished.out.lines().last().unwrap_or_default();
    serde_json::from_str(line)
        .unwrap_or_else(|why| panic!("{}{}: {why}", finished.out, finished.err))
}

fn export(data: &Path) -> String {
    let mut export = Command::new(keyway());
    finish(export.args(["directory", "export", "--data"]).arg(data), "").expect(0).out
}

fn check(data: &Path) {
    let mut check = Command::new(keyway());
    finish(check.args(["directory", "check", "--data"]).arg(data), "").expect(0);
}

fn group(name: &str) -> String {
    format!(
        "dn: cn={name},ou=Groups,{BASE}\nchangetype: add\nobjectClass: organizationalRole\ncn: {name}\n\n"
    )
}

fn add(server: &Server, name: &str) {
    finish(&mut server.admin_tool("ldapmodify"), &group(name)).expect(0);
}

#[test]
fn five_commands_from_nothing_to_a_restored_server() {
    if !available(&TOOLS) {
        return;
    }
    let (place, server) = sample(50);
    let backups = Backups::of(place);
    add(&server, "first");
    let made = json(&backups.create(&["--with", "keys,config"]).expect(0));
    assert_eq!(made["key_file"], backups.path("backup.key").to_str().unwrap(), "{made}");
    let all = export(&backups.data);
    add(&server, "second");
    let listed = json(&backups.ask(&["backup", "list"], &["--json"]).expect(0));
    assert_eq!((&listed["backup"], &listed["entries"]), (&made["backup"], &made["entries"]));
    let scratch = backups.place.path().to_str().unwrap();
    let verify = ["--restore", "--scratch", scratch, "--json"];
    let verified = json(&backups.ask(&["backup", "verify"], &verify).expect(0));
    assert_eq!((&verified["sound"], &verified["lacks"]), (&true.into(), &serde_json::json!([])));
    assert_eq!(verified["restored"], made["backup"]);
    let restored = json(&backups.restore("restored", &[]).expect(0));
    assert_eq!(restored["entries"], made["entries"]);
    let password = server.password();
    let own = fs::read(backups.data.join("ca.pem")).unwrap();
    assert!(server.stop().success());

    let folder = backups.path("restored");
    assert_eq!(export(&folder), all);
    check(&folder);
    let again = Server::start(&folder, &[]);
    assert_eq!((again.password(), fs::read(folder.join("ca.pem")).unwrap()), (password, own));
    let search = ["-LLL", "-b", BASE, "(cn=first)", "dn"];
    let found = finish(again.admin_tool("ldapsearch").args(search), "").expect(0);
    assert!(found.out.contains("cn=first,"), "{}", found.out);
    add(&again, "third");
    assert!(again.stop().success());
    // Its store is another one, and its feed goes on.
    let second = Backups { place: backups.place, data: folder };
    let third = json(&second.create(&[]).expect(0));
    let shown = json(&second.ask(&["backup", "show"], &["--json"]).expect(0));
    assert_eq!(shown["epoch"].as_u64(), Some(2), "{shown}");
    assert_ne!(shown["incarnation"], listed["incarnation"]);
    assert!(third["position"].as_u64() > made["position"].as_u64());
    assert!(shown["lacks"][0].as_str().unwrap().contains("--with keys"), "{shown}");
}

/// Ends the writers.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Each backup has what was acknowledged before it began, nothing that was sent after it had ended, and of each
/// writer nothing without what that had written before.
#[test]
fn a_backup_beside_writers_is_of_one_moment() {
    if !available(&TOOLS) {
        return;
    }
    let (place, server) = sample(200);
    let backups = Backups::of(place);
    let acknowledged: Vec<AtomicUsize> = (0..WRITERS).map(|_| AtomicUsize::new(0)).collect();
    let sent: Vec<AtomicUsize> = (0..WRITERS).map(|_| AtomicUsize::new(0)).collect();
    let is_done = AtomicBool::new(false);
    let numbers =
        |all: &[AtomicUsize]| all.iter().map(|one| one.load(Ordering::SeqCst)).collect::<Vec<_>>();
    let mut moments = Vec::new();
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (acknowledged, sent) = (&acknowledged[writer], &sent[writer]);
            let (server, is_done) = (&server, &is_done);
            scope.spawn(move || {
                for number in 1.. {
                    if is_done.load(Ordering::SeqCst) {
                        return;
                    }
                    sent.store(number, Ordering::SeqCst);
                    add(server, &format!("w{writer}-{number}"));
                    acknowledged.store(number, Ordering::SeqCst);
                }
            });
        }
        // Also where the rest of this fails.
        let _ends = Ends(&is_done);
        let is_begun = || numbers(&acknowledged).iter().all(|number| *number > 0);
        eventually("all writers write", is_begun);
        for _ in 0..4 {
            let before = numbers(&acknowledged);
            let made = json(&backups.create(&[]).expect(0));
            moments.push((made["backup"].as_str().unwrap().to_owned(), before, numbers(&sent)));
        }
    });
    assert!(server.stop().success());
    for (at, (name, before, after)) in moments.iter().enumerate() {
        let to = format!("restored-{at}");
        backups.restore(&to, &["--backup", name]).expect(0);
        check(&backups.path(&to));
        let text = export(&backups.path(&to));
        for writer in 0..WRITERS {
            let prefix = format!("\ndn: cn=w{writer}-");
            let found = text.match_indices(&prefix).map(|(at, _)| &text[at + prefix.len()..]);
            let numbers: BTreeSet<usize> =
                found.map(|rest| rest.split_once(',').unwrap().0.parse().unwrap()).collect();
            let last = numbers.len();
            assert!(numbers.iter().copied().eq(1..=last), "writer {writer}: {numbers:?}");
            assert!((before[writer]..=after[writer]).contains(&last), "writer {writer}: {last}");
        }
    }
}

#[test]
fn a_restore_ends_at_any_position() {
    if !available(&TOOLS) {
        return;
    }
    let (place, server) = sample(20);
    let backups = Backups::of(place);
    let flags = ["--json", "--every", "100ms", "--with", "keys,config"];
    let mut run = backups.command(&["backup", "run"], &flags);
    let mut run = run.arg("--data").arg(&backups.data).stdout(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(run.stdout.take().unwrap());
    let mut next = move || -> Value {
        let mut line = String::new();
        told.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|why| panic!("{line:?}: {why}"))
    };
    let first = next();
    assert_eq!(first["event"], "backed up");
    let mut moments = Vec::new();
    for number in 0..5 {
        add(&server, &format!("added-{number}"));
        let text = export(&backups.data);
        let mut changes = Command::new(keyway());
        changes.args(["directory", "changes", "--json", "--data"]).arg(&backups.data);
        let last = json(&finish(&mut changes, "").expect(0))["position"].as_u64().unwrap();
        moments.push((last, text));
    }
    let people = format!(
        "dn: ou=People,{BASE}\nchangetype: modify\nreplace: description\ndescription: new\n"
    );
    finish(&mut server.admin_tool("ldapmodify"), &people).expect(0);
    let last = moments.last().unwrap().0 + 1;
    while next()["position"].as_u64().unwrap() < last {}
    kill_process(Pid::from_raw(run.id() as i32).unwrap(), Signal::TERM).unwrap();
    assert!(run.wait().unwrap().success());
    for (position, text) in &moments {
        let to = format!("at-{position}");
        let restored = backups.restore(&to, &["--position", &position.to_string()]).expect(0);
        assert_eq!(json(&restored)["position"].as_u64(), Some(*position));
        assert_eq!(&export(&backups.path(&to)), text);
        check(&backups.path(&to));
    }
    // Searches by index find what was made again.
    let restored = Server::start(&backups.path(&format!("at-{}", moments[4].0)), &["--empty"]);
    let search = ["-LLL", "-b", BASE, "(cn=added-4)", "dn"];
    let found = finish(restored.admin_tool("ldapsearch").args(search), "").expect(0);
    assert!(found.out.contains("cn=added-4,"), "{}", found.out);
    assert!(restored.stop().success());
    let beyond = backups.restore("beyond", &["--position", "999999"]).expect(1);
    assert!(beyond.out.contains(&format!("up to position {last}")), "{}", beyond.out);
    let before = backups.restore("before", &["--at", "2001-01-01"]).expect(1);
    assert!(before.out.contains("no backup is as old"), "{}", before.out);
    assert!(!backups.path("beyond").exists() && !backups.path("before").exists());
    let now = json(&backups.restore("now", &["--at", "0s"]).expect(0));
    assert_eq!(now["position"].as_u64(), Some(last));
    assert!(server.stop().success());
}

#[test]
fn what_cannot_be_is_said_and_changes_nothing() {
    let (place, server) = sample(20);
    assert!(server.stop().success());
    let backups = Backups::of(place);
    let no_secret = |words: &[&str]| {
        let mut command = Command::new(keyway());
        command.args(words).arg(backups.path("repository"));
        finish(&mut command, "")
    };
    assert!(no_secret(&["backup", "list"]).expect(1).err.contains("has no backups in it"));
    let mut create = Command::new(keyway());
    create
        .args(["backup", "create"])
        .arg(backups.path("repository"))
        .arg("--data")
        .arg(&backups.data);
    assert!(finish(&mut create, "").expect(2).err.contains("--key-file"));
    backups.create(&[]).expect(0);
    assert!(no_secret(&["backup", "list"]).expect(2).err.contains("--key-file"));
    // A key of others.
    let other = backups.path("other.key");
    fs::write(&other, format!("{}\n", "0b".repeat(32))).unwrap();
    fs::set_permissions(&other, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    for words in [&["backup", "list"][..], &["backup", "verify"], &["backup", "show"]] {
        let mut command = Command::new(keyway());
        command.args(words).arg(backups.path("repository")).arg("--key-file").arg(&other);
        let refused = finish(&mut command, "").expect(1);
        assert!(refused.err.contains("not that of"), "{}", refused.err);
    }
    fs::write(&other, "too short\n").unwrap();
    let mut list = Command::new(keyway());
    list.args(["backup", "list"]).arg(backups.path("repository")).arg("--key-file").arg(&other);
    assert!(finish(&mut list, "").expect(1).err.contains("64 hexadecimal digits"));
    // Targets that are there, and one in the data folder.
    fs::create_dir(backups.path("full")).unwrap();
    fs::write(backups.path("full/file"), "x").unwrap();
    assert!(backups.restore("full", &[]).expect(1).out.contains("has something in it"));
    fs::create_dir(backups.path("empty")).unwrap();
    backups.restore("empty", &[]).expect(0);
    let mut inside = Command::new(keyway());
    inside.args(["backup", "create"]).arg(backups.data.join("store/backup"));
    inside.arg("--key-file").arg(backups.path("backup.key")).arg("--data").arg(&backups.data);
    finish(&mut inside, "").expect(1);
    backups.restore("none", &["--backup", "00000009-20260101T000000Z"]).expect(1);
    // A piece that is damaged is named, and nothing is restored of it.
    let pieces: Vec<PathBuf> = fs::read_dir(backups.path("repository/chunks"))
        .unwrap()
        .flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap())
        .map(|piece| piece.unwrap().path())
        .collect();
    let piece = &pieces[pieces.len() / 2];
    let mut bytes = fs::read(piece).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(piece, bytes).unwrap();
    let verified = backups.ask(&["backup", "verify"], &[]).expect(1);
    let name = piece.file_name().unwrap().to_str().unwrap();
    assert!(verified.err.contains(name), "{}", verified.err);
    backups.restore("damaged", &[]).expect(1);
    assert!(!backups.path("damaged").exists());
    // Set aside, it is written anew by the next backup.
    let aside = json(&backups.ask(&["backup", "verify"], &["--set-aside", "--json"]).expect(1));
    assert_eq!(aside["set_aside"].as_u64(), Some(1), "{aside}");
    backups.create(&[]).expect(0);
    backups.ask(&["backup", "verify"], &[]).expect(0);
    backups.ask(&["backup", "prune"], &["--keep-last", "1"]).expect(0);
    backups.restore("pruned", &[]).expect(0);
    let left: Vec<String> = fs::read_dir(backups.place.path())
        .unwrap()
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with('.'))
        .collect();
    assert_eq!(left, [""; 0]);
}

fn kill_after(mut child: Child, is_far: impl FnMut() -> bool, what: &str) {
    eventually(what, is_far);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn what_is_killed_leaves_older_backups_whole_and_no_half_store() {
    let (place, server) = sample(3_000);
    assert!(server.stop().success());
    let backups = Backups::of(place);
    let quiet =
        |mut command: Command| command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut create = backups.command(&["backup", "create"], &[]);
    create.arg("--data").arg(&backups.data);
    let chunks = backups.path("repository/chunks");
    let has_some = || fs::read_dir(&chunks).is_ok_and(|found| found.count() > 10);
    kill_after(quiet(create), has_some, "pieces are written");
    // It may have been killed before there was a repository, or when it was done.
    let listed = backups.ask(&["backup", "list"], &["--json"]);
    let is_new = listed.code == 1 && listed.out.contains("has no backups in it");
    assert!(is_new || listed.expect(0).out.lines().count() <= 1);
    backups.create(&[]).expect(0);
    let mut restore = backups.command(&["restore"], &[]);
    restore.arg("--to").arg(backups.path("restored"));
    let begun = backups.path(".restored.restoring");
    kill_after(quiet(restore), || begun.exists() || backups.path("restored").exists(), "it begins");
    if !backups.path("restored").exists() {
        backups.restore("restored", &[]).expect(0);
    }
    assert!(!begun.exists());
    assert_eq!(export(&backups.path("restored")), export(&backups.data));
}

#[test]
fn a_second_backup_is_small_and_a_passphrase_or_a_key_of_cryptod_does() {
    if !available(&TOOLS) {
        return;
    }
    let (place, server) = sample(5_000);
    let backups = Backups::of(place);
    let first = json(&backups.create(&[]).expect(0));
    let mut changes = String::new();
    for number in 0..3 {
        changes += &group(&format!("g{number}"));
    }
    finish(&mut server.admin_tool("ldapmodify"), &changes).expect(0);
    let second = json(&backups.create(&[]).expect(0));
    let bytes = |of: &Value, name: &str| of[name].as_u64().unwrap();
    let (all, new) = (bytes(&first, "new_bytes"), bytes(&second, "new_bytes"));
    assert!(new < all / 4, "{new} of {all}");

    let passphrase = backups.path("passphrase");
    let mut file = fs::File::create(&passphrase).unwrap();
    file.write_all(b"correct horse battery staple\n").unwrap();
    fs::set_permissions(&passphrase, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let data = backups.data.to_str().unwrap();
    let socket = backups.data.join("cryptod/socket");
    let socket = socket.to_str().unwrap();
    let generate =
        ["key", "generate", "backups", "--algorithm", "aes-256-gcm", "--for", "user:root"];
    let mut generate_key = Command::new(keyway());
    finish(generate_key.args(generate).args(["--data", data]), "").expect(0);
    let phrase = ["--passphrase-file", passphrase.to_str().unwrap()];
    let secrets: [(&str, &[&str], &[&str]); 2] = [
        ("phrase", &phrase, &phrase),
        ("held", &["--cryptod-key", "backups", "--cryptod", socket], &["--cryptod", socket]),
    ];
    for (name, making, reading) in secrets {
        let repository = backups.path(name);
        let ask = |words: &[&str], flags: &[&str]| {
            let mut command = Command::new(keyway());
            finish(command.args(words).arg(&repository).args(flags), "")
        };
        ask(&["backup", "create", "--data", data], making).expect(0);
        ask(&["backup", "verify"], reading).expect(0);
        let to = backups.path(&format!("{name}-restored"));
        ask(&["restore", "--to", to.to_str().unwrap()], reading).expect(0);
        assert_eq!(export(&to), export(&backups.data));
    }
    assert!(server.stop().success());
}

/// Where a package puts the configuration; and a backup that was made without it.
#[test]
fn the_configuration_comes_back_from_a_link_and_from_the_store() {
    let (place, server) = sample(20);
    let backups = Backups::of(place);
    assert!(server.stop().success());
    let (file, elsewhere) = (backups.data.join("keyway.toml"), backups.path("keyway.toml"));
    let text = fs::read_to_string(&file).unwrap() + "\n# of this server\n";
    fs::write(&elsewhere, &text).unwrap();
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &file).unwrap();
    let server = Server::start(&backups.data, &[]);
    for (to, with) in [("linked", "config"), ("of-the-store", "keys")] {
        backups.create(&["--with", with]).expect(0);
        backups.restore(to, &[]).expect(0);
        let restored = fs::read_to_string(backups.path(to).join("keyway.toml")).unwrap();
        assert_eq!(restored, text, "{to}");
    }
    assert!(server.stop().success());

    // A link to nothing is said, and the settings that were in force come back all the same.
    fs::remove_file(&elsewhere).unwrap();
    let made = json(&backups.create(&[]).expect(0));
    assert_eq!(made["left_out"][0], "keyway.toml: it is a link to what is not there");
    let restored = json(&backups.restore("dangling", &[]).expect(0));
    assert!(restored["lacks"].to_string().contains("keyway.toml: "), "{restored}");
    assert_eq!(fs::read_to_string(backups.path("dangling/keyway.toml")).unwrap(), text);
}

/// A first backup that cannot be made leaves no repository, and no secret that could never open it is taken.
#[test]
fn a_repository_is_made_only_for_what_it_can_hold_and_open() {
    let (place, server) = sample(20);
    let backups = Backups::of(place);
    let nowhere = backups.path("nowhere");
    let mut create = backups.command(&["backup", "create"], &[]);
    finish(create.arg("--data").arg(&nowhere), "").expect(1);
    assert!(!backups.path("repository").exists() && !backups.path("backup.key").exists());

    let data = backups.data.to_str().unwrap();
    let socket = backups.data.join("cryptod/socket");
    let generate = |name: &str, words: &[&str]| {
        let mut command = Command::new(keyway());
        command.args(["key", "generate", name, "--for", "user:root", "--data", data]);
        finish(command.args(words), "").expect(0);
    };
    generate("seals", &["--algorithm", "aes-256-gcm", "--purpose", "encrypt"]);
    generate("short", &["--algorithm", "aes-128-gcm"]);
    let create = |repository: &str, words: &[&str]| {
        let mut command = Command::new(keyway());
        command.args(["backup", "create"]).arg(backups.path(repository)).args(["--data", data]);
        finish(command.args(words), "")
    };
    for key in ["seals", "short"] {
        let refused =
            create("held", &["--cryptod-key", key, "--cryptod", socket.to_str().unwrap()]);
        assert!(refused.expect(1).err.contains(key));
        assert!(!backups.path("held/header").exists());
    }
    let passphrase = backups.path("passphrase");
    keyway_tests::secret(&passphrase, "a");
    let refused = create("phrase", &["--passphrase-file", passphrase.to_str().unwrap()]).expect(1);
    assert!(refused.err.contains("12 bytes"), "{}", refused.err);
    assert!(server.stop().success());
}

/// Whole backups in between, a restored server that goes on in its repository, and changes that are lost.
#[test]
fn no_moment_is_lost_between_backups_nor_passed_over() {
    if !available(&TOOLS) {
        return;
    }
    let (place, server) = sample(20);
    let backups = Backups::of(place);
    let flags = ["--json", "--every", "50ms", "--full-every", "1ms"];
    let mut run = backups.command(&["backup", "run"], &flags);
    let mut run = run.arg("--data").arg(&backups.data).stdout(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(run.stdout.take().unwrap());
    let mut reached = |wanted: u64| loop {
        let mut line = String::new();
        told.read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        if said["event"] == "changes" && said["position"].as_u64() >= Some(wanted) {
            return;
        }
    };
    reached(0);
    let mut moments = Vec::new();
    for number in 0..4 {
        add(&server, &format!("added-{number}"));
        let mut changes = Command::new(keyway());
        changes.args(["directory", "changes", "--json", "--data"]).arg(&backups.data);
        let last = json(&finish(&mut changes, "").expect(0))["position"].as_u64().unwrap();
        moments.push((last, export(&backups.data)));
        reached(last);
    }
    kill_process(Pid::from_raw(run.id() as i32).unwrap(), Signal::TERM).unwrap();
    std::io::copy(&mut told, &mut std::io::sink()).unwrap();
    assert!(run.wait().unwrap().success());
    let listed = backups.ask(&["backup", "list"], &["--json"]).expect(0);
    let names: Vec<Value> =
        listed.out.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    assert!(names.len() > 4, "{}", listed.out);
    let verified = json(&backups.ask(&["backup", "verify"], &["--json"]).expect(0));
    assert_eq!(verified["gaps"].as_array().map(Vec::len), Some(0), "{verified}");
    let [first, newest] =
        [names.first(), names.last()].map(|it| it.unwrap()["backup"].as_str().unwrap());
    for (position, text) in &moments {
        let to = format!("at-{position}");
        let point = position.to_string();
        backups.restore(&to, &["--backup", first, "--position", &point]).expect(0);
        assert_eq!(&export(&backups.path(&to)), text);
    }
    let early = moments[0].0.to_string();
    for point in [["--position", &early], ["--at", "2001-01-01"]] {
        let refused = backups.restore("younger", &[&["--backup", newest][..], &point].concat());
        assert!(refused.expect(1).out.contains("is of a state behind"));
    }
    let future = backups.restore("future", &["--at", "2999-01-01"]).expect(1);
    assert!(future.out.contains("has not come yet"), "{}", future.out);

    // Another directory, and this one once it is restored.
    let (other, another) = sample(20);
    assert!(another.stop().success());
    let mut create = backups.command(&["backup", "create"], &[]);
    let refused = finish(create.arg("--data").arg(other.path().join("data")), "").expect(1);
    assert!(refused.err.contains("of another directory"), "{}", refused.err);
    let (last, text) = moments.last().unwrap();
    let restored = backups.path(&format!("at-{}", moments[1].0));
    let mut create = backups.command(&["backup", "create"], &[]);
    finish(create.arg("--data").arg(&restored), "").expect(0);
    backups.restore("before-it", &["--position", &early]).expect(0);
    assert_eq!(export(&backups.path("before-it")), moments[0].1);
    // A position that only the store of before has come to leads to what was there then.
    backups.restore("abandoned", &["--position", &last.to_string()]).expect(0);
    assert_eq!(&export(&backups.path("abandoned")), text);
    backups.restore("of-old", &["--backup", newest, "--position", &last.to_string()]).expect(0);
    assert_eq!(&export(&backups.path("of-old")), text);

    // Changes that were removed.
    let of_store = fs::read_dir(backups.path("repository/segments")).unwrap().next().unwrap();
    let mut segments: Vec<PathBuf> =
        fs::read_dir(of_store.unwrap().path()).unwrap().map(|it| it.unwrap().path()).collect();
    segments.sort_unstable();
    assert!(segments.len() > 2);
    fs::remove_file(&segments[1]).unwrap();
    let gap = backups.restore("gap", &["--backup", first, "--at", "0s"]).expect(1);
    assert!(gap.out.contains("are missing in the repository"), "{}", gap.out);
    // One that is damaged is in the way of later moments only.
    fs::write(&segments[1], "no changes").unwrap();
    backups.restore("before-damage", &["--backup", first, "--position", &early]).expect(0);
    assert!(server.stop().success());
}
