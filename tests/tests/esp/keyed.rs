//! Keys that a daemon holds: the gateway sees none, waits for the daemon, and goes on without it.

use super::site::{Side, Site, Tunnel, configuration};
use keyway_tests::cryptod::{Cryptod, eventually};
use keyway_tests::{finish, keyway, secret};
use std::fs;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

/// Gives the daemon a key, for packets and no other purpose.
fn import(site: &Site, cryptod: &Cryptod, name: &str, algorithm: &str, key: &str) {
    let bytes = (0..key.len() / 2).map(|at| u8::from_str_radix(&key[2 * at..2 * at + 2], 16));
    let file = site.file(Side::A, name);
    secret(&file, "");
    fs::write(&file, bytes.collect::<Result<Vec<_>, _>>().unwrap()).unwrap();
    let mut command = Command::new(keyway());
    command.args(["key", "import", name]).arg(&file).args(["--algorithm", algorithm]);
    command.args(["--purpose", "esp", "--for", "user:root", "--socket"]).arg(cryptod.socket());
    finish(&mut command, "").expect(0);
}

#[test]
fn keys_of_a_daemon_seal_and_open_and_the_daemon_may_go_and_come() {
    let Some(site) = Site::new() else { return };
    let suites = ["aes-128-gcm", "aes-256-gcm", "chacha20-poly1305", "aes-256-gcm"];
    let tunnels = suites.into_iter().zip(1..);
    let tunnels = tunnels.map(|(suite, number)| Tunnel::new(number, suite, true, true));
    let tunnels: Vec<_> = tunnels.collect();
    let cryptod = Cryptod::start(&[]);
    let mut text = configuration(Side::A, &tunnels);
    // The last one has its keys in the file.
    for tunnel in &tunnels[..3] {
        for from in [Side::A, Side::B] {
            let (written, name) = (tunnel.key(from), format!("{}-{from:?}", tunnel.name));
            let name = name.to_lowercase();
            let (key, salt) = written.split_at(written.len() - 8);
            import(&site, &cryptod, &name, tunnel.suite, key);
            let before = format!("key = \"{written}\"");
            assert!(text.contains(&before));
            text = text.replace(&before, &format!("key_name = \"{name}\", salt = \"{salt}\""));
        }
    }
    text += &format!("[cryptod]\nsocket = \"{}\"\n", cryptod.socket().display());
    site.configure(Side::A, &text);
    site.configure(Side::B, &configuration(Side::B, &tunnels));
    let (a, _b) = site.start_both();
    let sockets = tunnels.iter().map(|tunnel| {
        let address = |side| SocketAddr::new(tunnel.inner(side), 9000);
        let both = [Side::A, Side::B].map(|side| site.udp(side, address(side)));
        both.iter().for_each(|it| it.set_read_timeout(Some(Duration::from_millis(500))).unwrap());
        (both, address(Side::A), address(Side::B))
    });
    let sockets: Vec<_> = sockets.collect();
    // There and back.
    let goes = |at: usize| {
        let ([a, b], to_a, to_b) = &sockets[at];
        // While there is no device, nothing can be sent.
        a.send_to(b"text", to_b).is_ok()
            && b.recv(&mut [0; 16]).is_ok()
            && b.send_to(b"text", to_a).is_ok()
            && a.recv(&mut [0; 16]).is_ok()
    };
    let all_go = || {
        for at in 0..tunnels.len() {
            eventually("it goes through", || goes(at));
        }
    };
    all_go();
    let folder = cryptod.folder().clone();
    assert!(cryptod.stop().success());
    a.says("note", "has gone");
    assert!(!goes(0));
    eventually("a tunnel with its key in the file goes on", || goes(3));
    assert!(site.dropped(Side::A, "out", "engine") >= 1);
    let cryptod = Cryptod::start_on(&folder, &[]);
    a.says("note", "is there");
    all_go();
    assert!(a.stop().success());
    // A start without the daemon waits for it, and carries what it can.
    assert!(cryptod.stop().success());
    let a = site.start(Side::A);
    assert!(a.said("note", "no cryptod answers"));
    assert!(!goes(0));
    eventually("a tunnel with its key in the file goes on", || goes(3));
    let cryptod = Cryptod::start_on(&folder, &[]);
    all_go();
    // A key that it has not, or not for us, is told.
    site.configure(Side::A, &text.replace("t1-a", "none"));
    let refused = site.esp(Side::A, &["reload"]).expect(1);
    assert!(refused.err.contains("keyway key list"), "{}", refused.err);
    assert!(refused.err.contains("nothing was changed"), "{}", refused.err);
    all_go();
    drop(cryptod);
}
