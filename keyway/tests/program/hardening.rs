//! What a running server gives away of itself, as the system and a debugger see it.

use crate::support::{KEYWAY, Running, keyway};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Debian's `nobody`.
const NOBODY: u32 = 65534;

fn process(running: &Running, file: &str) -> String {
    fs::read_to_string(format!("/proc/{}/{file}", running.pid())).unwrap()
}

fn core_limit(running: &Running) -> Vec<String> {
    let limits = process(running, "limits");
    let line = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    line.split_whitespace().skip(4).take(2).map(str::to_owned).collect()
}

fn status(running: &Running, field: &str) -> String {
    let status = process(running, "status");
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().to_owned()
}

/// The server, as an ordinary user on a folder of his; `None` if we are no root who could.
fn as_nobody(data: &Path, arguments: &[&str]) -> Option<Running> {
    if !rustix::process::geteuid().is_root() {
        let ci = std::env::var("CI").is_ok_and(|value| value == "true" || value == "1");
        assert!(!ci, "nothing may be skipped in CI, but another user takes root");
        eprintln!("skipped: to be another user takes root");
        return None;
    }
    fs::set_permissions(data.parent().unwrap(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir_all(data).unwrap();
    std::os::unix::fs::chown(data, Some(NOBODY), Some(NOBODY)).unwrap();
    // The program lies where nobody else may look.
    let program = data.parent().unwrap().join("keyway");
    fs::copy(KEYWAY, &program).unwrap();
    let mut command = Command::new(program);
    command.args(["up", "--json", "--listen", "127.0.0.1:0", "--listen-tls", "127.0.0.1:0"]);
    command.args(["--sample", "0", "--data"]).arg(data).args(arguments);
    Some(Running::spawn(command.uid(NOBODY).gid(NOBODY)))
}

#[test]
fn a_server_leaves_no_core_and_gains_no_rights() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let running = Running::start(&data, &["--sample", "0"]);
    assert_eq!(core_limit(&running), ["0", "0"]);
    assert_eq!(status(&running, "NoNewPrivs:"), "1");
    assert_eq!(status(&running, "Umask:"), "0077");
    // It can still be watched.
    let data = data.to_str().unwrap();
    let top = keyway(["top", "--json", "--count", "1", "--interval", "0.05", "--data", data]);
    assert!(top.well().out.contains('{'));
    running.stop();
}

/// The flags (proc(5), smaps) of what a server has mapped, with the first line of each.
fn mappings(running: &Running) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut of = String::new();
    for line in process(running, "smaps").lines() {
        match line.strip_prefix("VmFlags:") {
            Some(flags) => found.push((std::mem::take(&mut of), flags.to_owned())),
            None if of.is_empty() => line.clone_into(&mut of),
            None => {}
        }
    }
    found
}

/// Keys lie wherever libraries allocate: all of that is locked, and the store, which may be larger
/// than memory, is not.
#[test]
fn memory_is_locked_and_the_stores_is_not() {
    if !rustix::process::geteuid().is_root() {
        let ci = std::env::var("CI").is_ok_and(|value| value == "true" || value == "1");
        assert!(!ci, "nothing may be skipped in CI, but to lift the limit takes root");
        eprintln!("skipped: to lift the limit on locked memory takes root");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let running = Running::start(&data, &["--sample", "10"]);
    let mappings = mappings(&running);
    let locked = |flags: &str| flags.split_whitespace().any(|flag| flag == "lo");
    let of = |name: &str| -> Vec<bool> {
        let of = mappings.iter().filter(|(line, _)| line.contains(name));
        of.map(|(_, flags)| locked(flags)).collect()
    };
    assert_eq!((of("[heap]"), of("data.mdb")), (vec![true], vec![false]));
    // Private memory without a file, that can be written: allocators' and stacks.
    let private = mappings.iter().filter(|(line, _)| {
        let words: Vec<_> = line.split_whitespace().collect();
        words[1] == "rw-p" && words[4] == "0"
    });
    let open: Vec<_> = private.filter(|(_, flags)| !locked(flags)).collect();
    assert!(open.is_empty(), "{open:?}");
    running.stop();
}

/// One that may not lock everything locks nothing: at a limit, allocations would fail.
#[test]
fn a_limit_on_locked_memory_is_no_reason_not_to_start() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let Some(running) = as_nobody(&data, &[]) else { return };
    assert_eq!(status(&running, "VmLck:"), "0");
    running.stop();
}

/// What of a process that cannot be traced is in `/proc` belongs to root, and nobody else of its
/// user can look into its memory.
#[test]
fn nobody_of_its_user_looks_into_a_server() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let Some(running) = as_nobody(&data, &[]) else { return };
    let owner = |file: &str| fs::metadata(format!("/proc/{}/{file}", running.pid())).unwrap().uid();
    assert_eq!((owner("environ"), owner("mem")), (0, 0));
    assert!(!can_look_into(&running));
    running.stop();
    // Unless somebody wants it so.
    let Some(running) = as_nobody(&data, &["--allow-debugging"]) else { return };
    assert!(can_look_into(&running));
    assert_eq!(status(&running, "NoNewPrivs:"), "1");
    running.stop();
}

/// Whether another process of the same user may read what is the server's own. (Its memory, too,
/// but where the system lets only parents trace, that says nothing.)
fn can_look_into(running: &Running) -> bool {
    let mut command = Command::new("sh");
    command.args(["-c", "exec 3</proc/$1/environ", "sh", &running.pid().to_string()]);
    command.stderr(std::process::Stdio::null());
    command.uid(NOBODY).gid(NOBODY).status().unwrap().success()
}
