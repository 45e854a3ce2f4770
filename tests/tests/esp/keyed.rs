//! Keys that a daemon holds: the gateway sees none, waits for the daemon, and goes on without it.

use super::site::{Side, Site, Tunnel, configuration, hear};
use keyway_tests::cryptod::{Cryptod, eventually};
use keyway_tests::{finish, keyway, secret};
use rustix::process::Signal;
use std::fs;
use std::net::{SocketAddr, UdpSocket};
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

/// Has the keys of these tunnels in the daemon, and not in the file.
fn keep(site: &Site, cryptod: &Cryptod, tunnels: &[Tunnel], mut text: String) -> String {
    for tunnel in tunnels {
        for from in [Side::A, Side::B] {
            let (written, name) = (tunnel.key(from), format!("{}-{from:?}", tunnel.name));
            let name = name.to_lowercase();
            let (key, salt) = written.split_at(written.len() - 8);
            import(site, cryptod, &name, tunnel.suite, key);
            let before = format!("key = \"{written}\"");
            assert!(text.contains(&before));
            text = text.replace(&before, &format!("key_name = \"{name}\", salt = \"{salt}\""));
        }
    }
    text + &format!("[cryptod]\nsocket = \"{}\"\n", cryptod.socket().display())
}

/// A daemon that hangs is found out after a while. Until then packets wait for its keys, and no others do.
#[test]
fn a_daemon_that_hangs_holds_up_its_own_keys_alone() {
    let Some(site) = Site::new() else { return };
    let tunnels = [1, 2].map(|number| Tunnel::new(number, "aes-256-gcm", true, true));
    let cryptod = Cryptod::start(&[]);
    let text = keep(&site, &cryptod, &tunnels[..1], configuration(Side::A, &tunnels));
    site.configure(Side::A, &text);
    site.configure(Side::B, &configuration(Side::B, &tunnels));
    let (a, _b) = site.start_both();
    let sockets = tunnels.each_ref().map(|tunnel| {
        let address = |side| SocketAddr::new(tunnel.inner(side), 9000);
        [Side::A, Side::B].map(|side| (site.udp(side, address(side)), address(side)))
    });
    let goes = |[(a, to_a), (b, to_b)]: &[(UdpSocket, SocketAddr); 2]| {
        a.send_to(b"text", to_b).unwrap();
        b.send_to(b"text", to_a).unwrap();
        hear(b, &mut [0; 16]).is_ok() && hear(a, &mut [0; 16]).is_ok()
    };
    let [[held_a, held_b], own] = &sockets;
    assert!(goes(&sockets[0]) && goes(own));
    cryptod.signal(Signal::STOP);
    for _ in 0..20 {
        // In both directions, more than one queue of its takes.
        for _ in 0..50 {
            held_a.0.send_to(b"held", held_b.1).unwrap();
            held_b.0.send_to(b"held", held_a.1).unwrap();
        }
        assert!(goes(own));
    }
    assert!(!a.said("note", "has gone"), "the others have waited until the daemon was given up");
    assert!(site.dropped(Side::A, "out", "queue_full") > 0);
    cryptod.signal(Signal::CONT);
    assert!(a.stop().success());
}

#[test]
fn keys_of_a_daemon_seal_and_open_and_the_daemon_may_go_and_come() {
    let Some(site) = Site::new() else { return };
    let suites = ["aes-128-gcm", "aes-256-gcm", "chacha20-poly1305", "aes-256-gcm"];
    let tunnels = suites.into_iter().zip(1..);
    let tunnels = tunnels.map(|(suite, number)| Tunnel::new(number, suite, true, true));
    let tunnels: Vec<_> = tunnels.collect();
    let cryptod = Cryptod::start(&[]);
    // The last one has its keys in the file.
    let text = keep(&site, &cryptod, &tunnels[..3], configuration(Side::A, &tunnels));
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
            && hear(b, &mut [0; 16]).is_ok()
            && b.send_to(b"text", to_a).is_ok()
            && hear(a, &mut [0; 16]).is_ok()
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
