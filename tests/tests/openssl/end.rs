//! The end of a process that has keys, and one that has none: no crash, no thread, no file. And what valgrind sees.

use super::Site;
use keyway_tests::{Finished, finish, found_by_valgrind, nightly};
use std::process::Command;
use std::thread;

/// TLS handshakes under valgrind, and those of a nightly run, by several processes at once.
const HANDSHAKES: usize = 200;
const HANDSHAKES_NIGHTLY: usize = 10_000;
const PROCESSES_NIGHTLY: usize = 4;

/// A site with the program of that source.
fn site(needs: &[&str], source: &str, libraries: &[&str]) -> Option<Site> {
    let site = Site::with_keys(&[&["cc", "/usr/include/openssl/store.h"], needs].concat())?;
    let source = format!("{}/tests/openssl/{source}", env!("CARGO_MANIFEST_DIR"));
    let mut compile = Command::new("cc");
    compile.args(["-g", "-O1", "-o"]).arg(site.file("program")).arg(source).args(libraries);
    finish(&mut compile, "").expect(0);
    Some(site)
}

const END: &[&str] = &["-lcrypto", "-lpthread"];

fn run(site: &Site, arguments: &[&str]) -> Finished {
    finish(site.command(site.file("program").to_str().unwrap()).args(arguments), "")
}

/// Fails on each invalid access, and on each block that no pointer leads to any more.
fn run_in_valgrind(site: &Site, arguments: &[&str]) {
    let mut valgrind = site.command("valgrind");
    valgrind.args(["-q", "--error-exitcode=99", "--leak-check=full", "--num-callers=40"]);
    valgrind.args(["--show-leak-kinds=definite", "--errors-for-leak-kinds=definite"]);
    let done = finish(valgrind.arg(site.file("program")).args(arguments), "");
    assert_eq!((done.code, found_by_valgrind(&done.err)), (0, Vec::new()), "{arguments:?}");
}

#[test]
fn processes_end_in_any_order() {
    let Some(site) = site(&[], "end.c", END) else { return };
    for _ in 0..if nightly() { 100 } else { 10 } {
        run(&site, &["exit"]).expect(0);
        run(&site, &["outlive"]).expect(0);
    }
    for how in ["unused", "contexts", "cleanup", "asked"] {
        run(&site, &[how]).expect(0);
    }
    assert!(site.cryptod.stop().success());
}

#[test]
fn loads_of_a_key_leave_nothing() {
    let Some(site) = site(&[], "end.c", END) else { return };
    run(&site, &["grow"]).expect(0);
    assert!(site.cryptod.stop().success());
}

#[test]
fn memory_is_sound() {
    let Some(site) = site(&["valgrind"], "end.c", END) else { return };
    for how in ["unused", "contexts", "outlive", "threads", "cleanup", "asked"] {
        run_in_valgrind(&site, &[how]);
    }
    assert!(site.cryptod.stop().success());
}

#[test]
fn memory_is_sound_in_handshakes() {
    let libraries = ["-lssl", "-lcrypto"];
    let Some(site) = site(&["valgrind"], "handshakes.c", &libraries) else { return };
    let keys = ["rsa.crt", "rsa.pem", "ec.crt", "ec.pem", "ed.crt", "ed.pem"];
    let (count, processes) = match nightly() {
        true => (HANDSHAKES_NIGHTLY, PROCESSES_NIGHTLY),
        false => (HANDSHAKES, 1),
    };
    let share = (count / processes).to_string();
    let arguments = [&[&*share], &keys[..]].concat();
    thread::scope(|scope| {
        for _ in 0..processes {
            scope.spawn(|| run_in_valgrind(&site, &arguments));
        }
    });
    assert!(site.cryptod.stop().success());
}
