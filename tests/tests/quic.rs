//! `keyway quic`, as a user who moves files and measures calls it, and with other people's QUIC:

use keyway_tests::{Finished, PYTHON, finish, keyway, nightly};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use tempfile::TempDir;

/// Name and length: nothing, less than a packet, about one, several, and more than the windows
/// hold.
const FILES: [(&str, usize); 6] = [
    ("empty", 0),
    ("small", 1),
    ("packet", 1_162),
    ("some", 40_000),
    ("large", 3_000_000),
    ("with space", 77),
];

/// A folder with files in it, served by `keyway quic serve` on a free port.
struct Served {
    place: TempDir,
    child: Child,
    output: BufReader<ChildStdout>,
    ready: Value,
}

impl Served {
    fn start(arguments: &[&str]) -> Served {
        let place = tempfile::tempdir().unwrap();
        let files = place.path().join("files");
        fs::create_dir(&files).unwrap();
        for (name, bytes) in FILES {
            let content: Vec<u8> = (0..bytes).map(|at| (at * 7 + at / 251) as u8).collect();
            fs::write(files.join(name), content).unwrap();
        }
        fs::create_dir(place.path().join("out")).unwrap();
        let (child, output) = started(
            Command::new(keyway())
                .args(["quic", "serve", "--json", "--listen", "127.0.0.1:0", "--data"])
                .arg(place.path().join("data"))
                .arg(&files)
                .args(arguments),
        );
        let mut served = Served { place, child, output, ready: Value::Null };
        served.ready = serde_json::from_str(&served.line()).unwrap();
        served
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }

    fn file(&self, name: &str) -> PathBuf {
        self.place.path().join("files").join(name)
    }

    fn out(&self, name: &str) -> PathBuf {
        self.place.path().join("out").join(name)
    }

    fn url(&self, name: &str) -> String {
        format!("{}/{}", self.ready["url"].as_str().unwrap(), name.replace(' ', "%20"))
    }

    fn address(&self) -> &str {
        self.ready["url"].as_str().unwrap().trim_start_matches("https://")
    }

    fn ca(&self) -> &str {
        self.ready["ca_certificate"].as_str().unwrap()
    }

    /// `keyway quic get` in the folder `out`, believing this server.
    fn get(&self, arguments: &[&str]) -> Finished {
        let mut command = quic("get");
        command.args(["--ca", self.ca()]).args(arguments);
        finish(command.current_dir(self.out("")), "")
    }

