//! The logs of a server: which client was refused, which user changed what; and never a secret.

use keyway_tests::cryptod::eventually;
use keyway_tests::{Server, available, finish, sample};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::Duration;

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
    // Requests that went well are not in it.
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
    let us = |line: &Value, field: &str| line[field].as_u64().unwrap_or_default();
    let stages = ["queue_us", "plan_us", "store_us", "crypto_us", "write_us"];
    for line in lines.iter().filter(|line| line["time_us"].is_u64()) {
        let sum: u64 = stages.iter().map(|stage| us(line, stage)).sum();
        // Each of the five is rounded down.
        let whole = us(line, "time_us");
        assert!((whole.saturating_sub(5)..=whole).contains(&sum), "{line}");
    }
    assert!(us(search, "plan_us") > 0 && us(search, "store_us") > 0, "{search}");
    let bind = lines.iter().find(|line| line["event"] == "bind").unwrap();
    assert!(us(bind, "crypto_us") > 0, "{bind}");
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

/// A file that is removed or moved while the server runs takes none of the later lines with it.
#[test]
fn a_log_that_is_gone_is_made_anew_without_a_signal() {
    if !available(&NEEDS) {
        return;
    }
    let (_place, server) = sample(1);
    let folder = logs(&server);
    let change = |text: &str| {
        let ldif = format!(
            "dn: dc=example,dc=com\nchangetype: modify\nreplace: description\ndescription: {text}\n"
        );
        finish(&mut server.admin_tool("ldapmodify"), &ldif).expect(0);
    };
    change("one");
    fs::rename(folder.join("audit.log"), folder.join("audit.log.aside")).unwrap();
    change("two");
    // The line follows the answer, and a line that follows the removal would be a third one.
    eventually("a new audit log has the second change", || {
        fs::read_to_string(folder.join("audit.log")).is_ok_and(|text| text.contains("audit modify"))
    });
    fs::remove_dir_all(&folder).unwrap();
    change("three");
    change("four");
    assert_eq!(finish(&mut refused_search(&server, "dc=example"), "").code, 50);
    assert!(server.stop().success());
    let [access, error, audit] = ["access.log", "error.log", "audit.log"]
        .map(|name| fs::read_to_string(folder.join(name)).unwrap());
    assert_eq!(audit.lines().filter(|line| line.contains(" audit modify ")).count(), 2, "{audit}");
    assert!(access.contains(" search "), "{access}");
    assert!(error.contains(" warning reopened name=audit "), "{error}");
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
        let absent = r#"uid=no\"body,dc=example,dc=com"#;
        (0..3).for_each(|_| assert_eq!(whoami(&server, absent, SECRET), 49));
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
        assert_eq!((&failed[0]["from"], &failed[0]["dn"]), (&"127.0.0.1".into(), &absent.into()));
        let slowest = rows(&["slowest"]);
        let by_uid = slowest.iter().find(|row| row["search"] == "sub (uid=?)").unwrap();
        assert_eq!(by_uid["count"], 2, "{slowest:?}");
        let ms = |field: &str| by_uid[field].as_f64().unwrap();
        assert!(ms("plan_ms") > 0.0 && ms("store_ms") <= ms("mean_ms"), "{by_uid}");
        assert_eq!(rows(&["--slow", "3600000"]), Vec::<Value>::new());
        assert!(rows(&["--slow", "0"]).iter().all(|line| line["time_us"].is_u64()));
        let changes = rows(&["changes"]);
        assert_eq!((&changes[0]["change"], &changes[0]["count"]), (&"modify".into(), &1.into()));
        let lines = rows(&["--of", "access", "--where", "result=49", "--where", "event=bind"]);
        assert_eq!((lines.len(), &lines[0]["result"]), (3, &Value::from(49)), "{lines:?}");
        assert_eq!(rows(&["--until", "2026-01-01"]), Vec::<Value>::new());
        let all = rows(&["--since", "1h"]);
        let times: Vec<_> = all.iter().map(|line| line["time"].as_str().unwrap()).collect();
        assert!(times.is_sorted() && all.iter().any(|line| line["event"] == "stop"), "{all:?}");
        for wrong in ["yesterday", "2026-13-01", "2026-12-32", "2026-12-01T24"] {
            assert_eq!(log(&["--since", wrong]).code, 2, "{wrong}");
        }
    }
    let nowhere = tempfile::tempdir().unwrap();
    let mut command = std::process::Command::new(keyway_tests::keyway());
    let refused = finish(command.args(["log", "--data"]).arg(nowhere.path()), "").expect(1);
    assert!(refused.err.contains("there is no log in"), "{}", refused.err);
    // Files of another kind, and lines that are none among those that are.
    let [other, mixed] = ["other", "mixed"].map(|name| nowhere.path().join(name));
    fs::write(&other, b"\x1f\x8b\x08 no log\nnor this\n").unwrap();
    let line = "2026-11-24T08:00:00.000000Z access connect connection=1 from=127.0.0.1:9";
    fs::write(&mixed, format!("no line of a log\n{line}\nhalf a line")).unwrap();
    let read = |file: &Path| {
        finish(
            std::process::Command::new(keyway_tests::keyway()).args(["log", "--file"]).arg(file),
            "",
        )
    };
    let refused = read(&other).expect(1);
    assert!(refused.err.contains("no line is one of a Keyway log"), "{}", refused.err);
    let read = read(&mixed).expect(0);
    assert!(read.err.contains("1 lines are none of a log"), "{}", read.err);
    assert_eq!(read.out.trim_end(), line);
}

