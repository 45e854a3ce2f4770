//! The user that a server runs as when root has started it.

use crate::support::{
    Finished, KEYWAY, Running, UNPRIVILEGED, bind, copy_program, installed, keyway, until,
};
use keyway_codec::message::ResultCode;
use rustix::process::{Pid, Signal, geteuid, kill_process};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const ADMIN: &str = "cn=admin,cn=keyway";
/// The name of [`UNPRIVILEGED`].
const UNPRIVILEGED_NAME: &str = "nobody";
/// The number of Debian's user `daemon`.
const DAEMON: u32 = 1;

/// A place that all may look into; `None` if we are no root who could become another.
fn place() -> Option<(TempDir, PathBuf)> {
    if !geteuid().is_root() {
        let ci = std::env::var("CI").is_ok_and(|value| value == "true" || value == "1");
        assert!(!ci, "nothing may be skipped in CI, but to become another takes root");
        eprintln!("skipped: to become another user takes root");
        return None;
    }
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let data = place.path().join("data");
    Some((place, data))
}

fn up(data: &Path, arguments: &[&str]) -> Running {
    Running::start(data, &[&["--sample", "0"], arguments].concat())
}

fn refused(command: &str, data: &Path, arguments: &[&str], status: i32, parts: &[&str]) {
    run(command, data, arguments).refused(status, parts);
}

fn run(command: &str, data: &Path, arguments: &[&str]) -> Finished {
    let mut all = vec![command, "--data", data.to_str().unwrap()];
    if command != "cryptod" {
        all.extend(["--listen", "127.0.0.1:0", "--listen-tls", "off", "--sample", "0"]);
    }
    keyway(all.iter().chain(arguments))
}

/// The text behind a word of a process's status.
fn status(process: u32, word: &str) -> Vec<String> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(word)).unwrap();
    line.split_whitespace().map(str::to_owned).collect()
}

/// It is a user's, with that user's group and no other, and there is no way back.
#[track_caller]
fn is_of(process: u32, user: u32) {
    let user = user.to_string();
    assert_eq!(status(process, "Uid:"), vec![user.clone(); 4]);
    assert_eq!(status(process, "Gid:"), vec![user.clone(); 4]);
    assert!(status(process, "Groups:").iter().all(|group| *group == user));
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
        assert_eq!(status(process, set), ["0000000000000000"], "{set}");
    }
    assert_eq!(status(process, "NoNewPrivs:"), ["1"]);
}

fn owners(path: &Path, found: &mut Vec<u32>) {
    let metadata = fs::symlink_metadata(path).unwrap();
    found.push(metadata.uid());
    if metadata.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| owners(&entry.unwrap().path(), found));
    }
}

fn is_all_of(data: &Path, user: u32) {
    let mut found = Vec::new();
    owners(data, &mut found);
    assert!(found.len() > 5 && found.iter().all(|owner| *owner == user), "{found:?}");
}

fn binds(running: &Running, data: &Path) {
    let password = fs::read_to_string(data.join("admin-password")).unwrap();
    assert_eq!(bind(running, ADMIN, &password), ResultCode::Success);
}

fn kill(process: u32) {
    kill_process(Pid::from_raw(process as i32).unwrap(), Signal::KILL).unwrap();
}

/// A port that only root may bind and no program has.
fn low_port() -> String {
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    format!("127.0.0.1:{}", (600..1024).rev().find(is_free).unwrap())
}

