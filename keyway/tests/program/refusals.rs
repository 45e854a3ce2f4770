//! Cases that a start refuses: one clear line, a status that is not 0, and nothing touched.

use crate::support::{Running, finish, installed, keyway, nightly, with_mounts};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// No other program's ports are taken.
const ANYWHERE: [&str; 5] = ["up", "--listen", "127.0.0.1:0", "--listen-tls", "127.0.0.1:0"];

fn up(data: &Path, more: &[&str]) -> crate::support::Finished {
    let data = data.to_str().unwrap();
    keyway(ANYWHERE.iter().chain(&["--data", data]).chain(more))
}

#[test]
fn a_port_in_use() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap().to_string();
    let up = |flag: &str, off: &str| {
        keyway(["up", flag, &address, off, "off", "--data", data.to_str().unwrap()])
    };
    up("--listen", "--listen-tls").refused(1, &[&address, "in use", "--listen "]);
    up("--listen-tls", "--listen").refused(1, &[&address, "in use", "--listen-tls"]);
    assert!(!data.exists(), "nothing was made for a start that could not be");
    let elsewhere = keyway(["up", "--listen", "192.0.2.1:0", "--data", data.to_str().unwrap()]);
    elsewhere.refused(1, &["192.0.2.1:0"]);
    assert!(!data.exists());
}

#[test]
fn nowhere_to_listen() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let both_off =
        ["up", "--listen", "off", "--listen-tls", "off", "--data", data.to_str().unwrap()];
    keyway(both_off).refused(1, &["listen"]);
}

#[test]
fn a_folder_that_is_not_ours() {
    let place = tempfile::tempdir().unwrap();
    let thesis = place.path().join("thesis.txt");
    fs::write(&thesis, "all of it").unwrap();
    let shown = place.path().to_str().unwrap().to_owned();
    up(place.path(), &[]).refused(1, &[&shown, "something else", "--data"]);
    for command in [&["directory", "import", "-"][..], &["directory", "export"], &["top"]] {
        keyway(command.iter().chain(&["--data", &shown])).refused(1, &[&shown]);
    }
    let left: Vec<_> = fs::read_dir(place.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing was added");
    assert_eq!(fs::read_to_string(thesis).unwrap(), "all of it");
    // A file in the folder's place.
    let file = place.path().join("thesis.txt");
    up(&file, &[]).refused(1, &["thesis.txt", "not a folder"]);
}

#[test]
fn a_folder_of_another_version() {
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let version = place.path().join("version");
    fs::write(&version, "keyway-data 7\nmade 2030-01-01T00:00:00Z\n").unwrap();
    up(place.path(), &[]).refused(1, &["format 7", "reads 1", "export"]);
    fs::write(&version, "something else\n").unwrap();
    up(place.path(), &[]).refused(1, &["version", "not Keyway's"]);
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
}

#[test]
fn a_folder_that_another_instance_uses() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let running = Running::start(&data, &["--sample", "1"]);
    let process = format!("process {}", running.pid());
    let shown = data.to_str().unwrap();
    up(&data, &[]).refused(1, &[shown, "in use", &process]);
    for command in [&["import", "-"][..], &["export", "--continue", "-"]] {
        let arguments = [&["directory"], command, &["--data", shown]].concat();
        keyway(arguments).refused(1, &[&process, "stop it first"]);
    }
    // The port is taken as well then; the process that has the folder matters more.
    let address = running.text("ldap").trim_start_matches("ldap://");
    keyway(["up", "--listen", address, "--data", shown]).refused(1, &[&process]);
    running.stop();
}

#[test]
fn a_folder_or_secret_that_others_can_read() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    Running::start(&data, &["--sample", "0"]).stop();
    let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    set(&data, 0o755).unwrap();
    up(&data, &[]).refused(1, &["755", "chmod 700"]);
    set(&data, 0o700).unwrap();
    fs::write(data.join("server.key"), "").unwrap();
    set(&data.join("server.key"), 0o640).unwrap();
    up(&data, &[]).refused(1, &["server.key", "640", "chmod 600"]);
}

/// On a read-only file system, since root may write into a folder that forbids it.
#[test]
fn a_place_that_cannot_be_written_to() {
    let place = tempfile::tempdir().unwrap();
    let script = "mount -t tmpfs -o ro tmpfs \"$1\" && exec \"$2\" up --data \"$1/data\" \
                  --listen 127.0.0.1:0 --listen-tls off";
    let Some(mut command) = with_mounts(script, place.path()) else { return };
    command.arg(crate::support::KEYWAY);
    finish(&mut command, "").refused(1, &["data", "read-only"]);
    // One that was made when it could be.
    let data = place.path().join("data");
    Running::start(&data, &["--sample", "0"]).stop();
    let script = "mount --bind \"$1\" \"$1\" && mount -o remount,ro,bind \"$1\" && exec \"$2\" up \
                  --data \"$1/data\" --listen 127.0.0.1:0 --listen-tls off";
    let Some(mut command) = with_mounts(script, place.path()) else { return };
    command.arg(crate::support::KEYWAY);
    finish(&mut command, "").refused(1, &["data", "read-only"]);
    Running::start(&data, &[]).stop();
}