    fn assert_fetched(&self) {
        for (name, _) in FILES {
            // Names in URLs stay as they are escaped there.
            let fetched = fs::read(self.out(&name.replace(' ', "%20"))).unwrap();
            assert_eq!(fetched, fs::read(self.file(name)).unwrap(), "{name}");
        }
        assert_eq!(fs::read_dir(self.out("")).unwrap().count(), FILES.len());
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn started(command: &mut Command) -> (Child, BufReader<ChildStdout>) {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    (child, output)
}

fn quic(command: &str) -> Command {
    let mut keyway = Command::new(keyway());
    keyway.args(["quic", command]);
    keyway
}

#[track_caller]
fn refused(command: &mut Command, code: i32, words: &str) {
    let finished = finish(command, "").expect(code);
    assert!(finished.err.contains(words), "{words:?} is not in {:?}", finished.err);
    let lines = finished.err.lines().filter(|line| !line.contains("any certificate is accepted"));
    assert_eq!(lines.count(), 1, "{}", finished.err);
}

#[test]
fn files_of_all_sizes_arrive() {
    for arguments in [&[][..], &["--mtu", "9000"]] {
        let served = Served::start(arguments);
        let urls = FILES.map(|(name, _)| served.url(name));
        let mut all: Vec<&str> = urls.iter().map(String::as_str).collect();
        all.extend(arguments);
        all.push("--json");
        let finished = served.get(&all).expect(0);
        let report: Value = serde_json::from_str(&finished.out).unwrap();
        let bytes: usize = FILES.iter().map(|(_, bytes)| bytes).sum();
        assert_eq!((report["bytes"].as_u64(), finished.err.as_str()), (Some(bytes as u64), ""));
        served.assert_fetched();
    }
}

/// A directory's certificate, whose key its cryptod holds.
#[test]
fn a_key_may_be_in_a_cryptod() {
    let (folder, server) = keyway_tests::sample(1);
    let files = folder.path().join("files");
    fs::create_dir(&files).unwrap();
    fs::write(files.join("one"), "text").unwrap();
    let data = folder.path().join("data");
    let mut serve = quic("serve");
    serve.args(["--json", "--listen", "127.0.0.1:0", "--data"]).arg(&data).arg(&files);
    let (mut child, mut output) = started(&mut serve);
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    let ready: Value = serde_json::from_str(&line).unwrap_or_else(|why| panic!("{line:?}: {why}"));
    let url = format!("{}/one", ready["url"].as_str().unwrap());
    let mut get = quic("get");
    get.args(["--ca", server.text("ca_certificate"), &url, "-o", "-"]);
    assert_eq!(finish(&mut get, "").expect(0).out, "text");
    let _ = child.kill();
    let _ = child.wait();
}

/// Each side with the others' cryptography.
#[test]
fn all_cryptographies_understand_each_other() {
    for (serving, getting) in [("keyway", "ring"), ("ring", "keyway"), ("aws-lc", "keyway")] {
        let served = Served::start(&["--crypto", serving]);
        let url = served.url("large");
        served.get(&[&url, "--crypto", getting]).expect(0);
        assert_eq!(fs::read(served.out("large")).unwrap(), fs::read(served.file("large")).unwrap());
    }
}

#[test]
fn a_file_goes_where_it_is_told_to() {
    let served = Served::start(&[]);
    let (url, content) = (served.url("some"), fs::read(served.file("some")).unwrap());
    served.get(&[&url, "-o", "other"]).expect(0);
    assert_eq!(fs::read(served.out("other")).unwrap(), content);
    fs::create_dir(served.out("folder")).unwrap();
    served.get(&[&url, &served.url("small"), "-o", "folder"]).expect(0);
    assert_eq!(fs::read(served.out("folder/some")).unwrap(), content);
    let shown = served.get(&[&served.url("small"), "-o", "-"]).expect(0);
    assert_eq!(shown.out.as_bytes(), [0]);
    // A target that is not a regular file is written into, not replaced.
    served.get(&[&url, "-o", "/dev/null"]).expect(0);
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
}

#[test]
fn what_cannot_be_had_is_said_and_leaves_nothing() {
    let served = Served::start(&[]);
    fs::write(served.place.path().join("secret"), "secret").unwrap();
    std::os::unix::fs::symlink("../secret", served.file("link")).unwrap();
    fs::create_dir(served.file("folder")).unwrap();
    let get = |name: &str| {
        let mut command = quic("get");
        command.args(["--ca", served.ca(), &served.url(name)]).current_dir(served.out(""));
        command
    };
    for name in ["nothing", "link", "folder", "some/more", ""] {
        refused(&mut get(name), 1, "has no file");
    }
    refused(&mut get("%2e%2e/secret"), 1, "does not understand");
    refused(get("large").args(["-o", "no/such/folder"]), 1, "cannot write");
    refused(get("large").args(["-o", "/dev/full"]), 1, "full");
    // If one of several fails, the others arrive.
    let (there, not) = (served.url("small"), served.url("nothing"));
    let finished = served.get(&[&not, &there]).expect(1);
    assert!(finished.err.contains("has no file /nothing"), "{}", finished.err);
    let left: Vec<_> = fs::read_dir(served.out("")).unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(fs::read(served.out("small")).unwrap(), [0]);
}

#[test]
fn a_server_is_believed_for_a_reason() {
    let served = Served::start(&[]);
    let (url, elsewhere) = (served.url("small"), served.out(""));
    let get = |arguments: &[&str]| {
        let mut command = quic("get");
        command.arg(&url).args(arguments).current_dir(&elsewhere);
        command
    };
    let other = Served::start(&[]);
    refused(&mut get(&["--ca", other.ca()]), 1, "--insecure");
    refused(&mut get(&["--ca", "/dev/null"]), 1, "no certificate");
    refused(&mut get(&["--ca", "/no/such/file"]), 1, "/no/such/file");
    finish(&mut get(&["--insecure"]), "").expect(0);
    assert!(served.out("small").exists());
    // It is found where the server's own command left it.
    fs::rename(served.place.path().join("data"), served.out("keyway-quic")).unwrap();
    fs::remove_file(served.out("small")).unwrap();
    finish(&mut get(&[]), "").expect(0);
}

#[test]
fn wrong_inputs_are_said() {
    let free = UdpSocket::bind("127.0.0.1:0").unwrap();
    let taken = free.local_addr().unwrap().to_string();
    refused(quic("serve").args(["--listen", &taken]), 1, "in use");
    refused(quic("serve").args(["--listen", "localhost"]), 2, "an address and a port");
    refused(quic("serve").arg("/no/such/folder"), 1, "/no/such/folder");
    refused(quic("serve").arg("/dev/null"), 2, "not a folder");
    refused(quic("get").arg("http://localhost/file"), 2, "https://");
    refused(quic("get").arg("localhost/file"), 2, "https://");
    let place = tempfile::tempdir().unwrap();
    let get = |arguments: &[&str]| {
        let mut command = quic("get");
        command.args(["--insecure"]).args(arguments).current_dir(&place);
        command
    };
    let twice = ["https://localhost:1/a/x", "https://localhost:1/b/x"];
    refused(&mut get(&twice), 2, "both be called x");
    refused(get(&twice).args(["-o", "one"]), 2, "make a folder");
    refused(&mut get(&["https://no-such-host.invalid/a"]), 1, "no host no-such-host.invalid");
    drop(free);
    refused(&mut get(&[&format!("https://{taken}/a")]), 1, "no server listens");
    refused(quic("perf").args([&taken, "--insecure"]), 1, "no server listens");
    refused(quic("perf").arg("localhost"), 2, "localhost:4433");
    refused(quic("perf").args(["--bytes", "10T"]), 2, "10G");
    refused(quic("perf").args(["--crypto", "ring", "--group", "x25519mlkem768"]), 2, "--group");
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn an_end_is_told_to_both() {
    let mut served = Served::start(&[]);
    let arguments = ["--test", "download", "--seconds", "600", "--json", "--ca", served.ca()];
    let (mut client, mut output) =
        started(quic("perf").arg(served.address()).args(arguments).stderr(Stdio::piped()));
    // The handshake is over when data comes; it is shown nowhere, so the server's end is taken.
    served.signal(Signal::INT);
    assert!(served.child.wait().unwrap().success());
    let stopped: Value = serde_json::from_str(&served.line()).unwrap();
    assert_eq!(stopped["event"], "stopped");
    assert_eq!(client.wait().unwrap().code(), Some(1));
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    let failed: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&failed["event"], &failed["status"]), (&"failed".into(), &1.into()));
}

#[test]
fn an_interrupted_measurement_shows_what_there_is() {
    let (mut child, mut output) = started(quic("perf").args(["--seconds", "600"]));
    let mut line = String::new();
    // The first test would end in ten minutes; the heading comes with its result.
    kill_when_it_runs(&child);
    output.read_line(&mut line).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(line.contains("keyway"), "{line}");
}

/// As soon as it catches signals.
fn kill_when_it_runs(child: &Child) {
    let status = format!("/proc/{}/status", child.id());
    let catches = || {
        let text = fs::read_to_string(&status).unwrap();
        let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        u64::from_str_radix(caught.trim(), 16).unwrap() & (1 << (2 - 1)) != 0
    };
    while !catches() {
        std::thread::yield_now();
    }
    kill_process(Pid::from_child(child), Signal::INT).unwrap();
}

#[test]
fn a_measurement_measures() {
    for more in
        [&[][..], &["--connections", "2", "--streams", "3", "--cipher", "chacha20-poly1305"]]
    {
        let finished = finish(quic("perf").args(["--seconds", "0.3", "--json"]).args(more), "");
        let report: Value = serde_json::from_str(&finished.expect(0).out).unwrap();
        let tests = report["tests"].as_array().unwrap();
        let names: Vec<_> = tests.iter().map(|test| test["test"].as_str().unwrap()).collect();
        assert_eq!(names, ["upload", "download", "requests", "connections"]);
        for test in tests {
            assert!(test["operations"].as_u64().unwrap() > 0, "{test}");
            assert!(test["bytes"].as_u64().unwrap() > 0, "{test}");
            let shares = test["cpu_share"].as_object().unwrap();
            assert_eq!(shares.len(), 5);
            let sum: f64 = shares.values().map(|share| share.as_f64().unwrap()).sum();
            assert!((0.99..1.5).contains(&sum), "{test}");
        }
    }
    let served = Served::start(&[]);
    let mut perf = quic("perf");
    perf.args([served.address(), "--ca", served.ca(), "--test", "upload", "--test", "download"]);
    let report =
        finish(perf.args(["--bytes", "3000001", "--streams", "2", "--json"]), "").expect(0);
    let report: Value = serde_json::from_str(&report.out).unwrap();
    for (test, bytes) in report["tests"].as_array().unwrap().iter().zip([3_000_001, 3_000_002]) {
        assert_eq!(test["bytes"].as_u64(), Some(bytes), "{test}");
    }
    let classical = Served::start(&["--crypto", "ring"]);
    let with = |group| {
        let mut perf = quic("perf");
        perf.args([classical.address(), "--ca", classical.ca(), "--group", group]);
        perf.args(["--test", "connections", "--seconds", "0.1"]);
        perf
    };
    refused(&mut with("x25519mlkem768"), 1, "no key exchange in common");
    finish(&mut with("x25519"), "").expect(0);
    let shown = finish(quic("perf").args(["--test", "requests", "--seconds", "0.1"]), "").expect(0);
    for part in ["UDP-SEND", "requests", "PACKETS/S", "NS/PACKET", "OVERHEAD"] {
        assert!(shown.out.contains(part), "{part}: {}", shown.out);
    }
    let mean = report["tests"][0]["packets"]["mean_bytes"].as_f64();
    assert!(mean.is_some_and(|bytes| (100.0..1_500.0).contains(&bytes)), "{}", report["tests"][0]);
    assert!(report["tests"][0]["nanoseconds"]["packet"].as_f64() > Some(0.0));
}

/// Where a foreign program is not to be had: says so, or fails where nothing may be skipped.
fn skipped(why: &str) {
    let ci = std::env::var("CI").is_ok_and(|value| value == "true" || value == "1");
    assert!(!ci, "nothing may be skipped in CI: {why}");
    eprintln!("skipped: {why}");
}

fn succeeds(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output().map_err(|why| why.to_string())?;
    let error = String::from_utf8_lossy(&output.stderr);
    let last = error.lines().last().unwrap_or_default();
    if output.status.success() { Ok(()) } else { Err(last.to_owned()) }
}

/// The program on quic-go, built once: it takes Go and a minute, so that only `cargo xtask nightly`
/// does it.
fn quic_go() -> &'static Result<PathBuf, String> {
    static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("quic-go");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/quic-go");
        let usual = Path::new("/usr/local/go/bin/go");
        let go = if usual.exists() { usual } else { Path::new("go") };
        let mut build = Command::new(go);
        build.args(["build", "-buildvcs=false", "-o"]).arg(&program).arg(".").current_dir(source);
        let why =
            |why| format!("quic-go cannot be built (Go 1.21 or later, and its modules): {why}");
        succeeds(&mut build).map(|()| program).map_err(why)
    })
}

