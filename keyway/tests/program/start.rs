//! The first start, the second, and the end.

use crate::support::{Finished, KEYWAY, Running, but_for_root, finish, keyway};
use keyway_meter::Reader;
use rustix::process::Signal;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_first_start_makes_everything_and_a_second_opens_it() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let first = Running::start(&data, &["--sample", "40"]);
    let ready = &first.ready;
    assert_eq!(ready["event"], "ready");
    assert_eq!(ready["first_start"], true);
    assert_eq!(ready["entries"], 3 + 40 + 10 + 1);
    assert_eq!(ready["naming_contexts"], serde_json::json!(["dc=example,dc=com"]));
    assert_eq!(ready["administrator"], "cn=admin,cn=keyway");
    assert_eq!(ready["pid"], first.pid());
    assert_eq!(ready["data"], data.to_str().unwrap());
    assert_eq!(ready["try"].as_array().unwrap().len(), 3);
    let files = [
        ("ca_certificate", 0o644),
        ("administrator_password_file", 0o600),
        ("sample_password_file", 0o600),
        ("meter", 0o600),
        ("configuration", 0o644),
    ];
    for (name, wanted) in files {
        assert_eq!(mode(Path::new(first.text(name))), wanted, "{name}");
    }
    assert_eq!(mode(&data), 0o700);
    assert_eq!(mode(&data.join("store")), 0o700);
    assert_eq!(first.text("ca_key"), "cryptod:tls-ca");
    assert_eq!(mode(&data.join("cryptod/keys/tls-server.key")), 0o600);
    assert!(!data.join("server.key").exists() && !data.join("ca.key").exists());
    let admin = fs::read(first.text("administrator_password_file")).unwrap();
    let sample = fs::read(first.text("sample_password_file")).unwrap();
    for password in [&admin, &sample] {
        assert!(password.len() >= 20 && password.iter().all(u8::is_ascii_alphanumeric));
    }
    let made = first.text("made").to_owned();
    first.stop();

    let second = Running::start(&data, &[]);
    assert_eq!(second.ready["first_start"], false);
    assert_eq!(second.ready["entries"], 54);
    assert_eq!(second.text("made"), made);
    assert_eq!(fs::read(second.text("administrator_password_file")).unwrap(), admin);
    second.stop();
}

#[test]
fn what_it_prints_for_people() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let first = until_ready(&data, &["--sample", "3"]);
    let password = fs::read_to_string(data.join("admin-password")).unwrap();
    let sample = fs::read_to_string(data.join("sample-password")).unwrap();
    let shown = data.to_str().unwrap();
    for part in
        ["ldap://127.0.0.1:", "ldaps://127.0.0.1:", shown, "ldapsearch", "ldapwhoami -x -ZZ"]
    {
        assert!(first.out.contains(part), "{part:?} is not in\n{}", first.out);
    }
    for part in ["top --data", "LDAPTLS_CACERT=", "admin-password", "sample-password", "10 entries"]
    {
        assert!(first.out.contains(part), "{part:?} is not in\n{}", first.out);
    }
    assert!(!first.out.contains(&password) && !first.out.contains(&sample));
    assert_eq!(first.err, "");
    let second = until_ready(&data, &[]);
    assert!(second.out.contains("10 entries") && second.out.contains("made 20"), "{}", second.out);
}

/// The file with the administrator's password is spoken of while that is in it.
#[test]
fn it_names_a_password_file_that_is_right_and_no_other() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let right = until_ready(&data, &["--sample", "0"]).out;
    let file = data.join("admin-password");
    let asked = "ldapsearch -x -H ldaps://";
    assert!(right.contains(&format!("password in {}", file.display())), "{right}");
    assert!(right.contains(asked) && !right.contains(" -W "), "{right}");
    fs::write(&file, "another").unwrap();
    let stale = until_ready(&data, &[]).out;
    assert!(stale.contains("password changed since") && stale.contains(" -W "), "{stale}");
    fs::remove_file(&file).unwrap();
    let gone = until_ready(&data, &[]).out;
    for part in ["password not in a file", "keyway admin password", " -W "] {
        assert!(gone.contains(part), "{part:?} is not in\n{gone}");
    }
    assert!(!gone.contains("admin-password"), "{gone}");
    let running = Running::start(&data, &[]);
    assert!(running.ready["administrator_password_file"].is_null());
    running.stop();
}

