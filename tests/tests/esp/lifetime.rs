//! The ends of keys: by packets, by time, and because no number can be leased.

use super::site::{Gateway, Side, Site, Tunnel, configuration};
use keyway_tests::cryptod::eventually;
use keyway_tests::disk::Disk;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

fn limited(more: &str) -> Tunnel {
    let tunnel = Tunnel::new(1, "aes-256-gcm", true, true);
    Tunnel { more: format!("lifetime = {{ {more} }}"), ..tunnel }
}

fn sockets(site: &Site, tunnel: &Tunnel) -> (UdpSocket, UdpSocket, SocketAddr) {
    let address = |side| SocketAddr::new(tunnel.inner(side), 9000);
    let both = (site.udp(Side::A, address(Side::A)), site.udp(Side::B, address(Side::B)));
    (both.0, both.1, address(Side::B))
}

/// How many come within a while.
fn count(socket: &UdpSocket) -> usize {
    socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    std::iter::from_fn(|| socket.recv(&mut [0; 64]).ok()).count()
}

#[test]
fn after_its_packets_a_key_is_over_also_after_a_restart() {
    let Some(site) = Site::new() else { return };
    let tunnels = [limited("packets = 100, soft = 0.5")];
    for side in [Side::A, Side::B] {
        site.configure(side, &configuration(side, &tunnels));
    }
    let (a, _b) = site.start_both();
    let (from, to, address) = sockets(&site, &tunnels[0]);
    for _ in 0..60 {
        from.send_to(b"text", address).unwrap();
    }
    a.says("expiring", "keyway esp reload");
    assert!(!a.said("ended", ""));
    for _ in 0..90 {
        from.send_to(b"text", address).unwrap();
    }
    a.says("ended", "new keys");
    assert_eq!(count(&to), 100);
    assert_eq!(site.dropped(Side::A, "out", "lifetime"), 50);
    drop(from);
    assert!(a.stop().success());
    let a = site.start(Side::A);
    a.says("ended", "new keys");
    let from = site.udp(Side::A, SocketAddr::new(tunnels[0].inner(Side::A), 9000));
    from.send_to(b"text", address).unwrap();
    eventually("it is counted", || site.dropped(Side::A, "out", "lifetime") == 1);
    assert_eq!(count(&to), 0);
}

#[test]
fn after_its_time_a_key_is_over() {
    let Some(site) = Site::new() else { return };
    let tunnels = [limited("seconds = 3, soft = 0.3")];
    for side in [Side::A, Side::B] {
        site.configure(side, &configuration(side, &tunnels));
    }
    let (a, b) = site.start_both();
    a.says("expiring", "lifetime");
    a.says("ended", "lifetime");
    b.says("ended", "in: ");
    let (from, to, address) = sockets(&site, &tunnels[0]);
    from.send_to(b"text", address).unwrap();
    eventually("it is counted", || site.dropped(Side::A, "out", "lifetime") >= 1);
    assert_eq!(count(&to), 0);
    // A new key brings it back.
    let next = Tunnel {
        networks: tunnels[0].networks.clone(),
        ..Tunnel::new(2, "aes-256-gcm", true, true)
    };
    for side in [Side::B, Side::A] {
        site.configure(side, &configuration(side, std::slice::from_ref(&next)));
        site.esp(side, &["reload"]).expect(0);
    }
    from.send_to(b"text", address).unwrap();
    assert_eq!(count(&to), 1);
}

#[test]
fn on_a_full_disk_no_number_is_used_that_was_not_leased() {
    let Some(site) = Site::new() else { return };
    let Some(disk) = Disk::new("ext4", 16) else { return };
    let tunnels = [Tunnel::new(1, "aes-128-gcm", true, true)];
    for side in [Side::A, Side::B] {
        site.configure(side, &configuration(side, &tunnels));
    }
    let _b = site.start(Side::B);
    let state = disk.at.join("state");
    let mut a = Gateway::start(&mut site.command(Side::A, &state));
    disk.fill(1);
    let (from, to, address) = sockets(&site, &tunnels[0]);
    eventually("it says that it cannot lease", || {
        for _ in 0..5000 {
            let _ = from.send_to(b"text", address);
        }
        a.said("no lease", "make room")
    });
    assert!(a.is_up());
    std::fs::remove_dir_all(disk.at.join("fill")).unwrap();
    a.says("leased", "again");
    while count(&to) > 0 {}
    from.send_to(b"text", address).unwrap();
    assert_eq!(count(&to), 1);
    assert!(a.stop().success());
    // A start finds no room, and says so.
    disk.fill(2);
    let mut command = site.command(Side::A, &state);
    let refused = keyway_tests::finish(&mut command, "");
    assert_ne!(refused.code, 0);
    assert!(refused.out.contains("make room"), "{}{}", refused.out, refused.err);
}
