//! Parts of a running server that the system and a debugger can see.

use crate::support::{PAGE, Running, UNPRIVILEGED, copy_program, hold_of_memory, keyway, mappings};
use landlock::{Compatible, RulesetAttr};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

fn process(process: u32, file: &str) -> String {
    fs::read_to_string(format!("/proc/{process}/{file}")).unwrap()
}

fn core_limit(process: u32) -> Vec<String> {
    let limits = self::process(process, "limits");
    let line = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    line.split_whitespace().skip(4).take(2).map(str::to_owned).collect()
}

fn status(process: u32, field: &str) -> String {
    let status = self::process(process, "status");
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().to_owned()
}

/// The server, as an ordinary user on that user's folder; `None` if the test does not run as root.
fn as_unprivileged(data: &Path, arguments: &[&str]) -> Option<Running> {
    if !rustix::process::geteuid().is_root() {
        let ci = std::env::var("CI").is_ok_and(|value| value == "true" || value == "1");
        assert!(!ci, "nothing may be skipped in CI, but another user takes root");
        eprintln!("skipped: to be another user takes root");
        return None;
    }
    fs::set_permissions(data.parent().unwrap(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir_all(data).unwrap();
    std::os::unix::fs::chown(data, Some(UNPRIVILEGED), Some(UNPRIVILEGED)).unwrap();
    // The program lies where no other user may look.
    let program = data.parent().unwrap().join("keyway");
    copy_program(&program);
    let mut command = Command::new(program);
    command.args(["up", "--json", "--listen", "127.0.0.1:0", "--listen-tls", "127.0.0.1:0"]);
    command.args(["--sample", "0", "--data"]).arg(data).args(arguments);
    Some(Running::spawn(command.uid(UNPRIVILEGED).gid(UNPRIVILEGED)))
}

#[test]
fn a_server_leaves_no_core_and_gains_no_rights() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let running = Running::start(&data, &["--sample", "0"]);
    let cryptod = running.child("cryptod").unwrap();
    assert_eq!(running.child("ldapd"), Some(running.server()));
    for process in [running.pid(), running.server(), cryptod] {
        assert_eq!(core_limit(process), ["0", "0"]);
        assert_eq!(status(process, "NoNewPrivs:"), "1");
        assert_eq!(status(process, "Umask:"), "0077");
    }
    // They have given up most system calls.
    for process in [running.server(), cryptod] {
        assert_eq!(status(process, "Seccomp:"), "2");
    }
    // It can still be watched.
    let data = data.to_str().unwrap();
    let top = keyway(["top", "--json", "--count", "1", "--interval", "0.05", "--data", data]);
    assert!(top.well().out.contains('{'));
    running.stop();
}

/// A server does not get at files that it was not started with, and says so; when it is started again it
/// does.
#[test]
fn a_server_keeps_to_its_folders() {
    let place = tempfile::tempdir().unwrap();
    let (data, logs) = (place.path().join("data"), place.path().join("logs"));
    let shown = data.to_str().unwrap();
    fs::create_dir(&logs).unwrap();
    let set = |key: &str, value: &str| keyway(["config", "set", "--data", shown, key, value]);
    let running = Running::start(&data, &["--sample", "0"]);
    let outside = logs.to_str().unwrap();
    if has_landlock() {
        let words = ["not changed", "no permission", "the folders that it was started with"];
        set("log.folder", outside).refused(1, &words);
        assert_eq!(fs::read_dir(&logs).unwrap().count(), 0);
        // Nor does it read there.
        fs::write(logs.join("clients.pem"), "nothing").unwrap();
        let file = logs.join("clients.pem");
        set("tls.client_ca", file.to_str().unwrap()).refused(1, &["clients.pem", "no permission"]);
        fs::remove_file(file).unwrap();
    }
    // Its own it can do with what it likes, and what others put into it.
    set("log.file_bytes_max", "65536").well();
    set("log.folder", "other").well();
    assert!(data.join("other/error.log").exists());
    running.stop();
    let text = fs::read_to_string(data.join("keyway.toml")).unwrap();
    let elsewhere = text.replace("folder = \"other\"", &format!("folder = {outside:?}"));
    fs::write(data.join("keyway.toml"), elsewhere).unwrap();
    let running =
        Running::start(&data, &["--listen-unix", place.path().join("s").to_str().unwrap()]);
    assert!(logs.join("error.log").exists() && place.path().join("s").exists());
    running.stop();
    // The target of a link counts as if it were here.
    let store = place.path().join("store");
    fs::rename(data.join("store"), &store).unwrap();
    std::os::unix::fs::symlink(&store, data.join("store")).unwrap();
    let running = Running::start(&data, &[]);
    set("limits.idle_max_s", "77").well();
    running.stop();
    // An operator who looks for a fault may run it without.
    let running = Running::start(&data, &["--no-sandbox"]);
    for process in [running.server(), running.child("cryptod").unwrap()] {
        assert_eq!(status(process, "Seccomp:"), "0");
    }
    set("log.folder", place.path().join("more").to_str().unwrap()).well();
    running.stop();
}

/// Whether the system has Landlock; said on standard error if not. In CI that is a failure.
fn has_landlock() -> bool {
    let Err(why) = landlock::Ruleset::default()
        .set_compatibility(landlock::CompatLevel::HardRequirement)
        .handle_access(landlock::AccessFs::ReadFile)
        .and_then(landlock::Ruleset::create)
    else {
        return true;
    };
    let ci = std::env::var("CI").is_ok_and(|value| value == "true" || value == "1");
    assert!(!ci, "nothing may be skipped in CI, but this system has no Landlock: {why}");
    eprintln!("skipped in part: this system has no Landlock ({why})");
    false
}

/// Keys lie wherever libraries allocate: that is locked. ldapd has read the file, and keeps nothing of it.
#[test]
fn a_servers_key_is_in_cryptods_locked_memory_only() {
    if !rustix::process::geteuid().is_root() {
        let ci = std::env::var("CI").is_ok_and(|value| value == "true" || value == "1");
        assert!(!ci, "nothing may be skipped in CI, but to lock memory takes root");
        eprintln!("skipped: to lock memory without a limit, and to look into it, takes root");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    // One of the owner's, which we know.
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    let params = rcgen::CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    fs::create_dir(&data).unwrap();
    fs::set_permissions(&data, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(data.join("server.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
    fs::write(data.join("server.key"), key.serialize_pem()).unwrap();
    fs::set_permissions(data.join("server.key"), fs::Permissions::from_mode(0o600)).unwrap();
    let running = Running::start(&data, &["--sample", "10"]);
    assert!(!data.join("server.key").exists());
    // The private key is an octet string of 32 bytes (RFC 5915 § 3); libraries may turn it round.
    let der = key.serialized_der();
    let at = der.windows(2).position(|window| window == [4, 32]).unwrap() + 2;
    let key: [u8; 32] = der[at..at + 32].try_into().unwrap();
    let mut turned = key;
    turned.reverse();
    for process in [running.pid(), running.server()] {
        assert_eq!(hold_of_memory(process, &[key, turned]), Some([0, 0]));
    }
    let store =
        mappings(running.server()).into_iter().find(|(_, name, _)| name.ends_with("data.mdb"));
    assert!(!store.unwrap().2, "the store, which may be larger than memory, is locked");
    let cryptod = running.child("cryptod").unwrap();
    let open = |file: &str| File::open(format!("/proc/{cryptod}/{file}")).unwrap();
    let (memory, pages) = (open("mem"), open("pagemap"));
    let (mut locked_copies, mut other_copies) = (0, 0);
    for (range, _, locked) in mappings(cryptod) {
        for start in range.step_by(PAGE as usize) {
            let (mut present, mut page) = ([0; 8], [0; PAGE as usize]);
            // Bit 63 says that the page is in memory (Linux's pagemap.rst).
            if pages.read_exact_at(&mut present, start / PAGE * 8).is_err()
                || u64::from_ne_bytes(present) >> 63 == 0
                || memory.read_exact_at(&mut page, start).is_err()
            {
                continue;
            }
            let copies = page.windows(32).filter(|window| *window == key || *window == turned);
            match locked {
                true => locked_copies += copies.count(),
                false => other_copies += copies.count(),
            }
        }
    }
    assert!(locked_copies > 0);
    assert_eq!(other_copies, 0);
    running.stop();
}

/// One that may not lock everything locks nothing: at a limit, allocations would fail.
#[test]
fn a_limit_on_locked_memory_is_no_reason_not_to_start() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let Some(running) = as_unprivileged(&data, &[]) else { return };
    assert_eq!(status(running.server(), "VmLck:"), "0");
    running.stop();
}

/// The files in `/proc` of a process that cannot be traced belong to root, and no other process of
/// its user can look into its memory.
#[test]
fn no_process_of_its_user_looks_into_a_server() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let Some(running) = as_unprivileged(&data, &[]) else { return };
    let owner = |process: u32, file| fs::metadata(format!("/proc/{process}/{file}")).unwrap().uid();
    for process in [running.pid(), running.server(), running.child("cryptod").unwrap()] {
        assert_eq!((owner(process, "environ"), owner(process, "mem")), (0, 0));
        assert!(!can_look_into(process));
    }
    running.stop();
    // Unless the operator wants it so.
    let Some(running) = as_unprivileged(&data, &["--allow-debugging"]) else { return };
    assert!(can_look_into(running.server()) && can_look_into(running.child("cryptod").unwrap()));
    assert_eq!(status(running.server(), "NoNewPrivs:"), "1");
    running.stop();
}

/// Whether another process of the same user may read what is the server's own. (Its memory, too,
/// but where the system lets only parents trace, that says nothing.)
fn can_look_into(process: u32) -> bool {
    let mut command = Command::new("sh");
    command.args(["-c", "exec 3</proc/$1/environ", "sh", &process.to_string()]);
    command.stderr(std::process::Stdio::null());
    command.uid(UNPRIVILEGED).gid(UNPRIVILEGED).status().unwrap().success()
}