/// Runs `keyway up` for people until it has said all, stops it, and returns what it said.
fn until_ready(data: &Path, arguments: &[&str]) -> Finished {
    let mut child = Command::new(KEYWAY)
        .args(["up", "--listen", "127.0.0.1:0", "--listen-tls", "127.0.0.1:0", "--data"])
        .arg(data)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = String::new();
    let mut bytes = [0; 4096];
    while !out.contains("Ctrl-C") {
        let got = child.stdout.as_mut().unwrap().read(&mut bytes).unwrap();
        assert!(got > 0, "it ended: {out}");
        out.push_str(std::str::from_utf8(&bytes[..got]).unwrap());
    }
    let pid = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
    rustix::process::kill_process(pid, Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    out.push_str(&String::from_utf8(output.stdout).unwrap());
    let err = but_for_root(&String::from_utf8(output.stderr).unwrap());
    Finished { code: output.status.code(), out, err }.well()
}

#[test]
fn it_stops_in_good_order_on_both_signals() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    for signal in [Signal::INT, Signal::TERM] {
        let running = Running::start(&data, &["--sample", "1"]);
        // A client that is connected and says nothing does not hold it up, and is told.
        let address: SocketAddr =
            running.text("ldap").trim_start_matches("ldap://").parse().unwrap();
        let mut idle = TcpStream::connect(address).unwrap();
        running.signal(signal);
        let (status, rest) = running.end();
        assert_eq!(status.code(), Some(0));
        assert!(rest.contains("\"event\":\"stopped\""), "{rest}");
        let mut farewell = Vec::new();
        // The order of the connection and the stop is not known; a connection that was not accepted
        // yet is reset by the system.
        let _ = idle.read_to_end(&mut farewell);
        let notice = b"1.3.6.1.4.1.1466.20036";
        assert!(farewell.is_empty() || farewell.windows(notice.len()).any(|w| w == notice));
    }
}

#[test]
fn it_survives_its_readers_end_and_a_kill() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    Running::start(&data, &["--sample", "5"]).kill();
    let again = Running::start(&data, &[]);
    assert_eq!(again.ready["entries"], 3 + 5 + 5 + 1);
    assert_eq!(again.ready["first_start"], false);
    again.stop();
}

#[test]
fn one_door_is_enough() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let mut command = Command::new(KEYWAY);
    command.args(["up", "--json", "--listen", "off", "--listen-tls", "127.0.0.1:0"]);
    let running = Running::spawn(command.args(["--sample", "0", "--data"]).arg(&data));
    assert!(running.ready["ldap"].is_null());
    assert!(running.text("ldaps").starts_with("ldaps://127.0.0.1:"));
    assert_eq!(running.ready["entries"], 3);
    assert!(running.ready["sample_password_file"].is_null());
    running.stop();
}

#[test]
fn a_first_start_with_ones_own_tree() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let ldif = place.path().join("own.ldif");
    let text = "dn: o=mine\nobjectClass: organization\no: mine\n\n\
                dn: cn=x,o=mine\nobjectClass: person\ncn: x\nsn: y\n";
    fs::write(&ldif, text).unwrap();
    let running = Running::start(&data, &["--import", ldif.to_str().unwrap()]);
    assert_eq!(running.ready["entries"], 2);
    assert_eq!(running.ready["naming_contexts"], serde_json::json!(["o=mine"]));
    assert!(running.ready["sample_password_file"].is_null());
    assert!(!data.join("sample-password").exists());
    running.stop();
    // A second time it would not be imported, and must not seem to be.
    let data = data.to_str().unwrap();
    let again = ["up", "--listen", "127.0.0.1:0", "--listen-tls", "off", "--data", data];
    let refused = keyway(again.iter().chain(&["--import", ldif.to_str().unwrap()]));
    refused.refused(1, &["holds a directory already", "keyway directory import"]);
}

