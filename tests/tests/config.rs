//! `keyway config` on a server that runs, and on one that does not.

use keyway_tests::client::Client;
use keyway_tests::{Finished, Server, available, finish, keyway, port, sample};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

fn config(data: &Path, arguments: &[&str]) -> Finished {
    let mut command = Command::new(keyway());
    finish(command.arg("config").args(arguments).arg("--data").arg(data), "")
}

fn get(data: &Path, key: &str) -> Value {
    serde_json::from_str(&config(data, &["get", key, "--json"]).expect(0).out).unwrap()
}

fn text(data: &Path) -> String {
    fs::read_to_string(data.join("keyway.toml")).unwrap()
}

/// Lines of one text that another does not have.
fn only_in<'t>(one: &'t str, other: &str) -> Vec<&'t str> {
    one.lines().filter(|line| !other.lines().any(|it| it == *line)).collect()
}

#[test]
fn a_setting_is_written_with_its_comment_and_taken() {
    if !available(&["ldapsearch"]) {
        return;
    }
    let (folder, mut server) = sample(5);
    let data = folder.path().join("data");
    let line = config(&data, &["get", "limits.search_entries_max"]).expect(0).out;
    assert!(line.starts_with("limits.search_entries_max = 0  # keyway.toml, line "), "{line}");
    let line = config(&data, &["get", "limits.idle_max_s"]).expect(0).out;
    assert!(line.starts_with("limits.idle_max_s = 3600  # seconds; keyway.toml, line "), "{line}");
    assert_eq!(get(&data, "listen")["from"], "--listen");

    fs::set_permissions(data.join("keyway.toml"), fs::Permissions::from_mode(0o640)).unwrap();
    let before = text(&data);
    let done = config(&data, &["set", "limits.search_entries_max", "2"]).expect(0).out;
    assert!(done.contains("(before: 0): written, and the server has taken it"), "{done}");
    assert_eq!(server.next_event(), json!({ "event": "reloaded", "at_next_start": [] }));
    let after = text(&data);
    let new = only_in(&after, &before);
    assert!(new.len() == 1 && new[0].starts_with("search_entries_max = 2 "), "{new:?}");
    assert!(new[0].contains("# of one search, for all but the administrator"), "{new:?}");
    let mode = fs::metadata(data.join("keyway.toml")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    assert_eq!(get(&data, "limits.search_entries_max")["value"], 2);

    // A value that does not go with the whole configuration changes nothing.
    for (key, value, why) in [
        ("limits.idle_max_s", "0", "it must be from 1 to"),
        ("limits.idle_max_s", "long", "not a whole number"),
        ("limits.idle_max", "1", "there is limits.idle_max_s"),
        ("tls.certificate", "a.pem", "name the key's file too"),
        ("tls.versions", "1.1", "is not one of 1.3, 1.2"),
        ("log.to", "paper", "is not one of"),
        ("access", "{ who = \"users\" }", "missing field `rights`"),
    ] {
        let done = config(&data, &["set", key, value]).expect(1);
        assert!(done.err.contains(why), "{key}: {}", done.err);
    }
    // A value that only the server knows to be wrong is put back.
    let done = config(&data, &["set", "tls.client_ca", "nowhere.pem"]).expect(1);
    assert!(done.err.contains("not changed: the server does not take it"), "{}", done.err);
    assert_eq!(server.next_event()["event"], "not-reloaded");
    // An index of what is not there would keep the next start from starting.
    let done = config(&data, &["set", "indexes.nosuch", "equality"]).expect(1);
    assert!(done.err.contains("there is no attribute \"nosuch\""), "{}", done.err);
    assert_eq!(server.next_event()["event"], "not-reloaded");
    assert_eq!(text(&data), after);

    let done = config(&data, &["set", "limits.store_bytes_max", "374877906944"]).expect(0).out;
    assert!(done.contains("the server takes it at its next start"), "{done}");
    server.next_event();
    let waiting = get(&data, "limits.store_bytes_max");
    assert_eq!(waiting["value"], 274_877_906_944_u64);
    assert_eq!(waiting["at_next_start"], 374_877_906_944_u64);
    let differs = config(&data, &["diff"]).expect(0).out;
    assert!(
        differs.contains("store_bytes_max: 274877906944 -> 374877906944  # waits"),
        "{differs}"
    );
    config(&data, &["set", "limits.store_bytes_max", "--default"]).expect(0);
    server.next_event();
    assert_eq!(config(&data, &["diff"]).expect(0).out.trim(), "no setting differs");

    // An operator who edits the file by hand sees which changes the server has not been told.
    fs::write(data.join("keyway.toml"), after.replace("drain_max_s = 10", "drain_max_s = 11"))
        .unwrap();
    let differs = config(&data, &["diff"]).expect(0).out;
    assert_eq!(differs.trim(), "limits.drain_max_s: 10 -> 11");
    server.signal(Signal::HUP);
    server.next_event();
    assert_eq!(config(&data, &["diff"]).expect(0).out.trim(), "no setting differs");
    server.stop();

    let done = config(&data, &["set", "limits.drain_max_s", "12"]).expect(0).out;
    assert!(done.contains("no server runs there"), "{done}");
    fs::write(folder.path().join("before"), &before).unwrap();
    let old = folder.path().join("before").display().to_string();
    let new = data.join("keyway.toml").display().to_string();
    let differs = config(&data, &["diff", &old, &new]).expect(0).out;
    assert_eq!(differs.lines().count(), 2, "{differs}");
    let checked = config(&data, &["check"]).expect(0).out;
    assert!(checked.contains("is right"), "{checked}");
}

/// Lists, lists of tables, and what of groups and integrity need not wait.
#[test]
fn integrity_is_taken_while_it_runs_where_the_indexes_allow() {
    if !available(&["ldapadd"]) {
        return;
    }
    let (folder, mut server) = sample(5);
    let data = folder.path().join("data");
    let table = "{ attributes = [\"employeeNumber\"], below = \"dc=example,dc=com\" }";
    let done = config(&data, &["set", "integrity.unique", table]).expect(0).out;
    assert!(done.contains("the server has taken it"), "{done}");
    server.next_event();
    let add = |server: &Server, name: &str| {
        let entry = format!(
            "dn: uid={name},dc=example,dc=com\nobjectClass: inetOrgPerson\nuid: {name}\n\
             cn: {name}\nsn: {name}\nemployeeNumber: 4711\n"
        );
        finish(&mut server.admin_tool("ldapadd"), &entry).code
    };
    assert_eq!(add(&server, "one"), 0);
    assert_eq!(add(&server, "two"), 19, "constraintViolation");
    config(&data, &["set", "integrity.unique", "[]"]).expect(0);
    server.next_event();
    assert_eq!(add(&server, "two"), 0);
    assert!(!text(&data).contains("\n[[integrity.unique]]"));
    // One that is not indexed has to wait.
    let table = "{ attributes = [\"carLicense\"] }";
    let done = config(&data, &["set", "integrity.unique", table]).expect(0).out;
    assert!(done.contains("at its next start"), "{done}");
    let later = json!({ "event": "reloaded", "at_next_start": ["integrity.unique"] });
    assert_eq!(server.next_event(), later);
    config(&data, &["set", "groups.member_of", "off"]).expect(0);
    let later = ["groups.member_of", "integrity.unique"];
    assert_eq!(server.next_event()["at_next_start"], json!(later));
}

#[test]
fn what_makes_no_sense_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let done = config(folder.path(), &["get"]).expect(1);
    assert!(done.err.contains("has no keyway.toml"), "{}", done.err);
    fs::write(folder.path().join("keyway.toml"), "[limits]\nidle_max_s = 0\n").unwrap();
    let done = config(folder.path(), &["check"]).expect(1);
    assert!(done.err.contains("line 2: idle_max_s: it must be from 1 to"), "{}", done.err);
    // A file that is wrong can be put right.
    config(folder.path(), &["set", "limits.idle_max_s", "5"]).expect(0);
    assert_eq!(text(folder.path()), "[limits]\nidle_max_s = 5\n");
    config(folder.path(), &["set", "indexes.carLicense", "equality", "presence"]).expect(0);
    assert!(text(folder.path()).contains("carLicense = [\"equality\", \"presence\"]"));
    assert!(text(folder.path()).contains("uid = ["), "the others are written down too");
    let done = config(folder.path(), &["diff"]).expect(1);
    assert!(done.err.contains("no server runs"), "{}", done.err);
    let done = config(folder.path(), &["get", "nonsense"]).expect(1);
    assert!(done.err.contains("there is no setting nonsense"), "{}", done.err);
}