#[test]
fn nothing_is_roots_once_the_ports_are_bound() {
    let Some((_place, data)) = place() else { return };
    let (folder, low) = (data.join("below/data"), low_port());
    let start = |arguments: &[&str]| {
        let mut command = Command::new(KEYWAY);
        command.args(["up", "--json", "--sample", "0", "--listen-tls", "127.0.0.1:0"]);
        command.args(["--listen", &low, "--data"]).arg(&folder).args(arguments);
        Running::spawn(&mut command)
    };
    let mut running = start(&["--user", UNPRIVILEGED_NAME]);
    let children = |running: &Running| {
        [running.pid(), running.child("ldapd").unwrap(), running.child("cryptod").unwrap()]
    };
    children(&running).iter().for_each(|process| is_of(*process, UNPRIVILEGED));
    is_all_of(&folder, UNPRIVILEGED);
    // Folders on the way there are whose they would be.
    let above = fs::metadata(&data).unwrap();
    assert_eq!((above.uid(), above.mode() & 0o777), (0, 0o755));
    binds(&running, &folder);
    running.signal(Signal::HUP);
    assert_eq!(running.next_event()["event"], "reloaded");
    // A process that is started again has the same user.
    let [_, ldapd, cryptod] = children(&running);
    kill(cryptod);
    until(|| running.child("cryptod").is_some_and(|it| it != cryptod), "no cryptod");
    kill(ldapd);
    until(|| running.child("ldapd").is_some_and(|it| it != ldapd), "no ldapd");
    binds(&running, &folder);
    children(&running).iter().for_each(|process| is_of(*process, UNPRIVILEGED));
    running.stop();
    // The owner of the folder serves it.
    let running = start(&[]);
    children(&running).iter().for_each(|process| is_of(*process, UNPRIVILEGED));
    binds(&running, &folder);
    running.stop();
    is_all_of(&folder, UNPRIVILEGED);
}

/// A directory that root has run gets a user, and its keys are that user's.
#[test]
fn a_folder_of_roots_is_given_away() {
    let Some((_place, data)) = place() else { return };
    up(&data, &[]).stop();
    is_all_of(&data, 0);
    let configuration = data.join("keyway.toml");
    let text = fs::read_to_string(&configuration).unwrap();
    fs::write(&configuration, text.replace("user = \"\"", "user = \"nobody:daemon\"")).unwrap();
    let running = up(&data, &[]);
    assert_eq!(status(running.server(), "Gid:"), ["1"; 4]);
    assert_eq!(running.text("ca_key"), "cryptod:tls-ca");
    is_all_of(&data, UNPRIVILEGED);
    binds(&running, &data);
    if installed("openssl") {
        let mut client = Command::new("openssl");
        let address = running.text("ldaps").trim_start_matches("ldaps://");
        client.args(["s_client", "-verify_return_error", "-CAfile"]).arg(data.join("ca.pem"));
        crate::support::finish(client.args(["-connect", address]), "").well();
    }
    running.stop();
    // A user who could have written it is not made root by it.
    fs::write(&configuration, text.replace("user = \"\"", "user = \"root\"")).unwrap();
    refused("up", &data, &[], 1, &["[process] user", "only root"]);
    refused("up", &data, &["--user", "daemon"], 1, &["belongs to nobody", "--user 65534"]);
    fs::write(&configuration, text).unwrap();
    // The halves by themselves, and one that takes over.
    let start = |command: &str, arguments: &[&str]| {
        let mut started = Command::new(KEYWAY);
        started.args([command, "--json", "--data"]).arg(&data);
        Running::spawn(started.args(arguments))
    };
    let cryptod = start("cryptod", &[]);
    is_of(cryptod.pid(), UNPRIVILEGED);
    let ldapd = start("ldapd", &["--listen", "127.0.0.1:0", "--listen-tls", "off"]);
    is_of(ldapd.pid(), UNPRIVILEGED);
    let next = start("cryptod", &["--take-over"]);
    assert!(cryptod.end().0.success());
    is_of(next.pid(), UNPRIVILEGED);
    binds(&ldapd, &data);
    ldapd.stop();
    next.stop();
    is_all_of(&data, UNPRIVILEGED);
}

/// A tree that only root may read is read all the same, once: a server that is started again needs it no more.
#[test]
fn an_import_may_be_roots() {
    let Some((place, data)) = place() else { return };
    let closed = place.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    let ldif = closed.join("own.ldif");
    fs::write(&ldif, "dn: o=mine\nobjectClass: organization\no: mine\n").unwrap();
    let running =
        Running::start(&data, &["--import", ldif.to_str().unwrap(), "--user", UNPRIVILEGED_NAME]);
    assert_eq!(running.ready["entries"], 1);
    is_of(running.server(), UNPRIVILEGED);
    running.stop();
}

