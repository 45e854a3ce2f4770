//! The two processes of `keyway up`: what becomes of the rest when one of them dies, and whose keys are
//! where.

use crate::support::{
    Finished, KEYWAY, Running, bind, child_of, finish, hold_of_memory, installed, keyway, nightly,
    until,
};
use base64::Engine;
use keyway_codec::message::ResultCode;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

/// How long an import says nothing in a test: longer than a process that hangs is waited for.
const QUIET: Duration = Duration::from_secs(50);
const ADMIN: &str = "cn=admin,cn=keyway";
const ANYWHERE: [&str; 4] = ["--listen", "127.0.0.1:0", "--listen-tls", "127.0.0.1:0"];

struct Place {
    _place: TempDir,
    data: PathBuf,
}

impl Place {
    fn new() -> Place {
        let place = tempfile::tempdir().unwrap();
        Place { data: place.path().join("data"), _place: place }
    }

    fn shown(&self) -> &str {
        self.data.to_str().unwrap()
    }

    fn up(&self) -> Running {
        Running::start(&self.data, &["--sample", "0"])
    }

    fn run(&self, command: &str) -> Command {
        let mut keyway = Command::new(KEYWAY);
        keyway.args([command, "--json", "--data", self.shown()]);
        keyway
    }

    /// `keyway ldapd` alone, as it may be started by itself.
    fn ldapd(&self) -> Running {
        Running::spawn(self.run("ldapd").args(ANYWHERE).args(["--sample", "0"]))
    }

    /// How a command refuses to serve.
    fn refused(&self, command: &str, parts: &[&str]) {
        let arguments = [command, "--data", self.shown()];
        keyway(arguments.iter().chain(&ANYWHERE)).refused(1, parts);
    }

    fn password(&self) -> String {
        fs::read_to_string(self.data.join("admin-password")).unwrap()
    }

    fn error_log(&self) -> String {
        fs::read_to_string(self.data.join("log/error.log")).unwrap_or_default()
    }

    fn is_there(&self, name: &str) -> bool {
        self.data.join(name).exists()
    }

    fn keys(&self) -> Vec<String> {
        let listed = keyway(["key", "list", "--json", "--data", self.shown()]).well().json();
        let names = listed["keys"].as_array().unwrap().iter().map(|key| &key["name"]);
        names.map(|name| name.as_str().unwrap().to_owned()).collect()
    }
}

fn kill(process: u32, signal: Signal) {
    kill_process(Pid::from_raw(process as i32).unwrap(), signal).unwrap();
}

