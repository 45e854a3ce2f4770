//! `keyway cryptod`: the clients it serves, how it ends, and what it refuses to begin.

use crate::support::{
    Finished, KEYWAY, Running, UNPRIVILEGED, copy_program, finish, installed, keyway,
};
use keyway_conformance::{Plan, run};
use keyway_drivers::remote::{Remote, RemoteOptions};
use keyway_drivers::software;
use keyway_engine::{Algorithm, Engine, Key, Parameters, Session};
use keyway_ring::control::{self, Answer, Ask, VERSION};
use rustix::process::{Signal, geteuid};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use tempfile::TempDir;

fn command(data: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(KEYWAY);
    command.args(["cryptod", "--json", "--data"]).arg(data).args(arguments);
    command
}

fn start(data: &Path, arguments: &[&str]) -> Running {
    let running = Running::spawn(&mut command(data, arguments));
    assert_eq!(running.ready["event"], "ready");
    running
}

/// The error it prints when it cannot begin.
fn refused(data: &Path, arguments: &[&str], code: i32, parts: &[&str]) {
    let data = ["cryptod", "--data", data.to_str().unwrap()];
    keyway(data.iter().chain(arguments)).refused(code, parts);
}

/// An engine that has nothing but the daemon.
fn connect(socket: &Path) -> (Engine, Remote) {
    let engine = Engine::builder().build();
    let remote = Remote::connect(&engine, RemoteOptions::new(socket, "test")).unwrap();
    (engine, remote)
}

fn gcm(engine: &Engine) -> Session {
    engine.session(Parameters::new(Algorithm::Aes128Gcm, Key::Secret(&[7; 16]))).unwrap()
}

/// A sealed text and its tag.
fn sealed(session: &Session) -> ([u8; 4], [u8; 16]) {
    let mut text = *b"text";
    let tag = session.seal(&[0; 12], b"", &mut text).unwrap();
    (text, tag)
}

fn is_served(socket: &Path) {
    let (engine, _remote) = connect(socket);
    assert_eq!(sealed(&gcm(&engine)), sealed(&gcm(&keyway_drivers::engine())));
}

/// A daemon that is stopped hands over when it goes on; meanwhile that is said.
#[test]
fn a_take_over_that_has_to_wait_says_so() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let old = start(&data, &[]);
    old.signal(Signal::STOP);
    let mut next = command(&data, &["--take-over"]);
    let mut next = next.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    let mut notes = BufReader::new(next.stderr.take().unwrap());
    while !said.contains("has not handed over yet") {
        said.clear();
        assert!(notes.read_line(&mut said).unwrap() > 0, "it ended");
    }
    old.signal(Signal::CONT);
    assert!(old.end().0.success());
    let mut ready = String::new();
    BufReader::new(next.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    assert!(ready.contains("\"event\":\"ready\""), "{ready}");
    next.kill().unwrap();
    next.wait().unwrap();
}

/// As the file of the master key itself.
#[test]
fn a_passphrase_is_for_its_owner_alone() {
    let place = tempfile::tempdir().unwrap();
    let (data, file) = (place.path().join("data"), place.path().join("passphrase"));
    fs::write(&file, "correct horse\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    let master = format!("passphrase:{}", file.display());
    refused(&data, &["--master", &master], 1, &["passphrase", "others than this user", "chmod"]);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    start(&data, &["--master", &master]).stop();
}

#[test]
fn it_serves_until_it_is_told_to_stop() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let running = start(&data, &["--pumps", "2"]);
    let socket = data.join("cryptod/socket");
    assert_eq!(running.text("socket"), socket.to_str().unwrap());
    assert_eq!(
        (&running.ready["pid"], &running.ready["pumps"]),
        (&running.pid().into(), &2.into())
    );
    assert_eq!(running.ready["sandbox"], true);
    let there = fs::symlink_metadata(&socket).unwrap();
    assert!(there.file_type().is_socket());
    assert_eq!(there.permissions().mode() & 0o777, 0o660);
    assert_eq!(fs::metadata(data.join("cryptod")).unwrap().permissions().mode() & 0o777, 0o700);
    is_served(&socket);
    // A second daemon names the way out, and harms no other process.
    refused(&data, &[], 1, &[socket.to_str().unwrap(), "another daemon listens", "--socket PATH"]);
    is_served(&socket);
    running.signal(Signal::TERM);
    let (status, rest) = running.end();
    assert!(status.success(), "{status}");
    assert_eq!(rest, "{\"event\":\"stopped\"}\n");
    assert!(!socket.exists());
}

