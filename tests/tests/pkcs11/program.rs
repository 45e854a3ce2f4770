//! A program that forks, has threads and many sessions, ends in odd ways, and loses its daemon.

use super::Site;
use keyway_tests::cryptod::Cryptod;
use keyway_tests::{ALLOW_ALL, available, finish, found_by_valgrind, nightly, pkcs11_module};
use rustix::process::Signal;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// A site with the program.
fn site() -> Option<Site> {
    let site = Site::new(&["cc"])?;
    if !Path::new("/usr/include/p11-kit-1/p11-kit/pkcs11.h").exists() {
        eprintln!("left out: no libp11-kit-dev");
        return None;
    }
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pkcs11/harness.c");
    let mut compile = Command::new("cc");
    compile.args(["-O1", "-I/usr/include/p11-kit-1", "-o"]).arg(site.file("harness"));
    finish(compile.args([source, "-ldl", "-lpthread"]), "").expect(0);
    Some(site)
}

fn run(site: &Site, what: &str) {
    let mut program = site.command(site.file("harness"));
    let done = finish(program.arg(pkcs11_module()).arg(what), "");
    assert_eq!((done.code, &*done.out), (0, ""), "{what}: {}", done.err);
}

#[test]
fn answers_are_those_of_the_standard() {
    let Some(site) = site() else { return };
    run(&site, "answers");
    run(&site, "rounds");
    run(&site, "reload");
    assert!(site.cryptod.stop().success());
}

/// No invalid access, and no block that no pointer leads to any more.
#[test]
fn memory_is_sound() {
    if !available(&["valgrind"]) {
        return;
    }
    let Some(site) = site() else { return };
    for what in ["answers", "close"] {
        let mut valgrind = site.command("valgrind");
        valgrind.args(["-q", "--error-exitcode=99", "--leak-check=full", "--num-callers=40"]);
        valgrind.args(["--show-leak-kinds=definite", "--errors-for-leak-kinds=definite"]);
        let program = valgrind.arg(site.file("harness")).arg(pkcs11_module()).arg(what);
        let done = finish(program, "");
        let found = found_by_valgrind(&done.err);
        assert_eq!((done.code, &*done.out, found), (0, "", Vec::new()), "{what}");
    }
    assert!(site.cryptod.stop().success());
}

#[test]
fn children_and_threads_sign_at_once() {
    let Some(site) = site() else { return };
    for _ in 0..if nightly() { 50 } else { 3 } {
        run(&site, "forks");
        run(&site, "threads");
    }
    assert!(site.cryptod.stop().success());
}

#[test]
fn a_key_is_used_behind_chroot_and_as_another_user() {
    let Some(site) = site() else { return };
    if !rustix::process::geteuid().is_root() {
        eprintln!("left out: only root becomes other users");
        return;
    }
    run(&site, "jail");
    assert!(site.cryptod.stop().success());
}

#[test]
fn processes_end_in_any_order() {
    let Some(site) = site() else { return };
    for _ in 0..if nightly() { 100 } else { 10 } {
        run(&site, "exit");
        run(&site, "close");
    }
    assert!(site.cryptod.stop().success());
}

#[test]
fn the_daemon_ends_and_is_back() {
    for what in ["death", "middle"] {
        let Some(Site { cryptod }) = site() else { return };
        let (folder, socket) = (cryptod.folder().clone(), cryptod.socket().to_owned());
        let mut program = Command::new(folder.path().join("harness"));
        program.arg(pkcs11_module()).arg(what).env("KEYWAY_SOCKET", &socket);
        let mut program = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut answers = program.stdin.take().unwrap();
        let mut daemon = Some(cryptod);
        for line in BufReader::new(program.stdout.take().unwrap()).lines() {
            match &*line.unwrap() {
                "kill it" => {
                    let daemon = daemon.take().unwrap();
                    daemon.signal(Signal::KILL);
                    drop(daemon);
                }
                "start it" => {
                    let beside = [ALLOW_ALL, "--socket", socket.to_str().unwrap()];
                    daemon = Some(Cryptod::start_on(&folder, &beside));
                }
                wrong => panic!("{what}: {wrong}"),
            }
            answers.write_all(b"\n").unwrap();
        }
        assert!(program.wait().unwrap().success(), "{what}");
        assert!(daemon.unwrap().stop().success());
    }
}