fn is_alive(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// A handshake of OpenSSL's with the certificate verified.
fn handshake(running: &Running, place: &Place) -> Finished {
    let mut command = Command::new("openssl");
    let address = running.text("ldaps").trim_start_matches("ldaps://").to_owned();
    command.args(["s_client", "-connect", &address, "-verify_return_error", "-CAfile"]);
    command.arg(place.data.join("ca.pem")).args(["-verify_ip", "127.0.0.1"]);
    finish(&mut command, "Q\n")
}

/// The 32 bytes of a private key in a PEM file (RFC 5915 § 3), as they are and turned round.
fn secrets_in(pem: &Path) -> [[u8; 32]; 2] {
    let pem = fs::read_to_string(pem).unwrap();
    let base64: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
    let der = base64::engine::general_purpose::STANDARD.decode(base64).unwrap();
    let at = der.windows(2).position(|window| window == [4, 32]).unwrap() + 2;
    let secret: [u8; 32] = der[at..at + 32].try_into().unwrap();
    let mut turned = secret;
    turned.reverse();
    [secret, turned]
}

/// A client that connects meanwhile waits: no connection is refused.
#[test]
fn a_killed_ldapd_is_started_again_and_its_ports_stay() {
    let place = Place::new();
    let up = place.up();
    let password = place.password();
    let mut top = Command::new(KEYWAY);
    top.args(["top", "--json", "--interval", "0.5", "--data", place.shown()]);
    let watched = place.data.with_extension("top");
    let mut top = Running::spawn(top.stderr(fs::File::create(&watched).unwrap()));
    let (stop, bound) = (AtomicBool::new(false), AtomicUsize::new(0));
    let address = up.text("ldap").trim_start_matches("ldap://").to_owned();
    thread::scope(|scope| {
        let connect = || {
            while !stop.load(Ordering::Relaxed) {
                let mut stream = std::net::TcpStream::connect(&address).expect("it is bound");
                use std::io::Write;
                // An anonymous bind; a connection that is reset has met the one that was killed.
                let _ = stream.write_all(&[0x30, 12, 2, 1, 1, 0x60, 7, 2, 1, 3, 4, 0, 0x80, 0]);
                if stream.read_exact(&mut [0; 14]).is_ok() {
                    bound.fetch_add(1, Ordering::Relaxed);
                }
            }
        };
        let load = [scope.spawn(connect), scope.spawn(connect)];
        let rounds = || {
            let mut server = up.server();
            for round in 1..=3 {
                let before = bound.load(Ordering::Relaxed);
                kill(server, Signal::KILL);
                let line = format!("({round} in a row)");
                until(|| place.error_log().contains(&line), "no line in the log");
                until(|| up.child("ldapd").is_some_and(|id| id != server), "no other process");
                let died = bound.load(Ordering::Relaxed).max(before);
                until(|| bound.load(Ordering::Relaxed) > died + 2, "it does not serve");
                server = up.child("ldapd").unwrap();
            }
        };
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(rounds));
        stop.store(true, Ordering::Relaxed);
        load.into_iter().for_each(|it| it.join().unwrap());
        done.unwrap();
    });
    let log = place.error_log();
    let line =
        format!("ldapd (process {}) was killed by signal 9; it is started again", up.server());
    assert!(log.contains(" error restart ") && log.contains(&line), "{log}");
    assert_eq!(bind(&up, ADMIN, &password), ResultCode::Success);
    // A reader of the file goes on with the new one.
    let watched = || fs::read_to_string(&watched).unwrap();
    until(|| watched().contains("the server was started again"), "it looks at the old one");
    assert!(top.next_event()["since_start"]["bind"].is_u64());
    top.kill();
    // It reads its files again when it is told to, as the first one did.
    fs::write(place.data.join("keyway.toml"), "wrong").unwrap();
    let mut up = up;
    up.signal(Signal::HUP);
    assert_eq!(up.next_event()["event"], "not-reloaded");
    up.stop();
}

#[test]
fn a_killed_cryptod_is_started_again() {
    if !installed("openssl") {
        return;
    }
    let place = Place::new();
    let up = place.up();
    let password = place.password();
    handshake(&up, &place).well();
    for round in 1..=2 {
        kill(up.child("cryptod").unwrap(), Signal::KILL);
        let back = || place.error_log().matches(" info cryptod ").count() == round;
        until(back, "it does not come back");
        assert_eq!(bind(&up, ADMIN, &password), ResultCode::Success);
        handshake(&up, &place).well();
    }
    let log = place.error_log();
    assert_eq!(log.matches("was killed by signal 9; it is started again").count(), 2, "{log}");
    assert_eq!(up.child("ldapd"), Some(up.server()));
    up.stop();
}

#[test]
fn a_killed_supervisor_takes_both_with_it() {
    let place = Place::new();
    for _ in 0..5 {
        let up = place.up();
        let both = [up.server(), up.child("cryptod").unwrap()];
        up.kill();
        // At once: the dying process still has the folder.
        let next = place.up();
        assert!(!both.into_iter().any(is_alive));
        next.stop();
    }
}

/// A signal that a terminal or an init system sends to all of them ends the supervisor alone.
#[test]
fn it_ends_in_order() {
    let place = Place::new();
    let up = place.up();
    let password = place.password();
    let cryptod = up.child("cryptod").unwrap();
    for process in [up.server(), cryptod] {
        kill(process, Signal::TERM);
        kill(process, Signal::INT);
    }
    assert_eq!(bind(&up, ADMIN, &password), ResultCode::Success);
    assert_eq!((up.child("ldapd"), up.child("cryptod")), (Some(up.server()), Some(cryptod)));
    let server = up.server();
    for process in [server, cryptod, up.pid()] {
        kill(process, Signal::TERM);
    }
    let (status, rest) = up.end();
    assert_eq!((status.code(), rest.as_str()), (Some(0), "{\"event\":\"stopped\"}\n"));
    assert!(!is_alive(server) && !is_alive(cryptod) && !place.is_there("cryptod/socket"));
    let log = place.error_log();
    assert!(log.contains(" info stop") && !log.contains(" error "), "{log}");
}