#[test]
fn remains_of_a_killed_one_block_no_other() {
    let place = tempfile::tempdir().unwrap();
    let socket = place.path().join("cryptod/socket");
    start(place.path(), &[]).kill();
    assert!(socket.exists());
    let running = start(place.path(), &[]);
    is_served(&socket);
    running.stop();
}

/// Everything that a client can ask for, of a process that has given up what it does not need. Its
/// socket, which lies elsewhere, it can still remove.
#[test]
fn its_sandbox_blocks_no_other() {
    use Algorithm::*;
    let place = tempfile::tempdir().unwrap();
    let socket = place.path().join("socket");
    let path = socket.to_str().unwrap();
    let running = start(&place.path().join("data"), &["--socket", path]);
    let status = fs::read_to_string(format!("/proc/{}/status", running.pid())).unwrap();
    let has = |line: &str| status.lines().any(|it| it == line);
    assert!(has("Seccomp:\t2") && has("NoNewPrivs:\t1"), "{status}");
    let (_engine, remote) = connect(&socket);
    let only = vec![
        Aes128Gcm,
        QuicAes128Gcm,
        Zstd,
        Sha256,
        HkdfSha256,
        X25519,
        Ed25519,
        RsaOaepSha256,
        Random,
        Scrypt,
    ];
    let plan = Plan { rounds: 1, only: Some(only), ..Plan::default() };
    let report = run(remote.driver().unwrap(), software(), &plan, &mut |_| {});
    let failures: Vec<_> = report.failures().map(ToString::to_string).collect();
    assert!(report.passed(), "{}", failures.join("\n"));
    drop(remote);
    running.stop();
    assert!(!socket.exists());
}

/// A client that works all the time sees nothing of three successions.
#[test]
fn a_new_one_takes_the_place_of_the_old() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path();
    let socket = data.join("cryptod/socket");
    refused(data, &["--take-over"], 1, &[socket.to_str().unwrap(), "without --take-over"]);
    let mut running = start(data, &[]);
    let (engine, _remote) = connect(&socket);
    let session = gcm(&engine);
    let known = sealed(&gcm(&keyway_drivers::engine()));
    // Keys of handshakes under way, which are nowhere else.
    let made = [Algorithm::X25519, Algorithm::EcdhP256, Algorithm::MlKem768].map(|algorithm| {
        let parameters = Parameters::new(algorithm, Key::Generate);
        let session = engine.session(parameters).unwrap();
        let public = session.public_key().unwrap();
        (session, public)
    });
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let mut done = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                assert_eq!(sealed(&session), known);
                done += 1;
            }
            done
        });
        for _ in 0..3 {
            let next = start(data, &["--take-over"]);
            assert_eq!(next.text("socket"), socket.to_str().unwrap());
            let (status, rest) = std::mem::replace(&mut running, next).end();
            assert!(status.success(), "{status}");
            assert_eq!(rest, "{\"event\":\"handed over\"}\n");
            is_served(&socket);
        }
        stop.store(true, Ordering::Relaxed);
        assert!(worker.join().unwrap() > 0);
    });
    for (session, public) in &made {
        assert_eq!(session.public_key().as_ref(), Ok(public), "{:?}", session.algorithm());
    }
    running.stop();
    assert!(!socket.exists());
}

