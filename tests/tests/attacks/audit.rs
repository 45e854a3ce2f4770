//! Filling the audit log with refusals.

use keyway_ring::control::{Answer, Ask};
use keyway_tests::cryptod::{Cryptod, as_user, beside_neighbours};
use keyway_tests::ring_client::Client;
use keyway_tests::{finish, keyway, nightly};
use std::fs;
use std::process::Command;

#[test]
fn a_flood_of_refusals_neither_fills_the_disk_nor_hides_what_managers_do() {
    let is_root = rustix::process::geteuid().is_root();
    let (cryptod, user) = match is_root {
        true => (Cryptod::for_every_user(&[]), 4_000_000),
        false => (Cryptod::start(&[]), rustix::process::geteuid().as_raw()),
    };
    beside_neighbours(cryptod, |cryptod| {
        let key = |arguments: &[&str]| {
            let mut command = Command::new(keyway());
            command.arg("key").args(arguments).arg("--socket").arg(cryptod.socket());
            finish(&mut command, "").expect(0)
        };
        key(&["generate", "k", "--algorithm", "ed25519", "--for", "user:0"]);
        let flood = || {
            let client = Client::new(cryptod.socket());
            for number in 0..if nightly() { 300_000 } else { 5_000 } {
                let name = if number % 2 == 0 { "k".to_owned() } else { format!("none-{number}") };
                let answer = client.ask(&Ask::Usable { name });
                assert!(matches!(answer, Answer::Refused { .. }) || !is_root);
            }
            client
        };
        let client = if is_root { as_user(user, flood) } else { flood() };
        key(&["revoke", "k"]);
        let log = cryptod.data().join("cryptod/keys/audit.log");
        let log = fs::read_to_string(log).unwrap();
        assert!(log.len() < 64 << 10, "{} bytes", log.len());
        let refused = format!("\"uid\":{user},");
        assert!(log.lines().filter(|line| line.contains(&refused)).count() >= 10);
        assert!(log.lines().any(|line| line.contains("\"revoke\"") && line.contains("\"ok\"")));
        client
    });
}