/// A connection that no process takes would wait for nothing; a proxy goes elsewhere with one that is refused.
#[test]
fn it_listens_no_more_while_it_ends() {
    let place = Place::new();
    let up = place.up();
    let cryptod = up.child("cryptod").unwrap();
    let addresses =
        ["ldap", "ldaps"].map(|name| up.text(name).split_once("://").unwrap().1.to_owned());
    // It is waited for at the end.
    kill(cryptod, Signal::STOP);
    up.signal(Signal::TERM);
    until(|| up.child("ldapd").is_none(), "ldapd does not end");
    let refused = addresses.map(|address| TcpStream::connect(address).is_err());
    assert_eq!(up.child("cryptod"), Some(cryptod));
    assert_eq!(refused, [true, true]);
    kill(cryptod, Signal::CONT);
    assert!(up.end().0.success());
}

#[test]
fn one_that_dies_again_and_again_ends_it() {
    let place = Place::new();
    let said = place.data.with_extension("err");
    let mut command = place.run("up");
    command.args(ANYWHERE).args(["--sample", "0"]).stderr(fs::File::create(&said).unwrap());
    let up = Running::spawn(&mut command);
    let mut last = 0;
    until(
        || {
            if let Some(id) = up.child("ldapd").filter(|id| *id != last) {
                kill(id, Signal::KILL);
                last = id;
            }
            place.error_log().contains("giving up")
        },
        "it never gives up",
    );
    let (status, rest) = up.end();
    assert_eq!(status.code(), Some(1));
    assert!(rest.contains("\"event\":\"failed\"") && rest.contains("giving up"), "{rest}");
    let log = place.error_log();
    assert_eq!(log.matches(" error restart ").count(), 7, "{log}");
    assert!(log.contains("in 1600 ms (6 in a row)"), "{log}");
    place.up().stop();
}

/// The terminal that it was started from may be closed: the log says why it does not come back.
#[test]
fn why_one_is_not_started_again_is_in_the_log() {
    let place = Place::new();
    let up = Running::start(&place.data, &["--sample", "20"]);
    let store = fs::File::options().write(true).open(place.data.join("store/data.mdb")).unwrap();
    let end = store.metadata().unwrap().len();
    store.write_all_at(&[0xff; 4096], 2 * 4096).unwrap();
    store.set_len(end / 4096 / 2 * 4096).unwrap();
    kill(up.child("ldapd").unwrap(), Signal::KILL);
    let says = || {
        let log = place.error_log();
        log.lines().any(|line| line.contains(" error start ") && line.contains("damaged"))
    };
    until(says, "it does not say why");
    up.kill();
}

/// One that is stopped, or hangs, is noticed; clients that need nothing of it are served meanwhile.
#[test]
fn one_that_hangs_is_killed_and_started_again() {
    let place = Place::new();
    let up = place.up();
    let password = place.password();
    let cryptod = up.child("cryptod").unwrap();
    kill(cryptod, Signal::STOP);
    // Handshakes wait for its key, as many as there are threads, and more.
    let address = up.text("ldaps").trim_start_matches("ldaps://").to_owned();
    let waiting: Vec<_> = (0..16)
        .map(|_| {
            let mut command = Command::new("openssl");
            command.args(["s_client", "-connect", &address]).stdin(Stdio::piped());
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        })
        .collect();
    for _ in 0..20 {
        assert_eq!(bind(&up, ADMIN, &password), ResultCode::Success);
    }
    assert_eq!(up.child("cryptod"), Some(cryptod), "logins waited for it");
    until(|| up.child("cryptod").is_some_and(|id| id != cryptod), "it is left as it is");
    for mut client in waiting {
        let _ = client.kill();
        client.wait().unwrap();
    }
    // The new cryptod is ready.
    until(|| handshake(&up, &place).code == Some(0), "no handshake is made");
    // Both at once: whichever is killed first finds the other one hanging when it starts again.
    let (ldapd, other) = (up.server(), up.child("cryptod").unwrap());
    kill(ldapd, Signal::STOP);
    kill(other, Signal::STOP);
    until(|| up.child("ldapd").is_some_and(|id| id != ldapd), "it is left as it is");
    until(|| up.child("cryptod").is_some_and(|id| id != other), "it is left as it is");
    until(|| place.error_log().matches(" info start ").count() >= 2, "it does not serve");
    until(|| up.child("ldapd").is_some(), "it is not there");
    assert_eq!(bind(&up, ADMIN, &password), ResultCode::Success);
    let log = place.error_log();
    for (what, process) in [("cryptod", cryptod), ("ldapd", ldapd)] {
        let line = format!(" error hang text=\"{what} (process {process}) hangs, and is killed\"");
        assert!(log.contains(&line), "{log}");
    }
    up.stop();
}

