//! What a server writes down: who was refused, who changed what; and never a secret.

use keyway_tests::{Server, available, finish, sample};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

const NEEDS: [&str; 3] = ["ldapsearch", "ldapwhoami", "ldapmodify"];
const SECRET: &str = "Tr0ub4dor-not-to-be-seen";

/// Its folder of logs.
fn logs(server: &Server) -> PathBuf {
    Path::new(server.text("data")).join("log")
}

fn all_of(folder: &Path) -> String {
    let names = ["access.log", "error.log", "audit.log"];
    names.iter().map(|name| fs::read_to_string(folder.join(name)).unwrap()).collect()
}

/// A server whose configuration begins as the default one, with these replacements.
fn configured(folder: &Path, changes: &[(&str, &str)]) -> Server {
    let data = folder.join("data");
    let server = Server::start(&data, &["--sample", "3"]);
    assert!(server.stop().success());
    configure(&data, changes);
    Server::start(&data, &[])
}

fn configure(data: &Path, changes: &[(&str, &str)]) {
    let file = data.join("keyway.toml");
    let mut text = fs::read_to_string(&file).unwrap();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    fs::write(file, text).unwrap();
}

fn whoami(server: &Server, dn: &str, password: &str) -> i32 {
    finish(server.tool("ldapwhoami", server.ldaps()).args(["-D", dn, "-w", password]), "").code
}

fn hang_up(server: &mut Server) {
    server.signal(Signal::HUP);
    assert_eq!(server.next_event()["event"], "reloaded");
}