/// A folder's user leads the configuration elsewhere by a link: root writes no further than that user could.
#[test]
fn a_link_leads_root_nowhere() {
    let Some((place, data)) = place() else { return };
    up(&data, &["--user", UNPRIVILEGED_NAME]).stop();
    let closed = place.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    let (victim, file) = (closed.join("victim"), data.join("keyway.toml"));
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&victim, &text).unwrap();
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink(&victim, &file).unwrap();
    let shown = data.to_str().unwrap();
    for arguments in [&["accept"][..], &["restore"], &["set", "limits.idle_max_s", "77"]] {
        let all = [&["config"], arguments, &["--data", shown]].concat();
        assert_eq!(keyway(all).code, Some(1));
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), text);
    // One that leads to nothing, where the user may write, is filled.
    let apart = place.path().join("apart");
    fs::create_dir(&apart).unwrap();
    chown(&apart, Some(UNPRIVILEGED), Some(UNPRIVILEGED)).unwrap();
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink(apart.join("keyway.toml"), &file).unwrap();
    keyway(["config", "restore", "--data", shown]).well();
    assert_eq!(fs::read_to_string(apart.join("keyway.toml")).unwrap(), text);
    assert!(fs::symlink_metadata(&file).unwrap().is_symlink());
    fs::remove_file(&file).unwrap();
    fs::copy(apart.join("keyway.toml"), &file).unwrap();
    chown(&file, Some(UNPRIVILEGED), Some(UNPRIVILEGED)).unwrap();
    keyway(["config", "set", "limits.idle_max_s", "77", "--data", shown]).well();
    is_all_of(&data, UNPRIVILEGED);
    let running = up(&data, &[]);
    keyway(["config", "set", "limits.idle_max_s", "78", "--data", shown]).well();
    running.stop();
}

/// To one that may not look into it a folder looks empty: that is said, and not what seems to be missing.
#[test]
fn a_folder_that_may_not_be_looked_into_is_called_so() {
    let Some((place, data)) = place() else { return };
    let running = up(&data, &["--user", "daemon"]);
    let program = place.path().join("keyway");
    copy_program(&program);
    let shown = data.to_str().unwrap();
    for arguments in [
        &["metrics"][..],
        &["config", "get"],
        &["config", "diff"],
        &["config", "restore"],
        &["directory", "indexes"],
        &["directory", "advise"],
        &["directory", "export", "-"],
        &["acl", "who-can", "write", "title"],
        &["top", "--cryptod", "--count", "1"],
        &["log"],
        &["load", "search"],
        &["web"],
    ] {
        let mut command = Command::new(&program);
        command.args(arguments).args(["--data", shown]);
        command.uid(UNPRIVILEGED).gid(UNPRIVILEGED).current_dir(place.path());
        crate::support::finish(&mut command, "").refused(1, &[shown, "no permission"]);
    }
    running.stop();
}

/// It is opened before root becomes another, and stays open for a cryptod that is started again.
#[test]
fn a_master_key_may_be_roots() {
    let Some((place, data)) = place() else { return };
    let closed = place.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    let passphrase = closed.join("passphrase");
    fs::write(&passphrase, "correct horse\n").unwrap();
    let key = closed.join("master.key");
    fs::write(&key, [7; 32]).unwrap();
    for file in [&passphrase, &key] {
        fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
    }
    for (kind, file) in [("file", &key), ("passphrase", &passphrase)] {
        let data = data.with_extension(kind);
        let source = format!("{kind}:{}", file.display());
        let running = up(&data, &["--user", UNPRIVILEGED_NAME, "--master", &source]);
        let first = running.child("cryptod").unwrap();
        kill(first);
        until(|| running.child("cryptod").is_some_and(|it| it != first), "no cryptod");
        let list = ["key", "list", "--data", data.to_str().unwrap()];
        until(|| keyway(list).code == Some(0), "it does not serve");
        running.stop();
        assert!(!data.join("cryptod/master.key").exists());
        // Forgotten, it is asked for, and none is made in its place.
        refused("up", &data, &[], 1, &["no master key", "are sealed under one", "--master"]);
        assert!(!data.join("cryptod/master.key").exists());
        // Alone it is the same.
        let mut cryptod = Command::new(KEYWAY);
        cryptod.args(["cryptod", "--json", "--master", &source, "--data"]).arg(&data);
        let cryptod = Running::spawn(&mut cryptod);
        is_of(cryptod.pid(), UNPRIVILEGED);
        cryptod.stop();
    }
}

