//! Packets of every size, through every suite, in both modes, over and of both versions of IP.

use super::site::{Side, Site, Tunnel, configuration};
use keyway_tests::cryptod::eventually;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, ipproto};
use rustix::net::{recv, sendto, socket_with};
use std::net::{IpAddr, SocketAddr};

const SUITES: [&str; 7] = [
    "aes-128-gcm",
    "aes-256-gcm",
    "chacha20-poly1305",
    "aes-128-cbc-hmac-sha-256",
    "aes-256-cbc-hmac-sha-256",
    "aes-128-cbc-hmac-sha-1",
    "aes-256-cbc-hmac-sha-1",
];

/// Every suite with every mixture; in transport mode by their ports.
fn all() -> Vec<Tunnel> {
    let mut tunnels = Vec::new();
    for suite in SUITES {
        for is_outer_v4 in [true, false] {
            for is_inner_v4 in [true, false] {
                let number = tunnels.len() as u16 + 1;
                let tunnel = Tunnel::new(number, suite, is_outer_v4, is_inner_v4);
                // Half of them without UDP.
                tunnels.push(Tunnel { is_udp: number % 2 == 0 || !is_outer_v4, ..tunnel });
            }
            for is_udp in [true, false] {
                let number = tunnels.len() as u16 + 1;
                let port = port(number);
                tunnels.push(Tunnel {
                    mode: "transport",
                    networks: None,
                    is_udp,
                    selector: format!(
                        "protocol = \"udp\"\nlocal_ports = \"{port}\"\nremote_ports = \"{port}\"\n"
                    ),
                    ..Tunnel::new(number, suite, is_outer_v4, true)
                });
            }
        }
    }
    tunnels
}

fn port(number: u16) -> u16 {
    7000 + number
}

fn there_and_back(site: &Site, tunnel: &Tunnel) {
    let port = port(tunnel.number);
    let address = |side| SocketAddr::new(tunnel.inner(side), port);
    let (a, b) = (site.udp(Side::A, address(Side::A)), site.udp(Side::B, address(Side::B)));
    // Transport mode carries no fragments.
    let most = if tunnel.mode == "transport" { 1300 } else { 1400 };
    let mut buffer = [0; 2048];
    for size in [8, 9, 23, 100, 577, 1000, 1299, 1300, 1400].into_iter().filter(|it| *it <= most) {
        let text: Vec<u8> = (0..size).map(|at| (at * 7 + size) as u8).collect();
        for (from, to, at) in [(&a, &b, Side::B), (&b, &a, Side::A)] {
            from.send_to(&text, address(at)).unwrap();
            let (bytes, source) = to.recv_from(&mut buffer).unwrap_or_else(|why| {
                let status = site.status(at);
                panic!(
                    "{} ({}), {size} bytes to {at:?}: {why}\n{status}",
                    tunnel.name, tunnel.suite
                )
            });
            assert_eq!(source, address(at.other()));
            assert!(buffer[..bytes] == text, "{}: other {size} bytes", tunnel.name);
        }
    }
}

/// An echo, which the other host's kernel answers.
fn ping(site: &Site, tunnel: &Tunnel) {
    let (own, theirs) = (tunnel.inner(Side::A), tunnel.inner(Side::B));
    let (family, protocol, kind) = match own {
        IpAddr::V4(_) => (AddressFamily::INET, ipproto::ICMP, 8),
        IpAddr::V6(_) => (AddressFamily::INET6, ipproto::ICMPV6, 128),
    };
    let socket = site.inside(Side::A, || {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(family, SocketType::RAW, flags, Some(protocol)).unwrap();
        rustix::net::bind(&socket, &SocketAddr::new(own, 0)).unwrap();
        socket
    });
    let mut echo = [kind, 0, 0, 0, 1, 2, 3, 4, b'k', b'e', b'y', b'w'];
    // IPv6 has the kernel sum.
    if own.is_ipv4() {
        let words = echo.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
        let sum: u32 = words.sum();
        let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
        echo[2..4].copy_from_slice(&sum.to_be_bytes());
    }
    sendto(&socket, &echo, SendFlags::empty(), &SocketAddr::new(theirs, 0)).unwrap();
    let header = if own.is_ipv4() { 20 } else { 0 };
    let mut buffer = [0; 256];
    eventually("the echo comes back", || {
        let (_, bytes) =
            recv(&socket, buffer.as_mut_slice(), RecvFlags::DONTWAIT).unwrap_or((0, 0));
        bytes > header + 4
            && buffer[header] == if own.is_ipv4() { 0 } else { 129 }
            && buffer[header + 4..bytes] == echo[4..]
    });
}

#[test]
fn every_suite_carries_every_size_over_every_mixture() {
    let Some(site) = Site::new() else { return };
    let tunnels = all();
    for side in [Side::A, Side::B] {
        site.configure(side, &configuration(side, &tunnels));
        site.esp(side, &["check"]).expect(0);
    }
    // In transport mode the peer's route leads into the device, and its sealed packets come through the wire.
    let (a, b) = site.start_both();
    a.says("note", "net.ipv4.conf.wire-a.rp_filter=2");
    for side in [Side::A, Side::B] {
        site.reverse_path(side, "2");
    }
    for tunnel in &tunnels {
        there_and_back(&site, tunnel);
        if tunnel.networks.is_some() {
            ping(&site, tunnel);
        }
    }
    let status = site.status(Side::B);
    let dropped = &status["figures"]["in"]["dropped"];
    for cause in ["replay", "icv", "spi", "selectors", "malformed"] {
        assert!(dropped[cause].is_null(), "{status}");
    }
    assert!(a.stop().success() && b.stop().success());
}

/// The far end is told at once, and what fits comes through.
#[test]
fn a_packet_that_is_too_big_is_answered() {
    let Some(site) = Site::new() else { return };
    for is_inner_v4 in [true, false] {
        let tunnels = [Tunnel::new(1, "aes-256-gcm", true, is_inner_v4)];
        for side in [Side::A, Side::B] {
            let text = configuration(side, &tunnels).replace("[outside]", "mtu = 1500\n[outside]");
            site.configure(side, &text);
        }
        let (_a, _b) = site.start_both();
        let address = |side| SocketAddr::new(tunnels[0].inner(side), 9000);
        let a = site.udp(Side::A, address(Side::A));
        let b = site.udp(Side::B, address(Side::B));
        if is_inner_v4 {
            rustix::net::sockopt::set_ip_mtu_discover(
                &a,
                rustix::net::sockopt::Ipv4PathMtuDiscovery::DO,
            )
            .unwrap();
        } else {
            rustix::net::sockopt::set_ipv6_mtu_discover(
                &a,
                rustix::net::sockopt::Ipv6PathMtuDiscovery::DO,
            )
            .unwrap();
        }
        a.connect(address(Side::B)).unwrap();
        a.send(&[7; 1450]).unwrap();
        // The kernel learns from the answer, and refuses the next one by itself.
        eventually("the system learns of the path", || a.send(&[7; 1450]).is_err());
        // What was answered before is told to a later send.
        eventually("what fits is sent", || a.send(&[7; 1300]).is_ok());
        let mut buffer = [0; 2048];
        assert_eq!(b.recv(&mut buffer).unwrap(), 1300);
        assert!(site.dropped(Side::A, "out", "too_long") > 0);
    }
}
