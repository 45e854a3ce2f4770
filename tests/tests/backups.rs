//! Exports and checks beside a server that goes on writing: each is of one moment, holds nothing up for
//! longer than it lives, and is written down.

use keyway_tests::{Server, available, finish, keyway, sample};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// More than fits into a pipe and the export's own buffer, so that an export waits for who reads it.
const PEOPLE: u32 = 3_000;
/// The first line of an export.
const HEAD: &str = "# keyway: export 1\n";
const WAIT: Duration = Duration::from_secs(60);

fn directory(data: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(keyway());
    command.arg("directory").args(arguments).arg("--data").arg(data);
    command
}

/// An export that has begun, and waits for its reader to read on.
struct Export {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Export {
    fn begin(data: &Path) -> Export {
        let mut command = directory(data, &["export"]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("keyway starts");
        let mut output = BufReader::new(child.stdout.take().expect("its output"));
        let mut line = String::new();
        output.read_line(&mut line).expect("a line");
        assert_eq!(line, HEAD);
        Export { child, output }
    }

    /// All that it says.
    fn read(mut self) -> String {
        let mut text = HEAD.to_owned();
        self.output.read_to_string(&mut text).expect("text");
        assert!(self.child.wait().expect("its end").success());
        text
    }

    fn kill(mut self) {
        self.child.kill().expect("a signal");
        self.child.wait().expect("its end");
    }
}

/// Changes and adds: in the order in which they are acknowledged.
fn write(server: &Server, from: u32, to: u32) {
    let mut changes = String::new();
    for number in from..to {
        changes += &format!(
            "dn: cn=added {number},ou=Groups,dc=example,dc=com\nchangetype: add\n\
             objectClass: organizationalRole\ncn: added {number}\n\n\
             dn: ou=People,dc=example,dc=com\nchangetype: modify\nreplace: description\n\
             description: {number}\n\n"
        );
    }
    finish(&mut server.admin_tool("ldapmodify"), &changes).expect(0);
}

/// A metric without labels.
fn metric(data: &Path, name: &str) -> u64 {
    let mut command = Command::new(keyway());
    let printed = finish(command.args(["metrics", "--data"]).arg(data), "").expect(0).out;
    let line = printed.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name} in {printed}"))
}

#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < WAIT, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn history(data: &Path) -> Value {
    let said = finish(&mut directory(data, &["history", "--json"]), "").expect(0).out;
    serde_json::from_str(&said).expect("JSON")
}

#[test]
fn an_export_beside_a_server_is_of_one_moment() {
    if !available(&["ldapmodify", "ldapsearch"]) {
        return;
    }
    let (place, server) = sample(PEOPLE);
    let data = place.path().join("data");
    let before = history(&data);
    assert!(before["warnings"][0].as_str().unwrap().contains("there is no backup"), "{before}");
    write(&server, 0, 5);
    let export = Export::begin(&data);
    write(&server, 5, 40);
    until("the export is seen", || metric(&data, "keyway_store_reader_lag") > 0);
    let text = export.read();
    assert!(text.contains("\ndn: cn=added 4,ou=Groups") && !text.contains("\ndn: cn=added 5,"));
    assert!(text.contains("\ndescription: 4\n") && !text.contains("\ndescription: 39\n"));
    assert_eq!(text.matches("\ndn: uid=").count(), PEOPLE as usize);
    until("it is gone", || metric(&data, "keyway_store_reader_lag") == 0);

    // The server dies and is started again meanwhile: the state that the export sees stays as it
    // is.
    let export = Export::begin(&data);
    let pid = Pid::from_raw(server.server_pid() as i32).expect("a pid");
    kill_process(pid, Signal::KILL).expect("a signal");
    until("it is back", || {
        let mut search = server.admin_tool("ldapsearch");
        finish(search.args(["-s", "base", "-b", "", "1.1"]), "").code == 0
    });
    write(&server, 40, 80);
    let text = export.read();
    assert!(text.contains("\ndn: cn=added 39,") && !text.contains("\ndn: cn=added 40,"));
    assert_eq!(text.matches("\ndn: uid=").count(), PEOPLE as usize);

    // It is a backup: it can be imported, and fits together.
    let again = place.path().join("again");
    finish(&mut directory(&again, &["import", "-"]), &text).expect(0);
    finish(&mut directory(&again, &["check"]), "").expect(0);
    assert_eq!(finish(&mut directory(&again, &["export"]), "").expect(0).out, text);

    // One that is killed holds up nothing for long, and leaves no file that looks whole.
    let killed = Export::begin(&data);
    write(&server, 80, 100);
    until("the export is seen", || metric(&data, "keyway_store_reader_lag") > 0);
    killed.kill();
    until("no reader is held up", || metric(&data, "keyway_store_reader_lag") == 0);

    let said = finish(&mut directory(&data, &["check"]), "").expect(0).out;
    assert!(said.contains("fit together; a server runs"), "{said}");
    let all = history(&data);
    assert_eq!(all["warnings"], serde_json::json!([]), "{all}");
    let commands: Vec<_> = all["done"].as_array().expect("a list").iter().map(shown).collect();
    assert_eq!(commands, ["export whole true", "export whole true", "check sound true"]);
    assert_eq!(all["last_export"]["bytes"], text.len());

    // Over LDAP too, and no other user can read the server's file for it.
    until("cn=monitor has it", || {
        let mut search = server.admin_tool("ldapsearch");
        search.args(["-LLL", "-o", "ldif-wrap=no", "-b", "cn=Backups,cn=monitor", "monitoredInfo"]);
        let told = finish(&mut search, "").expect(0).out;
        told.matches("monitoredInfo: command=export\n").count() == 2
            && told.contains("monitoredInfo: verdict=sound\n")
    });
    assert!(server.stop().success());
    finish(&mut directory(&data, &["check"]), "").expect(0);
    let said = finish(&mut directory(&data, &["history"]), "").expect(0).out;
    assert_eq!(said.matches("beside the server").count(), 3, "{said}");
    assert_eq!(said.lines().count(), 4, "{said}");
}