#[test]
fn a_first_start_whose_tree_is_wrong_goes_on_when_it_is_right() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let ldif = place.path().join("own.ldif");
    let text = "dn: o=mine\nobjectClass: organization\no: mine\n\n\
                dn: cn=x,o=mine\nobjectClass: person\ncn: x\n";
    fs::write(&ldif, text).unwrap();
    let import = ["--import", ldif.to_str().unwrap()];
    let start = |data: &Path, more: &[&str]| {
        let up = ["up", "--listen", "127.0.0.1:0", "--listen-tls", "off", "--data"];
        keyway(up.iter().chain(&[data.to_str().unwrap()]).chain(more))
    };
    start(&data, &import).refused(1, &["own.ldif", "line 5", "cn=x,o=mine", "sn", "start again"]);
    start(&data, &["--import", "/dev/null"]).refused(1, &["own.ldif", "not finished"]);
    fs::write(&ldif, format!("{text}sn: y\n")).unwrap();
    let running = Running::start(&data, &import);
    assert_eq!(running.ready["entries"], 2);
    assert_eq!(running.ready["first_start"], true);
    running.stop();
    let other = place.path().join("other");
    start(&other, &["--import", "/no/missing.ldif"]).refused(1, &["missing.ldif", "No such file"]);
    assert!(!other.exists());
}

/// It serves all the same, and says what is in the way.
#[test]
fn a_folder_in_the_place_of_the_counters() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    Running::start(&data, &["--sample", "0"]).stop();
    fs::remove_file(data.join("meter")).unwrap();
    fs::create_dir(data.join("meter")).unwrap();
    let said = place.path().join("err");
    let mut command = Command::new(KEYWAY);
    command.args(["up", "--json", "--listen", "127.0.0.1:0", "--listen-tls", "off", "--data"]);
    command.arg(&data).stderr(fs::File::create(&said).unwrap());
    Running::spawn(&mut command).stop();
    let said = fs::read_to_string(&said).unwrap();
    let words = "meter: Is a directory; move it away and start again\n";
    assert!(said.lines().any(|line| format!("{line}\n").ends_with(words)), "{said}");
}

/// A sample is made in many commits.
#[test]
fn a_first_start_that_was_killed_is_finished_by_the_next() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let mut command = Command::new(KEYWAY);
    command.args(["up", "--listen", "127.0.0.1:0", "--listen-tls", "off", "--sample", "3000"]);
    let mut child = command.arg("--data").arg(&data).stdout(Stdio::null()).spawn().unwrap();
    let meter = data.join("meter");
    let changes = || Reader::open(&meter).ok()?.snapshot().ok()?.value("store.changes");
    while changes().unwrap_or_default() < 1_000 {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let running = Running::start(&data, &["--sample", "3"]);
    assert_eq!(running.ready["entries"], 3 + 3_000 + 30 + 1, "the first size counts");
    running.stop();
}

#[test]
fn both_passwords_open_the_directory() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let running = Running::start(&data, &["--sample", "2"]);
    let address: SocketAddr = running.text("ldap").trim_start_matches("ldap://").parse().unwrap();
    let admin = fs::read(running.text("administrator_password_file")).unwrap();
    let sample = fs::read(running.text("sample_password_file")).unwrap();
    let person = "uid=anna.weber,ou=People,dc=example,dc=com";
    assert_eq!(bind(address, "cn=admin,cn=keyway", &admin), 0);
    assert_eq!(bind(address, person, &sample), 0);
    assert_eq!(bind(address, person, &admin), 49);
    running.stop();
}

/// Binds and returns the result code.
fn bind(address: SocketAddr, dn: &str, password: &[u8]) -> u8 {
    let mut request =
        vec![0x02, 1, 1, 0x60, (dn.len() + password.len() + 7) as u8, 0x02, 1, 3, 0x04];
    request.push(dn.len() as u8);
    request.extend(dn.as_bytes());
    request.extend([0x80, password.len() as u8]);
    request.extend(password);
    request.splice(0..0, [0x30, request.len() as u8]);
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(&request).unwrap();
    let mut answer = [0; 10];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer[5], 0x61, "{answer:02x?}");
    answer[9]
}