#[test]
fn a_change_says_what_it_waited_for() {
    if !available(&NEEDS) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = configured(folder.path(), &[("access = \"refused\"", "access = \"everything\"")]);
    let log = logs(&server);
    let modify = format!(
        "dn: uid=new,ou=People,dc=example,dc=com\nchangetype: add\nobjectClass: inetOrgPerson\n\
         cn: n\nsn: n\nuserPassword: {SECRET}\n"
    );
    finish(&mut server.admin_tool("ldapmodify"), &modify).expect(0);
    assert!(server.stop().success());
    let access = fs::read_to_string(log.join("access.log")).unwrap();
    let add = access.lines().find(|line| line.contains(" access add ")).expect(&access);
    for stage in [" queue_us=", " plan_us=", " store_us=", " crypto_us=", " write_us="] {
        assert!(add.contains(stage), "{add}");
    }
}

#[test]
fn one_in_so_many_stands_for_the_others_which_are_counted() {
    if !available(&NEEDS) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let changes = [
        ("access = \"refused\"", "access = \"everything\""),
        ("access_one_in = 1", "access_one_in = 7"),
    ];
    let server = configured(folder.path(), &changes);
    let log = logs(&server);
    let dn = "uid=absent,dc=example,dc=com";
    for _ in 0..9 {
        finish(refused_search(&server, "").args(["-s", "base"]), "").expect(0);
        assert_eq!(whoami(&server, dn, SECRET), 49);
    }
    assert!(server.stop().success());
    let access = fs::read_to_string(log.join("access.log")).unwrap();
    let with = |part: &str| access.lines().filter(|line| line.contains(part)).count();
    // Those that failed are all there.
    assert_eq!(with(" result=49 "), 9, "{access}");
    let left_out = access
        .lines()
        .filter_map(|line| line.split_once(" left-out lines=")?.1.parse::<usize>().ok());
    let left_out: usize = left_out.sum();
    // Beginning, end, and two operations of each connection with a search; those with a bind have three.
    let whole = 9 * 4 + 9 * 3;
    let told = with("") - with(" left-out ") - with(" disconnect ");
    assert_eq!(left_out + told, whole, "{access}");
    assert!(told > 9 && left_out > whole / 2, "{access}");
}

#[test]
fn the_journal_gets_lines_with_their_fields() {
    if !available(&NEEDS) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let place = format!("journal_socket = \"{}\"", path.display());
    let changes = [
        ("to = \"files\"", "to = \"journal\""),
        ("journal_socket = \"/run/systemd/journal/socket\"", place.as_str()),
    ];
    let mut server = configured(folder.path(), &changes);
    assert_eq!(whoami(&server, "cn=\"a\nb\",dc=example", SECRET), 49);
    let entries = || {
        let mut bytes = [0; 65536];
        let length = socket.recv(&mut bytes).expect("an entry");
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    };
    let until = |part: &str| std::iter::repeat_with(entries).find(|entry| entry.contains(part));
    let entry = until("KEYWAY_EVENT=bind\n").unwrap();
    for line in [
        "PRIORITY=6",
        "SYSLOG_IDENTIFIER=keyway",
        "KEYWAY_LOG=access",
        "KEYWAY_RESULT=49",
        r#"KEYWAY_DN=cn=\"a\u{a}b\",dc=example"#,
    ] {
        assert!(entry.lines().any(|other| other == line), "{line} is not in {entry}");
    }
    assert!(!entry.contains(SECRET));
    // The messages are what `keyway log` reads.
    let message = entry.lines().find_map(|line| line.strip_prefix("MESSAGE=")).unwrap();
    let json = serde_json::json!({ "MESSAGE": message, "KEYWAY_EVENT": "bind" });
    for form in [format!("{message}\n"), format!("{json}\n")] {
        let mut command = std::process::Command::new(keyway_tests::keyway());
        let rows =
            finish(command.args(["log", "failed-binds", "--file", "-"]), &form).expect(0).out;
        assert!(
            rows.contains(r#"127.0.0.1  cn="a\u{a}b",dc=example  invalidCredentials"#),
            "{rows}"
        );
    }
    // One that is gone stops no server; without one it does not start.
    drop(socket);
    fs::remove_file(&path).unwrap();
    assert_eq!(whoami(&server, "cn=a", SECRET), 49);
    server.signal(Signal::HUP);
    assert_eq!(server.next_event()["event"], "not-reloaded");
    assert!(server.stop().success());
    let data = folder.path().join("data");
    let mut command = std::process::Command::new(keyway_tests::keyway());
    let refused = finish(command.args(["up", "--data"]).arg(data), "").expect(1);
    assert!(refused.err.contains("cannot write to the journal: "), "{}", refused.err);
}