fn shown(done: &Value) -> String {
    let text = |name: &str| done[name].as_str().unwrap_or_default().to_owned();
    format!("{} {} {}", text("command"), text("verdict"), done["served"])
}

#[test]
fn what_goes_wrong_is_written_down_and_a_spoilt_record_is_no_reason_to_fail() {
    let (place, server) = sample(3);
    let data = place.path().join("data");
    finish(&mut directory(&data, &["export", "--base", "cn=none,dc=example,dc=com"]), "").expect(1);
    let part =
        finish(&mut directory(&data, &["export", "--base", "ou=People,dc=example,dc=com"]), "");
    assert_eq!(part.expect(0).out.matches("\ndn: ").count(), 4);
    finish(&mut directory(&data, &["export", "/dev/full"]), "").expect(1);
    let all = history(&data);
    let commands: Vec<_> = all["done"].as_array().expect("a list").iter().map(shown).collect();
    assert_eq!(commands, ["export failed true", "export subtree true", "export failed true"]);
    assert!(all["warnings"].to_string().contains("The last export failed"), "{all}");
    assert_eq!(all["last_export"], Value::Null);
    std::fs::write(data.join("history.jsonl"), b"\xff{").expect("written");
    let file = place.path().join("all.ldif");
    finish(&mut directory(&data, &["export", file.to_str().unwrap()]), "").expect(0);
    let all = history(&data);
    assert_eq!(all["last_export"]["file"], file.to_str().unwrap());
    let mode = std::os::unix::fs::PermissionsExt::mode;
    let record = std::fs::metadata(data.join("history.jsonl")).expect("it is there");
    assert_eq!(mode(&record.permissions()) & 0o777, 0o600);
    // Two may not write the same file: the file in place is whole.
    let others = place.path().join("all.ldif.new");
    let draft = std::fs::File::create(&others).expect("made");
    rustix::fs::flock(&draft, rustix::fs::FlockOperation::LockExclusive).expect("locked");
    let second = finish(&mut directory(&data, &["export", file.to_str().unwrap()]), "").expect(1);
    assert!(second.err.contains("another process writes"), "{}", second.err);
    assert!(others.exists());
    drop(draft);
    finish(&mut directory(&data, &["export", file.to_str().unwrap()]), "").expect(0);
    assert!(!others.exists());
    // Commands that only the owner of a folder may run still wait for the server's end.
    let refused = finish(&mut directory(&data, &["export", "--continue"]), "").expect(1);
    assert!(refused.err.contains("is in use by process"), "{}", refused.err);
    drop(server);
}
