//! `cn=tasks`: exports, backups and verifications that a client starts and watches over LDAP, by the tools of OpenLDAP.

use keyway_tests::cryptod::eventually;
use keyway_tests::{Finished, Server, available, finish, keyway, sample};
use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

const TOOLS: &[&str] = &["ldapadd", "ldapdelete", "ldapmodify", "ldapmodrdn", "ldapsearch"];
const UNWILLING: i32 = 53;

fn task(name: &str, command: &str, more: &str) -> String {
    format!("dn: cn={name},cn=tasks\nobjectClass: keywayTask\nkeywayTaskCommand: {command}\n{more}")
}

fn add(server: &Server, name: &str, command: &str, more: &str) -> Finished {
    finish(&mut server.admin_tool("ldapadd"), &task(name, command, more))
}

fn read(server: &Server, name: &str) -> Option<String> {
    let mut search = server.admin_tool("ldapsearch");
    search.args(["-LLL", "-o", "ldif-wrap=no", "-s", "base", "-b"]);
    let found = finish(search.arg(format!("cn={name},cn=tasks")).args(["*", "+"]), "");
    (found.code == 0).then_some(found.out)
}

fn value<'a>(ldif: &'a str, attribute: &str) -> &'a str {
    ldif.lines()
        .find_map(|line| line.strip_prefix(attribute)?.strip_prefix(": "))
        .unwrap_or_else(|| panic!("no {attribute} in {ldif}"))
}

/// Waits for the end of a task, and returns its entry.
fn ended(server: &Server, name: &str) -> String {
    let mut last = String::new();
    eventually(&format!("{name} ends"), || {
        last = read(server, name).unwrap_or_else(|| panic!("{name} is gone"));
        last.contains("\nkeywayTaskEnded: ")
    });
    last
}

fn run(server: &Server, name: &str, command: &str, more: &str) -> String {
    add(server, name, command, more).expect(0);
    ended(server, name)
}

fn directory(data: &Path, words: &[&str]) -> Finished {
    let mut command = Command::new(keyway());
    finish(command.arg("directory").args(words).arg("--data").arg(data), "").expect(0)
}

/// Makes a repository with one backup; the path of its key file.
fn repository(data: &Path, folder: &Path, key: &Path) {
    let mut create = Command::new(keyway());
    create.args(["backup", "create"]).arg(folder).arg("--key-file").arg(key);
    finish(create.arg("--data").arg(data), "").expect(0);
}

fn backups(folder: &Path, key: &Path) -> usize {
    let mut list = Command::new(keyway());
    list.args(["backup", "list", "--json"]).arg(folder).arg("--key-file").arg(key);
    finish(&mut list, "").expect(0).out.lines().count()
}

fn set(data: &Path, settings: &[String]) {
    let mut set = Command::new(keyway());
    finish(set.args(["config", "set"]).args(settings).arg("--data").arg(data), "").expect(0);
}

/// The files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let within = |path: PathBuf| if path.is_dir() { files(&path) } else { vec![path] };
    entries.flat_map(within).collect()
}

#[test]
fn an_export_is_started_and_watched() {
    if !available(TOOLS) {
        return;
    }
    let (folder, server) = sample(200);
    let data = folder.path().join("data");
    let done = run(&server, "all", "export", "description: before the upgrade\n");
    assert_eq!(value(&done, "keywayTaskStatus"), "done", "{done}");
    assert_eq!(value(&done, "keywayTaskDone"), value(&done, "keywayTaskTotal"), "{done}");
    assert!(value(&done, "keywayTaskResult").starts_with("exported 2"), "{done}");
    assert_eq!(value(&done, "creatorsName"), "cn=admin,cn=keyway");
    assert_eq!(value(&done, "description"), "before the upgrade");
    let file = data.join("exports/all.ldif");
    let mode = fs::metadata(&file).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600, "{mode:o}");
    let export = directory(&data, &["export"]).out;
    assert_eq!(fs::read_to_string(&file).unwrap(), export);
    assert!(directory(&data, &["history"]).out.contains("all.ldif"));

    let base = "keywayTaskBase: ou=Groups,dc=example,dc=com\nkeywayTaskFile: some.ldif\n";
    assert_eq!(value(&run(&server, "some", "export", base), "keywayTaskStatus"), "done");
    let some = fs::read_to_string(data.join("exports/some.ldif")).unwrap();
    assert!(some.contains("dn: ou=Groups,") && !some.contains("dn: ou=People,"));

    // A file that is there is not written over, and what failed says why.
    let again = run(&server, "again", "export", "keywayTaskFile: all.ldif\n");
    assert_eq!(value(&again, "keywayTaskStatus"), "failed");
    assert!(value(&again, "keywayTaskResult").contains("is there already"), "{again}");
    let nothing = run(&server, "nothing", "export", "keywayTaskBase: dc=nowhere\n");
    assert_eq!(value(&nothing, "keywayTaskStatus"), "failed", "{nothing}");
    assert!(!data.join("exports/nothing.ldif").exists());
    assert!(!data.join("exports/nothing.ldif.new").exists());
    let log = fs::read_to_string(data.join("log/error.log")).unwrap();
    assert!(log.contains("export again over LDAP"), "{log}");
    let audit = fs::read_to_string(data.join("log/audit.log")).unwrap();
    assert!(audit.contains("cn=all,cn=tasks"), "{audit}");

    finish(server.admin_tool("ldapdelete").arg("cn=all,cn=tasks"), "").expect(0);
    assert_eq!(read(&server, "all"), None);
    assert!(file.exists());
    assert!(server.stop().success());
}