#[test]
fn what_cannot_be_is_said_and_nothing_is_given_away() {
    let Some((place, data)) = place() else { return };
    refused("up", &data, &["--user", "no such"], 2, &["--user", "there is no user", "useradd"]);
    refused("up", &data, &["--user", "nobody:no such"], 2, &["there is no group"]);
    assert!(!data.exists());
    fs::create_dir(&data).unwrap();
    fs::write(data.join("letter"), "dear").unwrap();
    refused("up", &data, &["--user", UNPRIVILEGED_NAME], 1, &["holds something else"]);
    assert_eq!(fs::metadata(data.join("letter")).unwrap().uid(), 0);
    fs::remove_file(data.join("letter")).unwrap();
    // Others could have put a link into it.
    fs::set_permissions(&data, fs::Permissions::from_mode(0o777)).unwrap();
    refused("up", &data, &["--user", UNPRIVILEGED_NAME], 1, &["is open to others"]);
    fs::set_permissions(&data, fs::Permissions::from_mode(0o700)).unwrap();
    // One that runs keeps what it has.
    let running = up(&data, &["--user", "root"]);
    refused("up", &data, &["--user", UNPRIVILEGED_NAME], 1, &["is in use by process"]);
    is_all_of(&data, 0);
    running.stop();
    // A file that only root may read could not be read again by the server.
    let closed = place.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    let params = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
    let (pem, key_file) = (closed.join("pem"), closed.join("key"));
    fs::write(&pem, params.self_signed(&key).unwrap().pem()).unwrap();
    fs::write(&key_file, key.serialize_pem()).unwrap();
    fs::set_permissions(&key_file, fs::Permissions::from_mode(0o600)).unwrap();
    let text = format!("[tls]\ncertificate = {pem:?}\nkey = {key_file:?}\n");
    fs::write(data.join("keyway.toml"), text).unwrap();
    refused(
        "up",
        &data,
        &["--user", UNPRIVILEGED_NAME],
        1,
        &["cannot be read by nobody", "keyway key import"],
    );
    // Nor does that user get to a folder below it.
    let below = closed.join("data");
    let why = [UNPRIVILEGED_NAME, "cannot reach", "--data DIR"];
    refused("up", &below, &["--user", UNPRIVILEGED_NAME], 1, &why);
    // Root alone can become another.
    let own = place.path().join("own");
    fs::create_dir(&own).unwrap();
    chown(&own, Some(UNPRIVILEGED), Some(UNPRIVILEGED)).unwrap();
    let program = place.path().join("keyway");
    copy_program(&program);
    let mut command = Command::new(program);
    command.args(["up", "--user", "root", "--data"]).arg(&own).uid(UNPRIVILEGED).gid(UNPRIVILEGED);
    crate::support::finish(&mut command, "").refused(1, &["--user root", "only root"]);
    chown(&own, Some(DAEMON), Some(DAEMON)).unwrap();
    refused("cryptod", &own, &["--user", UNPRIVILEGED_NAME], 1, &["belongs to daemon"]);
}

/// All that is below a folder, but for sockets.
fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let (path, kind) = entry.map(|it| (it.path(), it.file_type().unwrap())).unwrap();
        match kind.is_dir() {
            true => files_below(&path, found),
            false if kind.is_file() => found.push(path),
            false => {}
        }
    }
}

fn capabilities(process: u32) -> u64 {
    u64::from_str_radix(&status(process, "CapPrm:")[0], 16).unwrap()
}

