//! LMDB's own tools on the store of a running server.

use keyway_tests::client::Client;
use keyway_tests::{Server, available, finish, keyway, sample};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often each tool is run.
const LOOKS: u32 = 20;
/// Adds of one writer, at least and at most.
const ADDS_MIN: u32 = 50;
const ADDS_MAX: u32 = 20_000;
/// Silence after which a server or a tool has hung.
const HUNG: Duration = Duration::from_secs(60);

/// Tools of another LMDB than the server's may say that they cannot read its lock file. No tool may
/// take the server for dead and make the mutexes in that file anew: no write ends after that.
#[test]
fn mdb_stat_and_mdb_copy_do_not_hang_a_server_under_load() {
    if !available(&["mdb_stat", "mdb_copy", "timeout"]) {
        return;
    }
    let (folder, server) = sample(5);
    let data = folder.path().join("data");
    let looked = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let (server, looked) = (&server, &looked);
            scope.spawn(move || add_until(server, writer, looked));
        }
        look(&data.join("store"), &folder.path().join("copy"));
        looked.store(true, Ordering::Relaxed);
    });
    assert!(server.stop().success());
    let mut check = Command::new(keyway());
    finish(check.args(["directory", "check", "--data"]).arg(&data), "").expect(0);
    // With no server in its way a tool reads the store.
    let stat = finish(Command::new("mdb_stat").arg("-a").arg(data.join("store")), "").expect(0);
    assert!(stat.out.contains("Status of entry"), "{}", stat.out);
}

/// Each tool ends, with a result or with an error of its own.
fn look(store: &Path, copy: &Path) {
    std::fs::create_dir(copy).unwrap();
    for _ in 0..LOOKS {
        let ended = |tool: &mut Command| {
            let code = finish(tool, "").code;
            assert!(matches!(code, 0 | 1), "{tool:?}: {code}");
        };
        let seconds = HUNG.as_secs().to_string();
        ended(Command::new("timeout").args([&seconds, "mdb_stat", "-er"]).arg(store));
        ended(Command::new("timeout").args([&seconds, "mdb_copy"]).arg(store).arg(copy));
        // It overwrites nothing.
        let _ = std::fs::remove_file(copy.join("data.mdb"));
    }
}

fn add_until(server: &Server, writer: u32, looked: &AtomicBool) {
    let mut client = Client::connect(server.address().parse().unwrap()).unwrap();
    client.give_up_after(HUNG).unwrap();
    client.bind(server.administrator(), &server.password()).unwrap();
    for number in 0..ADDS_MAX {
        if number >= ADDS_MIN && looked.load(Ordering::Relaxed) {
            return;
        }
        let dn = format!("cn=w{writer}n{number},ou=People,dc=example,dc=com");
        let class: (&str, &[&str]) = ("objectClass", &["device"]);
        client.add(&dn, &[class]).unwrap();
    }
}
