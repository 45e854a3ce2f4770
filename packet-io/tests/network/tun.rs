//! TUN devices, with the kernel's own TCP and UDP over them.

use crate::namespace::{Namespace, is_possible};
use crate::wait;
use keyway_packet_io::{Error, Socket, SocketOptions, Tun, TunOptions, TunQueue, open};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

fn options(number: u8, queues: usize) -> TunOptions {
    TunOptions {
        name: "device".to_owned(),
        queues,
        mtu: 1_400,
        addresses: vec![
            (format!("10.9.0.{number}").parse().unwrap(), 24),
            (format!("fd09::{number}").parse().unwrap(), 64),
        ],
    }
}

fn device(namespace: &Namespace, options: TunOptions) -> Result<(Tun, Vec<TunQueue>), Error> {
    let addresses = options.addresses.clone();
    let device = namespace.run(move || open(&options))?;
    // The kernel takes packets to a new IPv6 address a moment later.
    for (address, _) in addresses.iter().filter(|(address, _)| address.is_ipv6()) {
        while !namespace.ip("-6 route show table local").contains(&format!("local {address} ")) {}
    }
    Ok(device)
}

/// Carries packets between two devices.
struct Cable {
    is_cut: Arc<AtomicBool>,
    threads: Vec<JoinHandle<u64>>,
}

impl Cable {
    fn new(left: Vec<TunQueue>, right: Vec<TunQueue>) -> Cable {
        let is_cut = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for (left, right) in left.into_iter().zip(right) {
            let (other_left, other_right) = (left.try_clone().unwrap(), right.try_clone().unwrap());
            for (from, to) in [(left, other_right), (right, other_left)] {
                let is_cut = is_cut.clone();
                threads.push(thread::spawn(move || carry(from, to, &is_cut)));
            }
        }
        Cable { is_cut, threads }
    }

    /// How many packets it carried. The devices are still there.
    fn cut(mut self) -> u64 {
        self.is_cut.store(true, Ordering::Relaxed);
        self.threads.drain(..).map(|thread| thread.join().unwrap()).sum()
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        self.is_cut.store(true, Ordering::Relaxed);
    }
}

fn carry(mut from: TunQueue, mut to: TunQueue, is_cut: &AtomicBool) -> u64 {
    let mut packets = 0;
    while !is_cut.load(Ordering::Relaxed) {
        let mut went = 0;
        while went < 100 {
            let count = from.receive(|packet| {
                assert!(packet.len() <= 1_400, "the device's MTU");
                to.push(packet);
            });
            match count.unwrap() {
                0 => break,
                count => went += count as u64,
            }
        }
        let written = to.flush();
        assert_eq!((written.packets, written.dropped), (went, 0));
        packets += went;
        if went == 0 {
            // It looks from time to time whether it is cut.
            let timeout = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
            let _ = poll(&mut [PollFd::new(&from, PollFlags::IN)], Some(&timeout));
        }
    }
    assert_eq!(from.malformed(), 0);
    packets
}

fn data(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 31 + at / 1_021) as u8).collect()
}

/// What the kernel counted as packets of a device that were written by its owner.
fn received(namespace: &Namespace) -> u64 {
    let text = namespace.ip("-s link show dev device");
    let line = text.lines().skip_while(|line| !line.contains("RX:")).nth(1);
    let count = line.and_then(|line| line.split_whitespace().nth(1));
    count.and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("{text}"))
}