/// An intruder in ldapd has its user and its groups: with these alone, without its sandbox, nothing of
/// cryptod's is to be read, and no key to be looked after.
#[test]
fn cryptod_may_be_another_user_than_the_directory() {
    let Some((place, data)) = place() else { return };
    let start = |arguments: &[&str]| up(&data, arguments);
    let both = ["--user", UNPRIVILEGED_NAME, "--cryptod-user", "daemon"];
    // First as one user, with its keys in files: all of that is taken over.
    let mut alone = Command::new(KEYWAY);
    alone.args(["ldapd", "--json", "--listen", "127.0.0.1:0", "--listen-tls", "127.0.0.1:0"]);
    alone.args(["--sample", "0", "--user", UNPRIVILEGED_NAME, "--data"]).arg(&data);
    Running::spawn(&mut alone).stop();
    let certificates = || ["ca.pem", "server.pem"].map(|it| fs::read(data.join(it)).unwrap());
    let before = certificates();
    start(&["--user", UNPRIVILEGED_NAME]).stop();
    is_all_of(&data, UNPRIVILEGED);
    let running = start(&both);
    assert_eq!(certificates(), before);
    let (ldapd, cryptod) = (running.server(), running.child("cryptod").unwrap());
    is_of(ldapd, UNPRIVILEGED);
    let (daemon, unprivileged) = (DAEMON.to_string(), UNPRIVILEGED.to_string());
    assert_eq!(status(cryptod, "Uid:"), vec![daemon; 4]);
    assert_eq!(status(cryptod, "Gid:"), vec![unprivileged; 4]);
    assert!(status(cryptod, "Groups:").is_empty());
    assert_eq!(capabilities(cryptod), 0);
    // CAP_KILL, CAP_SETGID, CAP_SETUID (capability.h).
    assert_eq!(capabilities(running.pid()), 1 << 5 | 1 << 6 | 1 << 7);
    let mut owned = Vec::new();
    owners(&data.join("cryptod"), &mut owned);
    assert!(owned.len() > 5 && owned.iter().all(|owner| *owner == DAEMON), "{owned:?}");
    // As ldapd's user and group.
    let program = place.path().join("keyway");
    copy_program(&program);
    let as_ldapd = |program: &Path, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).uid(UNPRIVILEGED).gid(UNPRIVILEGED).current_dir(place.path());
        crate::support::finish(&mut command, "")
    };
    let mut files = Vec::new();
    files_below(&data.join("cryptod"), &mut files);
    files.retain(|file| !file.ends_with("cryptod/meter"));
    assert!(files.iter().any(|file| file.ends_with("master.key")) && files.len() > 4, "{files:?}");
    for file in &files {
        let read = as_ldapd("/bin/cat".as_ref(), &[file.to_str().unwrap()]);
        assert!(read.code != Some(0) && read.out.is_empty(), "{}", file.display());
        let written = as_ldapd("/bin/cp".as_ref(), &["/dev/null", file.to_str().unwrap()]);
        assert_ne!(written.code, Some(0), "{}", file.display());
    }
    assert_ne!(
        as_ldapd("/bin/ls".as_ref(), &[data.join("cryptod").to_str().unwrap()]).code,
        Some(0)
    );
    let shown = data.to_str().unwrap();
    let other = ["key", "generate", "secret", "--algorithm", "aes-256-gcm", "--for", "user:root"];
    keyway(other.iter().chain(&["--data", shown])).well();
    let list = |listed: &Finished| {
        let listed = listed.json();
        let names = listed["keys"].as_array().unwrap().iter().map(|key| key["name"].clone());
        names.map(|name| name.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let listed = ["key", "list", "--json", "--data", shown];
    assert_eq!(list(&keyway(listed).well()), ["secret", "tls-ca", "tls-server"]);
    assert_eq!(list(&as_ldapd(&program, &listed).well()), ["tls-ca", "tls-server"]);
    for change in [["key", "revoke", "tls-ca"], ["key", "delete", "secret"]] {
        let all = [&change[..], &["--data", shown]].concat();
        let refused = as_ldapd(&program, &all);
        assert_eq!(refused.code, Some(1), "{}", refused.err);
    }
    assert_eq!(list(&keyway(listed).well()), ["secret", "tls-ca", "tls-server"]);
    opens_nothing_of_cryptods(ldapd, &data, &files);
    // It serves, also when it is started again, and the counters can be seen.
    let handshake = || {
        let mut client = Command::new("openssl");
        let address = running.text("ldaps").trim_start_matches("ldaps://");
        client.args(["s_client", "-verify_return_error", "-CAfile"]).arg(data.join("ca.pem"));
        crate::support::finish(client.args(["-connect", address]), "").code == Some(0)
    };
    binds(&running, &data);
    assert!(!installed("openssl") || handshake());
    kill(cryptod);
    until(|| running.child("cryptod").is_some_and(|it| it != cryptod), "no cryptod");
    let second = running.child("cryptod").unwrap();
    until(|| !installed("openssl") || handshake(), "no handshake");
    assert_eq!(status(second, "Uid:"), vec![DAEMON.to_string(); 4]);
    let top = ["top", "--json", "--count", "1", "--interval", "0.05", "--data", shown];
    as_ldapd(&program, &top).well();
    // Another cryptod takes over, as that user, and lets the directory in.
    let mut next = Command::new(KEYWAY);
    next.args(["cryptod", "--json", "--take-over", "--data"]).arg(&data);
    let next = Running::spawn(&mut next);
    assert_eq!(status(next.pid(), "Uid:"), vec![DAEMON.to_string(); 4]);
    let log = || fs::read_to_string(data.join("log/error.log")).unwrap();
    until(|| log().contains(" info take-over "), "nothing is said of it");
    assert!(!log().contains("has ended"), "{}", log());
    until(|| !installed("openssl") || handshake(), "no handshake");
    next.stop();
    until(|| running.child("cryptod").is_some(), "no cryptod");
    // Both end with the supervisor, whatever users they run as.
    let all = [running.server(), running.child("cryptod").unwrap()];
    running.kill();
    let is_gone = |process: &u32| {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('Z'))
    };
    until(|| all.iter().all(is_gone), "one of them is left");
    // The last of its threads has gone.
    until(|| keyway(listed).code != Some(0), "cryptod listens");
    // The owner decides; and it can be made one again.
    let running = start(&[]);
    assert_eq!(status(running.child("cryptod").unwrap(), "Uid:"), vec![DAEMON.to_string(); 4]);
    running.stop();
    let running = start(&["--cryptod-user", UNPRIVILEGED_NAME]);
    is_of(running.child("cryptod").unwrap(), UNPRIVILEGED);
    binds(&running, &data);
    running.stop();
    is_all_of(&data, UNPRIVILEGED);
    refused("up", &data, &["--cryptod-user", "root"], 1, &["--cryptod-user", "no root"]);
    // ldapd's user may rename things in the folder, and does not become cryptod's by that.
    start(&both).stop();
    let rename = |from: &str, to: &str| fs::rename(data.join(from), data.join(to)).unwrap();
    rename("cryptod", "aside");
    for command in ["up", "cryptod"] {
        refused(command, &data, &[], 1, &["data/aside", "daemon's cryptod", "move"]);
    }
    rename("aside", "cryptod");
    start(&[]).stop();
}

