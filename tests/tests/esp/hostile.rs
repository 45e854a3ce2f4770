//! What comes from outside and does not belong there.

use super::site::{Side, Site, Tunnel, configuration};
use keyway_tests::cryptod::eventually;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

fn nothing_comes(socket: &UdpSocket) {
    socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    assert!(socket.recv(&mut [0; 64]).is_err());
}

#[test]
fn what_is_not_sealed_for_us_is_counted_and_dropped() {
    let Some(site) = Site::new() else { return };
    let tunnels = [Tunnel::new(1, "aes-256-gcm", true, true)];
    for side in [Side::A, Side::B] {
        site.configure(side, &configuration(side, &tunnels));
    }
    let _b = site.start(Side::B);
    let outside = site.udp(Side::A, SocketAddr::new(Side::A.outer(true), 4500));
    let to = SocketAddr::new(Side::B.outer(true), 4500);
    let inner = site.udp(Side::B, SocketAddr::new(tunnels[0].inner(Side::B), 9000));
    // The SPI of A's direction, and a good length.
    let mut forged = [0; 100];
    forged[..4].copy_from_slice(&0x1002_u32.to_be_bytes());
    forged[7] = 1;
    let mut unknown = forged;
    unknown[0] = 9;
    let ike = [0; 40];
    for text in [&forged[..], &unknown, &ike, &forged[..20], &[1, 2], &[0xff]] {
        outside.send_to(text, to).unwrap();
    }
    eventually("all are counted", || {
        ["icv", "spi", "ike", "malformed"]
            .map(|cause| site.dropped(Side::B, "in", cause))
            .into_iter()
            .zip([1, 1, 1, 2])
            .all(|(counted, expected)| counted == expected)
    });
    nothing_comes(&inner);
    // And a good one is taken after that.
    drop(outside);
    let _a = site.start(Side::A);
    let own = site.udp(Side::A, SocketAddr::new(tunnels[0].inner(Side::A), 9000));
    own.send_to(b"text", SocketAddr::new(tunnels[0].inner(Side::B), 9000)).unwrap();
    inner.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    assert_eq!(inner.recv(&mut [0; 64]).unwrap(), 4);
}

/// A peer with a key sends in the name of others.
#[test]
fn other_peoples_selectors_are_not_those_of_a_key() {
    let Some(site) = Site::new() else { return };
    let tunnels = [Tunnel::new(1, "aes-256-gcm", true, true)];
    site.configure(Side::B, &configuration(Side::B, &tunnels));
    let wide = configuration(Side::A, &tunnels)
        .replace("local = \"10.1.1.0/24\"", "local = \"0.0.0.0/0\"")
        .replace("10.1.1.1/24\"", "10.1.1.1/24\", \"10.9.9.9/24\"");
    site.configure(Side::A, &wide);
    let (_a, _b) = site.start_both();
    let inner = SocketAddr::new(tunnels[0].inner(Side::B), 9000);
    let receiver = site.udp(Side::B, inner);
    let posing = site.udp(Side::A, "10.9.9.9:9000".parse().unwrap());
    posing.send_to(b"text", inner).unwrap();
    eventually("it is counted", || site.dropped(Side::B, "in", "selectors") == 1);
    nothing_comes(&receiver);
    // To a network that no tunnel has, nothing goes out.
    site.ip(Side::A, &["route", "add", "10.77.0.0/16", "dev", "esp0"]);
    posing.send_to(b"text", "10.77.0.1:9000".parse::<SocketAddr>().unwrap()).unwrap();
    eventually("it is counted", || site.dropped(Side::A, "out", "selectors") == 1);
}

#[test]
fn clear_text_in_a_tunnels_name_is_the_systems_to_refuse_and_that_is_said() {
    let Some(site) = Site::new() else { return };
    let tunnels = [Tunnel::new(1, "aes-256-gcm", true, true)];
    site.configure(Side::B, &configuration(Side::B, &tunnels));
    let inner = SocketAddr::new(tunnels[0].inner(Side::B), 9000);
    // A has no gateway: what it sends is clear.
    site.ip(Side::A, &["addr", "add", "10.1.1.1/24", "dev", "lo"]);
    site.ip(Side::A, &["route", "add", "10.1.2.0/24", "via", "192.0.2.2"]);
    let clear = site.udp(Side::A, SocketAddr::new(tunnels[0].inner(Side::A), 9000));
    let send = |strict: bool| {
        site.reverse_path(Side::B, if strict { "1" } else { "0" });
        let gateway = site.start(Side::B);
        let receiver = site.udp(Side::B, inner);
        clear.send_to(b"clear", inner).unwrap();
        if strict {
            nothing_comes(&receiver);
        } else {
            assert_eq!(receiver.recv(&mut [0; 16]).unwrap(), 5);
        }
        let warned = gateway.said("note", "sysctl -w net.ipv4.conf.all.rp_filter=1");
        assert_eq!(warned, !strict);
        assert!(gateway.stop().success());
    };
    send(true);
    send(false);
}