#[test]
fn refusals_and_changes_are_written_down_and_secrets_are_not() {
    if !available(&NEEDS) {
        return;
    }
    let (_folder, server) = sample(3);
    let folder = logs(&server);
    let admin = server.administrator().to_owned();
    assert_eq!(whoami(&server, &admin, SECRET), 49);
    assert_eq!(whoami(&server, "cn=a\n2026-01-01T00:00:00Z access forged,cn=b", SECRET), 49);
    let modify = "dn: dc=example,dc=com\nchangetype: modify\nadd: description\ndescription: x\n\n";
    let anonymous = finish(&mut server.tool("ldapmodify", server.ldaps()), modify);
    assert_eq!(anonymous.code, 50);
    let add = format!(
        "dn: uid=eve,ou=People,dc=example,dc=com\nchangetype: add\nobjectClass: inetOrgPerson\n\
         uid: eve\ncn: e\nsn: e\nuserPassword: {SECRET}\n\n{modify}\
         dn: uid=eve,ou=People,dc=example,dc=com\nchangetype: modify\nreplace: userPassword\n\
         userPassword: {SECRET}2\n\n\
         dn: uid=eve,ou=People,dc=example,dc=com\nchangetype: modrdn\nnewrdn: uid=eva\n\
         deleteoldrdn: 1\n\n\
         dn: uid=eva,ou=People,dc=example,dc=com\nchangetype: delete\n"
    );
    finish(&mut server.admin_tool("ldapmodify"), &add).expect(0);
    let compare = format!("userPassword:{SECRET}");
    let mut tool = server.tool("ldapcompare", server.ldaps());
    assert_eq!(finish(tool.args(["dc=example,dc=com", &compare]), "").code, 50);
    assert!(server.stop().success());

    let access = fs::read_to_string(folder.join("access.log")).unwrap();
    let line = |part: &str| {
        let found = access.lines().find(|line| line.contains(part));
        found.unwrap_or_else(|| panic!("{part:?} is not in\n{access}")).to_owned()
    };
    let bind = line(&format!("dn=\"{admin}\""));
    for part in [
        " access bind ",
        "connection=",
        "operation=1 ",
        "from=127.0.0.1:",
        "result=49 ",
        "time_us=",
    ] {
        assert!(bind.contains(part), "{part:?} is not in {bind:?}");
    }
    line(r"cn=a\u{a}2026");
    assert!(!access.lines().any(|line| line.starts_with("2026-01-01")), "{access}");
    assert!(line(" modify ").contains("result=50 name=insufficientAccessRights"));
    line(" compare ");
    // What went well is not in it.
    assert!(access.lines().all(|line| line.contains("result=") && !line.contains("result=0 ")));

    let audit = fs::read_to_string(folder.join("audit.log")).unwrap();
    let lines: Vec<&str> = audit.lines().collect();
    assert_eq!(lines.len(), 5, "{audit}");
    let expected = [
        (" audit add ", "uid=eve,"),
        (" audit modify ", "attributes=\"add description\""),
        (" audit modify ", "attributes=\"replace userPassword\""),
        (" audit rename ", "new_rdn=\"uid=eva\""),
        (" audit delete ", "uid=eva,"),
    ];
    for (line, (event, part)) in lines.iter().zip(expected) {
        let by = format!("as=\"{admin}\"");
        assert!(line.contains(event) && line.contains(part) && line.contains(&by), "{line}");
    }

    let error = fs::read_to_string(folder.join("error.log")).unwrap();
    assert!(error.contains(" info start version=") && error.contains("entries=10"), "{error}");
    assert!(error.contains(" info stop"), "{error}");
    assert!(!all_of(&folder).contains(SECRET));
    for path in ["access.log", "error.log", "audit.log"] {
        let mode = fs::metadata(folder.join(path)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{path}");
    }
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn everything_as_json_lines() {
    if !available(&NEEDS) {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let changes = [
        ("format = \"text\"", "format = \"json\""),
        ("access = \"refused\"", "access = \"everything\""),
    ];
    let server = configured(place.path(), &changes);
    let folder = logs(&server);
    let mut search = server.admin_tool("ldapsearch");
    let filter = format!("(|(uid=*)(userPassword={SECRET}))");
    finish(search.args(["-b", "dc=example,dc=com", "(objectClass=person)", "1.1"]), "").expect(0);
    let mut search = server.admin_tool("ldapsearch");
    finish(search.args(["-b", "dc=example,dc=com", &filter, "1.1"]), "").expect(0);
    assert!(server.stop().success());
    let text = fs::read_to_string(folder.join("access.log")).unwrap();
    let lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    for connection in [1, 2] {
        // The second may be told that the server goes down.
        let its = lines.iter().filter(|line| line["connection"] == connection);
        let events = its.filter_map(|line| line["event"].as_str());
        let events: Vec<&str> = events.filter(|event| *event != "disconnect").collect();
        assert_eq!(events, ["open", "bind", "search", "close"], "{text}");
    }
    let search = lines.iter().find(|line| line["event"] == "search").unwrap();
    assert_eq!(search["entries"], 3);
    assert_eq!(search["detail"], "sub (objectClass=person)");
    assert_eq!(search["as"], "cn=admin,cn=keyway");
    assert_eq!(search["result"], 0);
    assert!(search["time_us"].is_u64(), "{text}");
    assert!(!text.contains(SECRET), "{text}");
}

#[test]
fn files_are_put_aside_when_they_are_full_and_opened_anew_on_sighup() {
    if !available(&NEEDS) {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let changes = [
        ("file_bytes_max = 67108864", "file_bytes_max = 4096"),
        ("files_kept = 10", "files_kept = 2"),
    ];
    let mut server = configured(place.path(), &changes);
    let folder = logs(&server);
    let long = format!("cn={},dc=example", "x".repeat(900));
    for _ in 0..16 {
        assert_eq!(finish(&mut refused_search(&server, &long), "").code, 50);
    }
    let renamed = folder.join("error.log.old");
    fs::rename(folder.join("error.log"), &renamed).unwrap();
    hang_up(&mut server);
    assert!(server.stop().success());
    for name in ["access.log", "access.log.1", "access.log.2"] {
        let text = fs::read_to_string(folder.join(name)).unwrap();
        assert!((1..=4096).contains(&text.len()), "{name}: {}", text.len());
        assert!(text.lines().all(|line| line.contains(" search ")) && text.ends_with('\n'));
    }
    assert!(!folder.join("access.log.3").exists());
    assert!(fs::read_to_string(&renamed).unwrap().contains(" info start "));
    let error = fs::read_to_string(folder.join("error.log")).unwrap();
    assert!(error.contains(" info stop") && !error.contains(" info start "), "{error}");
}

fn refused_search(server: &Server, base: &str) -> std::process::Command {
    let mut search = server.tool("ldapsearch", server.ldaps());
    search.args(["-b", base]);
    search
}

#[test]
fn a_full_disk_stops_no_server_and_is_told_of_when_there_is_room() {
    if !available(&NEEDS) || !Path::new("/dev/full").exists() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let server = Server::start(&data, &["--sample", "1"]);
    let folder = logs(&server);
    assert!(server.stop().success());
    let file = folder.join("access.log");
    let _ = fs::remove_file(&file);
    symlink("/dev/full", &file).unwrap();
    let mut server = Server::start(&data, &[]);
    for _ in 0..3 {
        assert_eq!(finish(&mut refused_search(&server, "dc=example"), "").code, 50);
    }
    fs::remove_file(&file).unwrap();
    hang_up(&mut server);
    assert_eq!(finish(&mut refused_search(&server, "dc=example"), "").code, 50);
    assert!(server.stop().success());
    let error = fs::read_to_string(folder.join("error.log")).unwrap();
    let lost: u64 = error
        .lines()
        .filter_map(|line| line.split_once(" error lost name=access lines=")?.1.parse::<u64>().ok())
        .sum();
    let kept = fs::read_to_string(&file).unwrap_or_default().lines().count() as u64;
    assert_eq!(lost + kept, 4, "{error}");
    assert!(lost > 0, "{error}");
}

#[test]
fn the_logs_are_read_back_chosen_and_summed_up() {
    if !available(&NEEDS) {
        return;
    }
    for form in ["text", "json"] {
        let folder = tempfile::tempdir().unwrap();
        let form = format!("format = \"{form}\"");
        let all = ("access = \"refused\"", "access = \"everything\"");
        let server = configured(folder.path(), &[("format = \"text\"", form.as_str()), all]);
        let data = server.text("data").to_owned();
        let nobody = r#"uid=no\"body,dc=example,dc=com"#;
        (0..3).for_each(|_| assert_eq!(whoami(&server, nobody, SECRET), 49));
        for uid in ["a", "b"] {
            let mut search = server.admin_tool("ldapsearch");
            finish(search.args(["-b", "dc=example,dc=com", &format!("(uid={uid})")]), "").expect(0);
        }
        let modify =
            "dn: dc=example,dc=com\nchangetype: modify\nadd: description\ndescription: x\n";
        finish(&mut server.admin_tool("ldapmodify"), modify).expect(0);
        assert!(server.stop().success());
        let log = |arguments: &[&str]| {
            let mut command = std::process::Command::new(keyway_tests::keyway());
            finish(command.args(["log", "--json", "--data", &data]).args(arguments), "")
        };
        let rows = |arguments: &[&str]| -> Vec<Value> {
            log(arguments)
                .expect(0)
                .out
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect()
        };
        let failed = rows(&["failed-binds"]);
        assert_eq!((failed.len(), &failed[0]["count"]), (1, &Value::from(3)), "{failed:?}");
        assert_eq!((&failed[0]["from"], &failed[0]["dn"]), (&"127.0.0.1".into(), &nobody.into()));
        let slowest = rows(&["slowest"]);
        let by_uid = slowest.iter().find(|row| row["search"] == "sub (uid=?)").unwrap();
        assert_eq!(by_uid["count"], 2, "{slowest:?}");
        let changes = rows(&["changes"]);
        assert_eq!((&changes[0]["change"], &changes[0]["count"]), (&"modify".into(), &1.into()));
        let lines = rows(&["--of", "access", "--where", "result=49", "--where", "event=bind"]);
        assert_eq!((lines.len(), &lines[0]["result"]), (3, &Value::from(49)), "{lines:?}");
        assert_eq!(rows(&["--until", "2026-01-01"]), Vec::<Value>::new());
        let all = rows(&["--since", "1h"]);
        let times: Vec<_> = all.iter().map(|line| line["time"].as_str().unwrap()).collect();
        assert!(times.is_sorted() && all.iter().any(|line| line["event"] == "stop"), "{all:?}");
        assert_eq!(log(&["--since", "yesterday"]).code, 2);
    }
    let nowhere = tempfile::tempdir().unwrap();
    let mut command = std::process::Command::new(keyway_tests::keyway());
    let refused = finish(command.args(["log", "--data"]).arg(nowhere.path()), "").expect(1);
    assert!(refused.err.contains("there is no log in"), "{}", refused.err);
}