#[test]
fn what_makes_no_sense_is_said() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path();
    refused(data, &["--pumps", "0"], 2, &["--pumps"]);
    refused(data, &["--allow-everybody", "--allow-user", "0"], 2, &["cannot be used with"]);
    refused(data, &["--allow-user", "no such"], 2, &["no such", "a name or a number"]);
    refused(data, &["--allow-group", "no such"], 2, &["no such", "a name or a number"]);
    let missing = data.join("missing");
    refused(data, &["--allow-program", missing.to_str().unwrap()], 1, &["missing"]);
    // The folder of its own socket is closed to those who are let in.
    refused(data, &["--allow-user", "65534"], 2, &["only this user", "--socket PATH"]);
    refused(data, &["--allow-everybody"], 2, &["only this user", "--socket PATH"]);
    let long = data.join("x".repeat(120));
    refused(data, &["--socket", long.to_str().unwrap()], 1, &["longer", "--socket PATH"]);
    let file = data.join("file");
    fs::write(&file, "of another").unwrap();
    refused(data, &["--socket", file.to_str().unwrap()], 1, &["something else", "--socket PATH"]);
    assert_eq!(fs::read(&file).unwrap(), b"of another");
    refused(&file, &[], 1, &["cannot make the folder", "file/cryptod"]);
}

/// A place that the unprivileged user may look into, with the program in it; `None` if the test does
/// not run as root and cannot become another user.
fn others_place() -> Option<(TempDir, PathBuf)> {
    if !geteuid().is_root() {
        let ci = std::env::var("CI").is_ok_and(|value| value == "true" || value == "1");
        assert!(!ci, "nothing may be skipped in CI, but another user takes root");
        eprintln!("skipped: to be another user takes root");
        return None;
    }
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = place.path().join("keyway");
    copy_program(&program);
    Some((place, program))
}

fn as_unprivileged(program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.arg("cryptod").args(arguments).uid(UNPRIVILEGED).gid(UNPRIVILEGED);
    command
}

#[test]
fn another_user_gets_no_more_than_allowed() {
    let Some((place, program)) = others_place().filter(|_| installed("python3")) else { return };
    let finished = |arguments: &[&str]| -> Finished {
        finish(as_unprivileged(&program, arguments).current_dir(place.path()), "")
    };
    // Nothing may be made here.
    finished(&[]).refused(1, &["cannot make the folder", "no permission", "keyway-data/cryptod"]);
    let socket = place.path().join("socket");
    let path = socket.to_str().unwrap();
    let own = place.path().join("own");
    fs::create_dir(&own).unwrap();
    std::os::unix::fs::chown(&own, Some(UNPRIVILEGED), Some(UNPRIVILEGED)).unwrap();
    let own = own.to_str().unwrap();
    finished(&["--data", own, "--socket", path]).refused(1, &["listen at", path, "no permission"]);
    let take_over = ["--data", own, "--socket", path, "--take-over"];
    let data = place.path().join("data");
    // Not listed, the user does not even get to the daemon. Listed, the user is a client, and not
    // the daemon's successor.
    let running = start(&data, &["--socket", path]);
    finished(&take_over).refused(1, &[path, "run as its user"]);
    running.stop();
    let running = start(&data, &["--socket", path, "--allow-user", "65534"]);
    finished(&take_over).refused(1, &[path, "run as its user"]);
    is_served(&socket);
    assert!(is_admitted(&socket));
    running.stop();
    // A daemon that lets in a group only, which the user is not in.
    let running = start(&data, &["--socket", path, "--allow-group", "12345"]);
    assert!(!is_admitted(&socket));
    running.stop();
    // As root's program is not the listed one, root is turned away; the daemon has to see root's
    // program.
    let program = program.to_str().unwrap();
    let running =
        start(&data, &["--socket", path, "--allow-everybody", "--allow-program", program]);
    assert!(!is_admitted(&socket));
    is_served(&socket);
    running.stop();
    // And a daemon of the user's own.
    let mut command = as_unprivileged(Path::new(program), &["--json", "--data", own]);
    let running = Running::spawn(&mut command);
    is_served(&Path::new(own).join("cryptod/socket"));
    running.stop();
}