const AIOQUIC_VERSIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/python/requirements.txt");

/// A Python that has aioquic: the system's, or one made for the tests.
fn aioquic() -> &'static Result<PathBuf, String> {
    static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let has_it =
            |python: &Path| succeeds(Command::new(python).args(["-c", "import aioquic.asyncio"]));
        if has_it(Path::new(PYTHON)).is_ok() {
            return Ok(PathBuf::from(PYTHON));
        }
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("aioquic");
        let python = folder.join("bin/python3");
        let why =
            |why| format!("aioquic cannot be installed (python3-venv, and its modules): {why}");
        if has_it(&python).is_err() {
            let mut make = Command::new(PYTHON);
            succeeds(make.args(["-m", "venv"]).arg(&folder)).map_err(why)?;
            let mut install = Command::new(&python);
            succeeds(install.args(["-m", "pip", "install", "-q", "-r", AIOQUIC_VERSIONS]))
                .map_err(why)?;
        }
        has_it(&python).map(|()| python).map_err(why)
    })
}

/// The names that are asked of other servers: all but the name that they would escape otherwise.
fn simple() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name).filter(|name| !name.contains(' '))
}

/// Keyway's client at a foreign server, which prints its address first.
fn fetch_from(server: &mut Command) {
    // Its certificates, its files and its client.
    let ours = Served::start(&[]);
    let data = ours.place.path().join("data");
    server.arg(data.join("server.pem")).arg(data.join("server.key"));
    let (mut child, mut output) = started(server.current_dir(ours.file("")));
    let mut address = String::new();
    output.read_line(&mut address).unwrap();
    let urls: Vec<_> = simple().map(|name| format!("https://{}/{name}", address.trim())).collect();
    let urls: Vec<_> = urls.iter().map(String::as_str).collect();
    let finished = ours.get(&urls);
    child.kill().unwrap();
    child.wait().unwrap();
    finished.expect(0);
    for name in simple() {
        let fetched = fs::read(ours.out(name)).unwrap();
        assert_eq!(fetched, fs::read(ours.file(name)).unwrap(), "{name}");
    }
}