#[test]
fn tcp_goes_through_whole_and_joined() {
    if !is_possible() {
        return;
    }
    for queues in [1, 3] {
        let (left, right) = (Namespace::new(), Namespace::new());
        let (_left_tun, left_queues) = device(&left, options(1, queues)).unwrap();
        let (_right_tun, right_queues) = device(&right, options(2, queues)).unwrap();
        assert_eq!(left_queues.len(), queues);
        // They keep the devices.
        let _kept = (left_queues[0].try_clone().unwrap(), right_queues[0].try_clone().unwrap());
        let cable = Cable::new(left_queues, right_queues);
        for address in ["10.9.0.2:80", "[fd09::2]:80"] {
            let address: SocketAddr = address.parse().unwrap();
            let listener = right.run(move || TcpListener::bind(address)).unwrap();
            // All that came is sent back.
            let echo = thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut all = Vec::new();
                stream.read_to_end(&mut all).unwrap();
                stream.write_all(&all).unwrap();
            });
            let mut stream = left.run(move || TcpStream::connect(address)).unwrap();
            let sent = data(3_000_001);
            stream.write_all(&sent).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let mut back = Vec::new();
            stream.read_to_end(&mut back).unwrap();
            assert_eq!(back, sent);
            echo.join().unwrap();
        }
        let packets = cable.cut();
        let written = received(&left) + received(&right);
        // 3 MB in packets of 1,400 bytes, four times. They were cut when they were read, and joined when written.
        assert!(packets > 4 * 2_200, "{packets}");
        assert!(written < packets / 2, "{packets} packets were written as {written}");
    }
}

#[test]
fn udp_goes_through_whole() {
    if !is_possible() {
        return;
    }
    let (left, right) = (Namespace::new(), Namespace::new());
    let (_left_tun, left_queues) = device(&left, options(1, 1)).unwrap();
    let (_right_tun, right_queues) = device(&right, options(2, 1)).unwrap();
    let _cable = Cable::new(left_queues, right_queues);
    for (here, there) in [("10.9.0.1:9", "10.9.0.2:9"), ("[fd09::1]:9", "[fd09::2]:9")] {
        let (here, there): (SocketAddr, SocketAddr) =
            (here.parse().unwrap(), there.parse().unwrap());
        // A program without offloads receives what was sent as bursts.
        let plain = right.run(move || UdpSocket::bind(there)).unwrap();
        plain.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let options = SocketOptions::new(here);
        let mut from = left.run(move || Socket::udp(&options)).unwrap();
        let all = data(40 * 1_000 + 300);
        for round in 0..5 {
            for datagram in all.chunks(1_000) {
                from.push(there, round % 4, &[datagram]);
            }
            assert_eq!(from.flush().packets, 41);
            let mut datagram = [0; 2_000];
            for expected in all.chunks(1_000) {
                let bytes = loop {
                    match plain.recv(&mut datagram) {
                        Err(why) if why.kind() == ErrorKind::Interrupted => {}
                        result => break result.unwrap(),
                    }
                };
                assert_eq!(&datagram[..bytes], expected);
            }
            // And single ones, back.
            for length in [0, 1, 1_000, 1_372] {
                plain.send_to(&all[..length], here).unwrap();
            }
            let mut back = Vec::new();
            while back.len() < 4 {
                wait(&from);
                from.receive(|datagram, _| back.push(datagram.len())).unwrap();
            }
            assert_eq!(back, [0, 1, 1_000, 1_372]);
        }
    }
}