/// A relative data folder is printed from the root, so that what is pasted elsewhere works.
#[test]
fn paths_are_whole() {
    let place = tempfile::tempdir().unwrap();
    let mut command = Command::new(KEYWAY);
    command.current_dir(place.path()).args(["up", "--json", "--sample", "0"]);
    let running =
        Running::spawn(command.args(["--listen", "127.0.0.1:0", "--listen-tls", "127.0.0.1:0"]));
    assert_eq!(Path::new(running.text("data")), place.path().join("keyway-data"));
    running.stop();
    let export =
        finish(Command::new(KEYWAY).current_dir(place.path()).args(["directory", "export"]), "");
    assert!(export.well().out.contains("dn: dc=example,dc=com"));
}

#[test]
fn too_few_open_files_are_spoken_of() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    // The soft limit is raised to the hard one, which is enough for fewer connections.
    let script = "ulimit -Sn 100 && ulimit -Hn 300 && exec \"$0\" \"$@\"";
    let start = |said: &Path| {
        let mut command = Command::new("sh");
        command.args([
            "-c",
            script,
            KEYWAY,
            "up",
            "--json",
            "--sample",
            "0",
            "--listen-tls",
            "off",
        ]);
        command.args(["--listen", "127.0.0.1:0", "--data"]).arg(&data);
        Running::spawn(command.stderr(fs::File::create(said).unwrap())).stop();
        but_for_root(&fs::read_to_string(said).unwrap())
    };
    let said = start(&place.path().join("said"));
    for part in ["300 files", "connections_max = 10000", "10160", "serves 140 ", "LimitNOFILE"] {
        assert!(said.contains(part), "{part:?} is not in {said:?}");
    }
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(fs::read_to_string(data.join("log/error.log")).unwrap().contains(" warning limit "));
    let file = data.join("keyway.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("connections_max = 10000", "connections_max = 100")).unwrap();
    let again = start(&place.path().join("again"));
    assert!(!again.contains("files open"), "{again}");
}

/// In a terminal of its own, which then goes: it gets a SIGHUP, and what it says cannot be written.
#[test]
fn a_closed_terminal_stops_no_server() {
    const SCRIPT: &str = r#"
import os, pty, re, signal, socket, sys, time
program, data = sys.argv[1:]
pid, terminal = pty.fork()
if pid == 0:
    os.execv(program, [program, "up", "--sample", "0", "--listen", "127.0.0.1:0",
                       "--listen-tls", "off", "--data", data])
said = b""
while b"Ctrl-C" not in said:
    said += os.read(terminal, 4096)
port = int(re.search(rb"ldap://127.0.0.1:(\d+)", said).group(1))
os.close(terminal)
log = os.path.join(data, "log", "error.log")
for _ in range(600):
    if " info reload" in open(log).read():
        break
    time.sleep(0.05)
else:
    sys.exit("no SIGHUP came, or it was not heeded")
os.kill(pid, signal.SIGHUP)
client = socket.create_connection(("127.0.0.1", port))
client.sendall(bytes([0x30, 12, 2, 1, 1, 0x60, 7, 2, 1, 3, 4, 0, 0x80, 0]))
assert client.recv(100)[-7:] == bytes([10, 1, 0, 4, 0, 4, 0])
os.kill(pid, signal.SIGTERM)
status = os.waitpid(pid, 0)[1]
assert status == 0, status
"#;
    let place = tempfile::tempdir().unwrap();
    let mut python = Command::new("python3");
    python.args(["-c", SCRIPT, KEYWAY]).arg(place.path().join("data"));
    finish(&mut python, "").well();
}

/// A first start takes as long as its import, and its starter may leave: the server comes up, and
/// reads again what it had begun with. It is told when it has opened what it imports.
#[test]
fn a_hangup_ends_no_first_start() {
    let place = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    command.arg("-c").arg(
        "mkfifo \"$2\" || exit\n\
         { exec 3> \"$2\"; kill -HUP $$; printf '%s\\n' 'dn: o=x' 'objectClass: organization' 'o: x' >&3; } &\n\
         exec \"$1\" up --json --import \"$2\" --data \"$3\" --listen 127.0.0.1:0 --listen-tls off",
    );
    command.args(["sh", KEYWAY]).arg(place.path().join("fifo")).arg(place.path().join("data"));
    let mut running = Running::spawn(&mut command);
    assert_eq!(running.ready["naming_contexts"][0], "o=x");
    assert_eq!(running.next_event()["event"], "reloaded");
    running.stop();
}