/// From inside: ldapd is had to open files, with its user, its groups and its sandbox. (A debugger cannot do that on every
/// processor: gdb 13 writes no registers where there are tiles of AMX.)
#[track_caller]
fn opens_nothing_of_cryptods(ldapd: u32, data: &Path, files: &[PathBuf]) {
    if !installed("python3") {
        return;
    }
    if !cfg!(target_arch = "x86_64") {
        eprintln!("skipped: system calls are made inside of a process on x86-64 only");
        return;
    }
    let own = data.join("keyway.toml");
    let closed: Vec<_> = files.iter().map(PathBuf::as_path).collect();
    let others = [data.join("cryptod"), "/etc/shadow".into(), KEYWAY.into()];
    let mut open = Command::new("python3");
    open.args(["-c", include_str!("open_inside.py"), &ldapd.to_string()]);
    open.args([&*own].into_iter().chain(closed).chain(others.iter().map(PathBuf::as_path)));
    let said = crate::support::finish(&mut open, "");
    let opened: Vec<i64> = said.out.lines().filter_map(|line| line.parse().ok()).collect();
    assert_eq!(opened.len(), 1 + files.len() + others.len(), "{}{}", said.out, said.err);
    assert!(opened[0] >= 0 && opened[1..].iter().all(|file| *file < 0), "{opened:?}");
}