/// Signals without a meaning end neither the supervisor nor its processes.
#[test]
fn other_signals_end_nothing() {
    let place = Place::new();
    let up = place.up();
    let all = [up.pid(), up.server(), up.child("cryptod").unwrap()];
    for signal in [Signal::USR1, Signal::USR2] {
        all.into_iter().for_each(|process| kill(process, signal));
    }
    assert_eq!(bind(&up, ADMIN, &place.password()), ResultCode::Success);
    assert_eq!(handshake(&up, &place).code, Some(0));
    assert_eq!([up.pid(), up.server(), up.child("cryptod").unwrap()], all);
    up.stop();
}

/// One that is stopped before it is ready, at a first start and at a later one.
#[test]
fn one_that_hangs_while_it_starts_is_killed() {
    if !nightly() {
        return;
    }
    let place = Place::new();
    let mut command = place.run("up");
    command.args(ANYWHERE).args(["--sample", "0"]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut up = command.spawn().unwrap();
    let child = |what| child_of(up.id(), what);
    until(|| child("cryptod").is_some(), "it starts none");
    let stopped = child("cryptod").unwrap();
    kill(stopped, Signal::STOP);
    let mut said = String::new();
    up.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    let line = format!("cryptod (process {stopped}) did nothing for half a minute");
    assert!(said.contains(&line), "{said}");
    assert_eq!(up.wait().unwrap().code(), Some(1));
    let up = place.up();
    let (first, mut stopped) = (up.child("cryptod").unwrap(), None);
    kill(first, Signal::KILL);
    let stop_the_next = || {
        stopped = up.child("cryptod").filter(|id| *id != first);
        stopped.inspect(|id| kill(*id, Signal::STOP)).is_some()
    };
    until(stop_the_next, "it starts no other one");
    let stopped = stopped.unwrap();
    until(|| up.child("cryptod").is_some_and(|id| id != stopped), "it is left as it is");
    until(|| place.error_log().matches(" info cryptod ").count() > 0, "it does not come back");
    up.stop();
}

/// The source of an import may be quiet for longer than a process that hangs is waited for.
#[test]
fn an_import_may_be_quiet() {
    if !nightly() {
        return;
    }
    let place = Place::new();
    let mut command = place.run("up");
    command.args(ANYWHERE).args(["--import", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut up = command.spawn().unwrap();
    let mut input = up.stdin.take().unwrap();
    for entry in
        ["dn: o=x\nobjectClass: organization\n\n", "dn: o=y\nobjectClass: organization\n\n"]
    {
        thread::sleep(QUIET);
        input.write_all(entry.as_bytes()).unwrap();
    }
    drop(input);
    let mut ready = String::new();
    BufReader::new(up.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    assert!(ready.contains("\"o=y\""), "{ready}");
    kill(up.id(), Signal::TERM);
    assert!(up.wait().unwrap().success());
}

/// A file is not opened if that would wait for a process that may not exist.
#[test]
fn a_fifo_is_refused_at_once() {
    let place = Place::new();
    place.up().stop();
    let fifo = |name: &str| {
        let path = place.data.join(name);
        let made = Command::new("mkfifo").args(["-m", "600"]).arg(&path).status().unwrap();
        assert!(made.success());
        path
    };
    let passphrase = fifo("passphrase");
    let master = format!("passphrase:{}", passphrase.display());
    let up = ["up", "--data", place.shown(), "--master", &master];
    keyway(up.iter().chain(&ANYWHERE)).refused(2, &["is no plain file"]);
    for name in ["log/access.log", "log/error.log", "log/audit.log"] {
        let log = place.data.join(name);
        fs::remove_file(&log).unwrap();
        fifo(name);
        place.refused("up", &[name]);
        fs::remove_file(&log).unwrap();
    }
    place.up().stop();
}

/// An end that was asked for comes, although the process that is to end first hangs.
#[test]
fn one_that_hangs_holds_up_no_end() {
    if !nightly() {
        return;
    }
    let place = Place::new();
    let up = place.up();
    let ldapd = up.server();
    kill(ldapd, Signal::STOP);
    up.signal(Signal::TERM);
    let (status, _) = up.end();
    assert!(!status.success(), "{status}");
    let line = format!("process {ldapd} was asked to end and hangs, and is killed");
    assert!(place.error_log().contains(&line), "{}", place.error_log());
}

/// As an earlier version left it, or ldapd alone: the keys are in files.
#[test]
fn key_files_are_given_to_cryptod_once() {
    let place = Place::new();
    place.ldapd().stop();
    let [ca, server] = ["ca.key", "server.key"].map(|name| place.data.join(name));
    let (kept_ca, kept_server) = (place.data.join("../ca"), place.data.join("../server"));
    fs::copy(&ca, &kept_ca).unwrap();
    fs::copy(&server, &kept_server).unwrap();
    let certificates =
        || ["ca.pem", "server.pem"].map(|name| fs::read(place.data.join(name)).unwrap());
    let before = certificates();
    let said = place.data.with_extension("err");
    let start = || {
        let mut command = place.run("up");
        Running::spawn(command.args(ANYWHERE).stderr(fs::File::create(&said).unwrap()))
    };
    let up = start();
    let lines = fs::read_to_string(&said).unwrap();
    for part in ["ca.key is removed: cryptod holds", "server.key is removed: cryptod holds"] {
        assert!(lines.contains(part), "{lines}");
    }
    assert!(!ca.exists() && !server.exists());
    assert_eq!(place.keys(), ["tls-ca", "tls-server"]);
    assert_eq!(certificates(), before);
    let ([one, two], [three, four]) = (secrets_in(&kept_ca), secrets_in(&kept_server));
    let secrets = [one, two, three, four];
    if let Some(held) = hold_of_memory(up.child("cryptod").unwrap(), &secrets) {
        assert!(held[0] + held[1] > 0 && held[2] + held[3] > 0, "{held:?}");
        for process in [up.server(), up.pid()] {
            assert_eq!(hold_of_memory(process, &secrets), Some([0; 4]));
        }
    }
    up.stop();
    // Killed after cryptod had them and before the files were removed.
    fs::copy(&kept_ca, &ca).unwrap();
    fs::copy(&kept_server, &server).unwrap();
    start().kill();
    assert!(!ca.exists() && !server.exists());
    let up = start();
    assert_eq!(place.keys(), ["tls-ca", "tls-server"]);
    up.stop();
    // One that does not fit is left where it is, and nothing changes.
    fs::copy(&kept_ca, &server).unwrap();
    place.refused("up", &["server.key cannot be used: it is not the key of ", "server.pem"]);
    assert!(server.exists());
    fs::remove_file(server).unwrap();
    start().stop();
    assert_eq!(certificates(), before);
}

/// The first of the two has no use for files, the second none for a daemon.
#[test]
fn each_can_be_started_alone() {
    if !installed("openssl") {
        return;
    }
    let place = Place::new();
    place.up().stop();
    assert!(!place.is_there("ca.key") && !place.is_there("server.key"));
    let parts = ["the keys of ", "no cryptod listens at ", "keyway cryptod --data", "keyway up"];
    place.refused("ldapd", &parts);
    let cryptod = Running::spawn(&mut place.run("cryptod"));
    let ldapd = place.ldapd();
    handshake(&ldapd, &place).well();
    assert_eq!(ldapd.text("ca_key"), "cryptod:tls-ca");
    ldapd.stop();
    // With both beside it, keyway up looks after ldapd only, until the other one ends.
    let said = place.data.with_extension("err");
    let mut up = place.run("up");
    let up = Running::spawn(up.args(ANYWHERE).stderr(fs::File::create(&said).unwrap()));
    assert!(fs::read_to_string(&said).unwrap().contains("listens at "));
    assert_eq!(up.child("cryptod"), None);
    handshake(&up, &place).well();
    cryptod.stop();
    until(|| up.child("cryptod").is_some(), "it starts none of its own");
    until(|| place.error_log().contains(" info cryptod "), "ldapd does not find it");
    handshake(&up, &place).well();
    up.stop();
    // A first start of ldapd whose keys are to be in a daemon that runs.
    let place = Place::new();
    let cryptod = Running::spawn(&mut place.run("cryptod"));
    let socket = place.data.join("cryptod/socket");
    let mut ldapd = place.run("ldapd");
    ldapd.args(ANYWHERE).args(["--sample", "0", "--cryptod"]).arg(&socket);
    Running::spawn(&mut ldapd).stop();
    assert!(!place.is_there("ca.key") && !place.is_there("server.key"));
    assert_eq!(place.keys(), ["tls-ca", "tls-server"]);
    cryptod.stop();
}

#[test]
fn what_one_of_them_refuses_is_said_once() {
    let place = Place::new();
    place.up().stop();
    let keys = place.data.join("cryptod/keys");
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o755)).unwrap();
    place.refused("up", &["cannot open the key store", "cryptod/keys", "chmod go="]);
    let arguments = ["up", "--json", "--data", place.shown()];
    let done = keyway(arguments.iter().chain(&ANYWHERE));
    assert_eq!((done.code, done.err.as_str()), (Some(1), ""));
    assert_eq!(done.json()["event"], "failed");
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(place.data.join("server.pem"), "nothing").unwrap();
    place.refused("up", &["server.pem", "no certificate in it"]);
    fs::write(place.data.join("server.pem"), "-----BEGIN CERTIFICATE-----\nMIIB\n").unwrap();
    place
        .refused("up", &["server.pem", "does not end: there is no line -----END CERTIFICATE-----"]);
    let done = keyway(arguments.iter().chain(&ANYWHERE));
    assert_eq!((done.code, done.err.as_str(), &done.json()["status"]), (Some(1), "", &1.into()));
}

/// The path of cryptod's socket is longer than that of a socket may be.
#[test]
fn a_data_folder_may_have_a_long_name() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("a/".repeat(20)).join("b".repeat(90));
    let up = Running::start(&data, &["--sample", "0"]);
    keyway(["key", "list", "--data", data.to_str().unwrap()]).well();
    up.stop();
}

/// The steps of systemd before it starts a service of sockets.
const LAUNCH: &str = "
import os, socket, sys
sockets = []
for number in range(2):
    s = socket.socket()
    s.bind(('127.0.0.1', 0))
    s.listen(16)
    sockets.append(s)
high = [os.dup2(s.fileno(), 100 + i) for i, s in enumerate(sockets)]
for i, fd in enumerate(high):
    os.dup2(fd, 3 + i)
    os.close(fd)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='2', LISTEN_FDNAMES=sys.argv[1])