#[test]
fn a_device_is_as_it_was_asked_for() {
    if !is_possible() {
        return;
    }
    let namespace = Namespace::new();
    let (mut tun, queues) = device(&namespace, options(1, 2)).unwrap();
    assert_eq!(tun.name(), "device");
    let shown = namespace.ip("addr show dev device");
    for part in ["mtu 1400", ",UP", "inet 10.9.0.1/24", "inet6 fd09::1/64", "multi_queue"] {
        let shown = namespace.ip("-d link show dev device") + &shown;
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let own = shown.lines().find(|line| line.contains("fd09::1"));
    assert!(own.is_some_and(|line| !line.contains("tentative")), "{shown}");
    tun.set_mtu(1_280).unwrap();
    assert!(namespace.ip("link show dev device").contains("mtu 1280"));
    let why = tun.set_mtu(60).unwrap_err();
    assert_eq!(why.kind(), ErrorKind::InvalidInput);
    assert!(why.to_string().starts_with("setting the MTU of device to 60: "), "{why}");
    // It goes with its queues, of which a child of another test may have copies until it runs its own program.
    drop(queues);
    while namespace.ip("link show").contains("device") {}
    let gone = tun.set_mtu(1_280).unwrap_err();
    assert!(gone.to_string().starts_with("setting the MTU of device"), "{gone}");
}

#[test]
fn routes_come_and_go() {
    if !is_possible() {
        return;
    }
    let namespace = Namespace::new();
    namespace.ip("link add name other type veth peer name else");
    namespace.ip("link set other up");
    let (mut tun, _queues) = device(&namespace, options(1, 1)).unwrap();
    for (to, length, shown, family) in [
        ("10.2.3.4", 24, "10.2.3.0/24", "-4"),
        ("0.0.0.0", 0, "default", "-4"),
        ("10.7.7.7", 32, "10.7.7.7", "-4"),
        ("fd02::1:2", 48, "fd02::/48", "-6"),
        ("::", 0, "default", "-6"),
    ] {
        let to = to.parse().unwrap();
        let routes = || namespace.ip(&format!("{family} route show dev device"));
        let has = || routes().lines().any(|line| line.split(' ').next() == Some(shown));
        assert!(!has());
        tun.remove_route(to, length).unwrap();
        tun.add_route(to, length).unwrap();
        tun.add_route(to, length).unwrap();
        assert!(has(), "{shown}: {}", routes());
        tun.remove_route(to, length).unwrap();
        assert!(!has());
        // One that leads elsewhere is not touched.
        namespace.ip(&format!("{family} route add {shown} dev other"));
        let why = tun.add_route(to, length).unwrap_err();
        assert_eq!(why.kind(), ErrorKind::AlreadyExists, "{why}");
        tun.remove_route(to, length).unwrap();
        let other = namespace.ip(&format!("{family} route show dev other"));
        assert!(other.lines().any(|line| line.split(' ').next() == Some(shown)), "{other}");
    }
    // The network of the device's own address is there.
    tun.add_route("10.9.0.0".parse().unwrap(), 24).unwrap();
    let why = tun.add_route("10.9.0.0".parse().unwrap(), 33).unwrap_err();
    assert_eq!(why.kind(), ErrorKind::InvalidInput);
}

#[test]
fn why_there_is_no_device_is_said() {
    if !is_possible() {
        return;
    }
    let namespace = Namespace::new();
    let (_tun, _queues) = device(&namespace, options(1, 1)).unwrap();
    let refused: [(&str, TunOptions, ErrorKind, &str); 6] = [
        ("taken", options(1, 1), ErrorKind::ResourceBusy, "there is a device of that name"),
        ("no queue", options(1, 0), ErrorKind::InvalidInput, "1 to 256"),
        ("queues", options(1, 257), ErrorKind::InvalidInput, "1 to 256"),
        ("long", named("sixteen-bytes-it-has"), ErrorKind::InvalidInput, "1 to 15 bytes"),
        ("empty", named(""), ErrorKind::InvalidInput, "1 to 15 bytes"),
        ("slash", named("a/b"), ErrorKind::InvalidInput, "1 to 15 bytes"),
    ];
    for (what, options, kind, part) in refused {
        let why = device(&namespace, options).unwrap_err();
        assert_eq!(why.kind(), kind, "{what}: {why}");
        assert!(why.to_string().contains(part), "{what}: {why}");
    }
    let mut bad = named("bad");
    bad.addresses = vec![("10.0.0.1".parse().unwrap(), 60)];
    let why = device(&namespace, bad).unwrap_err();
    assert!(why.to_string().starts_with("giving the device bad the address 10.0.0.1/60"), "{why}");
}

fn named(name: &str) -> TunOptions {
    TunOptions { name: name.to_owned(), ..options(1, 1) }
}

#[test]
fn what_the_kernel_does_not_take_is_counted() {
    if !is_possible() {
        return;
    }
    let namespace = Namespace::new();
    let (_tun, mut queues) = device(&namespace, options(1, 1)).unwrap();
    let queue = &mut queues[0];
    // No IP version, and nothing at all.
    queue.push(&[0x10; 40]);
    queue.push(&[]);
    let written = queue.flush();
    assert_eq!((written.packets, written.dropped), (0, 2));
    namespace.ip("link set device down");
    let mut packet = [0; 40];
    packet[0] = 0x60;
    queue.push(&packet);
    assert_eq!(queue.flush().dropped, 1);
}