/// Says hello as the unprivileged user.
fn is_admitted(socket: &Path) -> bool {
    const HELLO: &str = "
import os, socket, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(sys.argv[1])
try: s.send(bytes.fromhex(sys.argv[2]))
except BrokenPipeError: pass
print(s.recv(32768).hex())
";
    let hello = Ask::Hello { version: VERSION, name: "unprivileged".to_owned() };
    let hello: String =
        control::encode(&hello).unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
    let mut python = Command::new("python3");
    python.args(["-c", HELLO]).arg(socket).arg(hello);
    let answer = finish(&mut python, "").well().out;
    let answer: Vec<u8> = answer
        .trim()
        .as_bytes()
        .chunks(2)
        .map(|digits| u8::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap())
        .collect();
    match control::decode_answer(&answer).unwrap() {
        Answer::Hello { .. } => true,
        Answer::Refused { why, .. } => {
            assert!(why.contains("not among the daemon's clients"), "{why}");
            false
        }
        other => panic!("{other:?}"),
    }
}

/// The steps of systemd before it starts a service of a socket: it listens, at 3 and upwards, and
/// says so.
const LAUNCH: &str = "
import os, socket, sys
kind, count, path = getattr(socket, sys.argv[1]), int(sys.argv[2]), sys.argv[3]
sockets = []
for number in range(count):
    s = socket.socket(socket.AF_UNIX, kind)
    s.bind(path + str(number))
    s.listen(16)
    sockets.append(s)
# Above those that they are put at.
high = [os.dup2(s.fileno(), 100 + i) for i, s in enumerate(sockets)]
for i, fd in enumerate(high):
    os.dup2(fd, 3 + i)
    os.close(fd)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(count))
os.execv(sys.argv[4], sys.argv[4:])
";

fn launch(kind: &str, count: &str, path: &Path, data: &Path) -> Command {
    let mut launcher = Command::new("python3");
    launcher.args(["-c", LAUNCH, kind, count]).arg(path).arg(KEYWAY);
    launcher.args(["cryptod", "--data"]).arg(data);
    launcher
}

#[test]
fn it_takes_a_socket_from_its_starter_and_says_how_it_is() {
    if !installed("python3") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("activated");
    let notified = place.path().join("notify");
    let notifications = UnixDatagram::bind(&notified).unwrap();
    let said = || {
        let mut text = [0; 256];
        let bytes = notifications.recv(&mut text).unwrap();
        String::from_utf8(text[..bytes].to_vec()).unwrap()
    };
    let data = place.path().join("data");
    let mut launcher = launch("SOCK_SEQPACKET", "1", &path, &data);
    let running = Running::spawn(launcher.arg("--json").env("NOTIFY_SOCKET", &notified));
    assert!(running.ready["socket"].is_null());
    assert_eq!(said(), "READY=1");
    let socket = place.path().join("activated0");
    is_served(&socket);
    running.signal(Signal::TERM);
    assert_eq!(said(), "STOPPING=1");
    let (status, _) = running.end();
    assert!(status.success(), "{status}");
    // It is whose it was.
    assert!(socket.exists() && !data.join("cryptod/socket").exists());
    fs::remove_file(&socket).unwrap();
    // One that takes over is the main process from then on, and the socket is not its either.
    let mut running = Running::spawn(launcher.env("NOTIFY_SOCKET", &notified));
    assert_eq!(said(), "READY=1");
    for _ in 0..2 {
        let mut taking = command(&data, &["--take-over", "--socket", socket.to_str().unwrap()]);
        let next = Running::spawn(taking.env("NOTIFY_SOCKET", &notified));
        let (both, main) = ([said(), said()], format!("MAINPID={}", next.pid()));
        assert!(both.contains(&main) && both.contains(&format!("READY=1\n{main}")), "{both:?}");
        let (status, _) = std::mem::replace(&mut running, next).end();
        assert!(status.success(), "{status}");
        is_served(&socket);
    }
    running.signal(Signal::TERM);
    assert_eq!(said(), "STOPPING=1");
    assert!(running.end().0.success() && socket.exists());
    // A socket that is not for messages, and more than one socket.
    let refused = |kind, count, parts: &[&str]| {
        let path = place.path().join(format!("{kind}{count}-"));
        finish(&mut launch(kind, count, &path, &data), "").refused(1, parts);
    };
    refused("SOCK_STREAM", "1", &["ListenSequentialPacket=PATH"]);
    refused("SOCK_SEQPACKET", "2", &["2 sockets", "ListenSequentialPacket="]);
}