os.execv(sys.argv[2], sys.argv[2:])
";

#[test]
fn it_takes_sockets_and_says_when_it_is_ready() {
    if !installed("python3") || !installed("openssl") {
        return;
    }
    for (command, names) in [("up", "ldaps:ldap"), ("ldapd", "keyway.socket:keyway.socket")] {
        let place = Place::new();
        let notified = place.data.with_extension("notify");
        let notifications = std::os::unix::net::UnixDatagram::bind(&notified).unwrap();
        let said = || {
            let mut text = [0; 256];
            let bytes = notifications.recv(&mut text).unwrap();
            String::from_utf8(text[..bytes].to_vec()).unwrap()
        };
        let mut launcher = Command::new("python3");
        launcher.args(["-c", LAUNCH, names, KEYWAY, command, "--json", "--sample", "0"]);
        // The ports that it would take otherwise belong to another program.
        launcher.args(["--listen", "192.0.2.1:1", "--data", place.shown()]);
        let running = Running::spawn(launcher.env("NOTIFY_SOCKET", &notified));
        assert_eq!(said(), "READY=1");
        handshake(&running, &place).well();
        assert_eq!(bind(&running, ADMIN, &place.password()), ResultCode::Success);
        running.signal(Signal::TERM);
        assert_eq!(said(), "STOPPING=1");
        let (status, _) = running.end();
        assert!(status.success(), "{status}");
        notifications.set_nonblocking(true).unwrap();
        notifications.recv(&mut [0; 64]).unwrap_err();
    }
    let place = Place::new();
    let mut launcher = Command::new("python3");
    launcher.args(["-c", LAUNCH, "ldap:ldap", KEYWAY, "up", "--data", place.shown()]);
    let finished = finish(launcher.stdin(Stdio::null()), "");
    finished.refused(1, &["FileDescriptorName=ldap or ldaps"]);
    assert!(!place.data.exists());
}