#[test]
fn requests_that_make_no_sense_or_are_not_allowed_are_refused() {
    if !available(TOOLS) {
        return;
    }
    let (folder, server) = sample(3);
    let data = folder.path().join("data");
    let refused = |name: &str, command: &str, more: &str, code: i32, why: &str| {
        let refused = add(&server, name, command, more).expect(code);
        assert!(refused.err.contains(why), "{name} {command} {more}: {}", refused.err);
    };
    refused("a", "remove", "", UNWILLING, "none of export, backup and verify");
    for file in ["../a.ldif", "/tmp/a.ldif", "a", ".a.ldif", "store/a.ldif"] {
        let more = format!("keywayTaskFile: {file}\n");
        refused("a", "export", &more, UNWILLING, "is not the name of a file");
    }
    refused("a", "backup", "keywayTaskFile: a.ldif\n", UNWILLING, "are for an export");
    refused("a", "export", "keywayTaskStatus: done\n", UNWILLING, "is not for a client to set");
    refused("a", "export", "keywayTaskBase:\n", UNWILLING, "is empty");
    let long = format!("description: {}\n", "x".repeat(5_000));
    refused("a", "export", &long, UNWILLING, "at most");
    refused("..", "export", "", UNWILLING, "a task is named");
    refused("a b", "export", "", UNWILLING, "a task is named");
    refused("a,cn=b", "export", "", 32, "");
    refused("a", "export", "sn: x\n", 65, "");
    let classless = "dn: cn=a,cn=tasks\nobjectClass: applicationProcess\ncn: a\n";
    finish(&mut server.admin_tool("ldapadd"), classless).expect(UNWILLING);
    let backup = run(&server, "b", "backup", "");
    assert!(value(&backup, "keywayTaskResult").contains("no repository is named"), "{backup}");
    add(&server, "B", "backup", "").expect(68);

    // What is there can be deleted, and not changed or renamed.
    let change = "dn: cn=b,cn=tasks\nchangetype: modify\nreplace: description\ndescription: x\n";
    finish(&mut server.admin_tool("ldapmodify"), change).expect(UNWILLING);
    finish(server.admin_tool("ldapmodrdn").args(["cn=b,cn=tasks", "cn=c"]), "").expect(UNWILLING);
    finish(server.admin_tool("ldapdelete").arg("cn=c,cn=tasks"), "").expect(32);
    finish(server.admin_tool("ldapdelete").arg("cn=tasks"), "").expect(UNWILLING);

    // Another user sees none, starts none and ends none.
    let password = fs::read_to_string(server.text("sample_password_file")).unwrap();
    let people = finish(
        server.admin_tool("ldapsearch").args(["-LLL", "-b", "dc=example,dc=com", "(uid=*)", "1.1"]),
        "",
    );
    let person = value(&people.out, "dn").to_owned();
    let theirs = |tool: &str| {
        let mut tool = server.tool(tool, server.ldaps());
        tool.args(["-D", &person, "-w", &password]);
        tool
    };
    finish(theirs("ldapsearch").args(["-b", "cn=tasks"]), "").expect(50);
    finish(&mut theirs("ldapadd"), &task("theirs", "export", "")).expect(50);
    finish(theirs("ldapdelete").arg("cn=b,cn=tasks"), "").expect(50);
    finish(&mut server.tool("ldapadd", server.ldaps()), &task("theirs", "export", "")).expect(50);
    assert!(!data.join("exports").exists());
    assert!(server.stop().success());
}