/// At whatever point of a first start the room ends.
#[test]
fn a_full_disk_loses_nothing() {
    let place = tempfile::tempdir().unwrap();
    let sizes: &[&str] =
        if nightly() { &["8k", "64k", "700k", "800k", "1m", "1500k"] } else { &["8k", "1m"] };
    let script = "mount -t tmpfs -o size=4k tmpfs \"$1\" || exit\n\
        for size in SIZES; do\n\
        mount -o remount,size=$size \"$1\"\n\
        timeout 60 \"$2\" up --data \"$1/data\" --sample 3000 --listen 127.0.0.1:0 \
            --listen-tls off\n\
        echo \"status $?\" >&2\n\
        done\n\
        mount -o remount,size=64m \"$1\"\n\
        exec \"$2\" up --json --data \"$1/data\" --sample 3000 --listen 127.0.0.1:0 \
            --listen-tls off"
        .replace("SIZES", &sizes.join(" "));
    let Some(mut command) = with_mounts(&script, place.path()) else { return };
    let said = place.path().with_extension("err");
    command.arg(crate::support::KEYWAY).stderr(fs::File::create(&said).unwrap());
    let running = Running::spawn(&mut command);
    assert_eq!(running.ready["entries"], 3 + 3_000 + 30 + 1);
    running.stop();
    let lines = fs::read_to_string(&said).unwrap();
    fs::remove_file(said).unwrap();
    let lines = lines.lines().filter(|line| !line.starts_with("keyway: warning: "));
    let lines: Vec<&str> = lines.collect();
    assert_eq!(lines.len(), 2 * sizes.len(), "{lines:#?}");
    for pair in lines.chunks(2) {
        assert!(pair[0].starts_with("keyway: ") && pair[0].contains("disk is full"), "{lines:#?}");
        assert_eq!(pair[1], "status 1", "{lines:#?}");
    }
}

/// A disk that was filled to the brim while the server was down.
#[test]
fn a_full_disk_is_no_reason_not_to_start_and_deletes_make_room() {
    if !installed("ldapdelete") || !installed("ldapsearch") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let script = "mount -t tmpfs -o size=32m tmpfs \"$1\" && mkfifo \"$1/said\" || exit\n\
        keyway=$2 data=$1/data\n\
        up() { \"$keyway\" up --json --data \"$data\" --listen 127.0.0.1:0 --listen-tls off \"$@\"; }\n\
        up --sample 300 > \"$1/said\" &\n\
        exec 3< \"$1/said\" && read -r _ <&3 && kill -TERM $(cat \"$1/data/lock\") && wait || exit\n\
        exec 3<&-; rm \"$1/data/meter\"\n\
        cat /dev/zero > \"$1/full\"\n\
        exec \"$keyway\" up --json --data \"$data\" --listen 127.0.0.1:0 --listen-tls off";
    let Some(mut command) = with_mounts(script, place.path()) else { return };
    let said = place.path().with_extension("err");
    command.arg(crate::support::KEYWAY).stderr(fs::File::create(&said).unwrap());
    let running = Running::spawn(&mut command);
    assert_eq!(running.ready["first_start"], false);
    let lines = fs::read_to_string(&said).unwrap();
    fs::remove_file(said).unwrap();
    let warned =
        |line: &&str| line.starts_with("keyway: warning: ") && line.contains("disk is full");
    assert_eq!(lines.lines().filter(warned).count(), 1, "{lines}");

    // Its mounts are seen through it alone.
    let server = running.ready["pid"].as_u64().unwrap();
    let inside = |path: &str| format!("/proc/{server}/root{path}");
    let data = inside(running.text("data"));
    keyway(["top", "--count", "1", "--data", &data])
        .refused(1, &[&format!("process {server} uses"), "no counters", "make room"]);
    let tool = |name: &str, arguments: &[&str]| {
        let mut command = Command::new(name);
        command.args(["-x", "-H", running.text("ldap"), "-D", running.text("administrator"), "-y"]);
        command.arg(inside(running.text("administrator_password_file"))).args(arguments);
        finish(command.env("LDAPCONF", "/dev/null"), "").well()
    };
    let base = ["-LLL", "-o", "ldif-wrap=no", "-b", "ou=People,dc=example,dc=com", "uid=*", "1.1"];
    let found = tool("ldapsearch", &base).out;
    let people: Vec<&str> = found.lines().filter_map(|line| line.strip_prefix("dn: ")).collect();
    assert_eq!(people.len(), 300);
    tool("ldapdelete", &people[..100]);
    running.stop();
}

#[test]
fn a_configuration_with_a_mistake() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    Running::start(&data, &["--sample", "0"]).stop();
    let file = data.join("keyway.toml");
    let good = fs::read_to_string(&file).unwrap();
    let cases = [
        (good.replace("idle_max_s = 3600", "idle_max_s = \"long\""), "idle_max_s"),
        (good.replace("scheme = \"argon2id\"", "scheme = \"plain\""), "scheme"),
        (good.replace("uid = [", "userid5 = ["), "userid5"),
        (format!("colour = \"blue\"\n{good}"), "line 1: colour: unknown"),
    ];
    for (text, part) in cases {
        fs::write(&file, text).unwrap();
        up(&data, &[]).refused(1, &["keyway.toml", part]);
    }
    fs::write(&file, good).unwrap();
    Running::start(&data, &[]).stop();
}

/// The program itself, not this test, has the last word on its exit status.
#[test]
fn standard_output_without_a_reader() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(crate::support::KEYWAY);
    command.args(ANYWHERE).args(["--sample", "0", "--data"]).arg(&data).stdout(full);
    let done = command.output().unwrap();
    assert_eq!(done.status.code(), Some(1));
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(said.starts_with("keyway: ") && said.contains("standard output"), "{said}");
}