/// Waits until a server listens at an address, or until none does any more.
fn until_listening(address: &str, listens: bool) {
    for _ in 0..1_500 {
        if TcpStream::connect(address).is_ok() == listens {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("{address}: {listens}");
}

#[test]
fn listeners_move_while_it_runs() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let [old, old_tls, new, new_tls] = [port(), port(), port(), port()];
    fs::create_dir(&data).unwrap();
    let settings = format!("listen = \"{old}\"\nlisten_tls = \"{old_tls}\"\n");
    fs::write(data.join("keyway.toml"), settings).unwrap();
    let mut command = Command::new(keyway());
    let server =
        Server::spawn(command.args(["up", "--json", "--sample", "1", "--data"]).arg(&data));
    let mut open = Client::connect(old.parse().unwrap()).unwrap();
    let listen = format!("listen={new}");
    let said = config(&data, &["set", &listen, &format!("listen_tls={new_tls}")]).expect(0).out;
    assert_eq!(said.matches("the server has taken it").count(), 2, "{said}");
    assert_eq!(get(&data, "listen")["value"], Value::from(new.clone()));
    for (address, listens) in [(&new, true), (&new_tls, true), (&old, false), (&old_tls, false)] {
        until_listening(address, listens);
    }
    // A connected client stays so.
    open.read("").unwrap();
    let ldaps = format!("ldaps://{new_tls}");
    if available(&["ldapsearch"]) {
        let mut tool = server.tool("ldapsearch", &ldaps);
        finish(tool.args(["-b", "", "-s", "base"]), "").expect(0);
    }
    // One that is taken changes nothing.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap();
    let before = text(&data);
    let refused = config(&data, &["set", "listen", &taken.to_string()]).expect(1).err;
    assert!(refused.contains("error.log says why"), "{refused}");
    assert_eq!(text(&data), before);
    let log = fs::read_to_string(data.join("log/error.log")).unwrap();
    assert!(log.contains(&format!("{taken} is in use")), "{log}");
    until_listening(&new, true);
    // The next process has it, too.
    let pid = rustix::process::Pid::from_raw(server.server_pid() as i32).unwrap();
    rustix::process::kill_process(pid, Signal::KILL).unwrap();
    let again = || Client::connect(new.parse().unwrap())?.read("");
    while again().is_err() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    config(&data, &["set", "listen", "off"]).expect(0);
    until_listening(&new, false);
    until_listening(&new_tls, true);
    assert!(server.stop().success());
}