#[test]
fn backups_and_verifications_are_started_and_watched() {
    if !available(TOOLS) {
        return;
    }
    let (folder, server) = sample(50);
    let data = folder.path().join("data");
    let (store, key) = (folder.path().join("backups"), folder.path().join("backup.key"));
    repository(&data, &store, &key);
    let settings = [
        format!("tasks.repository={}", store.display()),
        format!("tasks.key_file={}", key.display()),
        "tasks.mode=0640".to_owned(),
    ];
    set(&data, &settings);
    assert!(server.stop().success());
    let server = Server::start(&data, &[]);
    let made = run(&server, "one", "backup", "");
    assert_eq!(value(&made, "keywayTaskStatus"), "done", "{made}");
    assert_eq!(value(&made, "keywayTaskDone"), value(&made, "keywayTaskTotal"), "{made}");
    assert_eq!(backups(&store, &key), 2);
    let sound = run(&server, "two", "verify", "");
    assert_eq!(value(&sound, "keywayTaskStatus"), "done", "{sound}");
    assert!(value(&sound, "keywayTaskResult").contains(": sound"), "{sound}");
    run(&server, "three", "export", "");
    let mode = fs::metadata(data.join("exports/three.ldif")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);

    // The backup is whole: it can be restored.
    let (restored, name) = (folder.path().join("restored"), value(&made, "keywayTaskResult"));
    let name = name.strip_prefix("backup ").unwrap().split(':').next().unwrap();
    let mut restore = Command::new(keyway());
    restore.arg("restore").arg(&store).args(["--backup", name, "--key-file"]).arg(&key);
    finish(restore.arg("--to").arg(&restored), "").expect(0);
    assert_eq!(directory(&restored, &["export"]).out, directory(&data, &["export"]).out);

    let damaged = files(&store.join("chunks")).into_iter().next().unwrap();
    let file = OpenOptions::new().write(true).open(&damaged).unwrap();
    file.write_all_at(b"damage", 20).unwrap();
    let found = run(&server, "four", "verify", "");
    assert_eq!(value(&found, "keywayTaskStatus"), "failed", "{found}");
    let name = damaged.file_name().unwrap().to_str().unwrap();
    assert!(found.contains(name), "{name} is not in {found}");

    // The key is not there any more, or something else is that would be waited for.
    fs::remove_file(&key).unwrap();
    finish(Command::new("mkfifo").arg(&key), "").expect(0);
    let waits = run(&server, "six", "verify", "");
    assert!(value(&waits, "keywayTaskResult").contains("is no plain file"), "{waits}");
    fs::remove_file(&key).unwrap();
    let locked = run(&server, "five", "backup", "");
    assert_eq!(value(&locked, "keywayTaskStatus"), "failed", "{locked}");
    assert!(value(&locked, "keywayTaskResult").contains("backup.key"), "{locked}");
    assert!(server.stop().success());
}

/// One that is under way, and those that wait, are ended by a delete and by the end of the server.
#[test]
fn a_task_ends_with_its_entry_and_with_the_server() {
    if !available(TOOLS) {
        return;
    }
    let (folder, server) = sample(5_000);
    let data = folder.path().join("data");
    for number in 0..8 {
        add(&server, &format!("t{number}"), "export", "").expect(0);
    }
    finish(server.admin_tool("ldapdelete").args(["cn=t0,cn=tasks", "cn=t7,cn=tasks"]), "")
        .expect(0);
    assert_eq!((read(&server, "t0"), read(&server, "t7")), (None, None));
    assert!(server.stop().success());
    assert!(!data.join("exports/t7.ldif").exists());
    // One that was killed leaves a part, which the next start takes away.
    fs::create_dir_all(data.join("exports")).unwrap();
    fs::write(data.join("exports/part.ldif.new"), "version: 1\n").unwrap();
    let server = Server::start(&data, &[]);
    assert!(!data.join("exports/part.ldif.new").exists());
    assert!(server.stop().success());
    let left = fs::read_dir(data.join("exports")).unwrap();
    for name in left.map(|entry| entry.unwrap().file_name().into_string().unwrap()) {
        assert!(!name.ends_with(".new"), "{name}");
    }
}