#[test]
fn quic_go_fetches_from_us() {
    if !nightly() {
        return;
    }
    match quic_go() {
        Err(why) => skipped(why),
        Ok(program) => {
            let served = Served::start(&[]);
            let mut client = Command::new(program);
            client.args(["get", served.address(), served.ca()]).args(simple());
            finish(client.current_dir(served.file("")), "").expect(0);
        }
    }
}

#[test]
fn we_fetch_from_quic_go() {
    if !nightly() {
        return;
    }
    match quic_go() {
        Err(why) => skipped(why),
        Ok(program) => fetch_from(Command::new(program).arg("serve")),
    }
}

const AIOQUIC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/python/aioquic_hq.py");

/// It also has both sides change their keys while they are connected.
#[test]
fn aioquic_fetches_from_us() {
    match aioquic() {
        Err(why) => skipped(why),
        Ok(python) => {
            let served = Served::start(&[]);
            let (host, port) = served.address().split_once(':').unwrap();
            let mut client = Command::new(python);
            client.args([AIOQUIC, "get", host, port, served.ca()]).args(simple());
            finish(client.current_dir(served.file("")), "").expect(0);
        }
    }
}

#[test]
fn we_fetch_from_aioquic() {
    match aioquic() {
        Err(why) => skipped(why),
        Ok(python) => fetch_from(Command::new(python).args([AIOQUIC, "serve"])),
    }
}
