//! UDP and ESP between two namespaces.

use crate::namespace::{Namespace, is_possible};
use crate::wait;
use keyway_packet_io::{Received, Sent, Socket, SocketOptions};
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};

fn udp(namespace: &Namespace, address: &str) -> Socket {
    let options = SocketOptions::new(address.parse().unwrap());
    namespace.run(move || Socket::udp(&options)).unwrap()
}

fn raw(namespace: &Namespace, address: &str) -> Socket {
    let options = SocketOptions::new(SocketAddr::new(address.parse().unwrap(), 4_500));
    namespace.run(move || Socket::raw(&options)).unwrap()
}

/// So many datagrams.
fn receive(socket: &mut Socket, count: usize) -> Vec<(Vec<u8>, Received)> {
    let mut datagrams = Vec::new();
    while datagrams.len() < count {
        wait(socket);
        let before = datagrams.len();
        let said = socket.receive(|data, received| datagrams.push((data.to_vec(), received)));
        assert_eq!(said.unwrap(), datagrams.len() - before);
    }
    assert_eq!(socket.receive(|_, _| panic!("one too many")).unwrap(), 0);
    datagrams
}

fn went(packets: u64) -> Sent {
    Sent { packets, ..Sent::default() }
}

#[test]
fn datagrams_of_udp_arrive_as_they_were() {
    if !is_possible() {
        return;
    }
    let (left, right) = Namespace::pair();
    for (here, there) in [("10.8.0.1:4500", "10.8.0.2:4501"), ("[fd08::1]:4500", "[fd08::2]:4501")]
    {
        let (mut from, mut to) = (udp(&left, here), udp(&right, there));
        let address = there.parse().unwrap();
        // Bursts of equal ones, ends that are shorter, empty ones, longer ones, and others with an ECN each.
        let lengths = (0..300).map(|index| match index {
            0..150 => 1_200,
            150 => 700,
            151 => 0,
            152..155 => 1,
            _ => 100 + index * 4,
        });
        let mut expected = Vec::new();
        for (index, length) in lengths.enumerate() {
            let data: Vec<_> = (0..length).map(|at| (at + index) as u8).collect();
            let ecn = if index < 200 { 0 } else { index as u8 / 8 % 4 };
            let (head, tail) = data.split_at(length / 3);
            from.push(address, ecn, &[head, &[], tail]);
            let source = here.parse().unwrap();
            let destination = Some(address.ip());
            expected.push((data, Received { source, destination, ecn }));
        }
        assert_eq!(from.flush(), went(300));
        assert_eq!(from.flush(), Sent::default());
        assert_eq!(receive(&mut to, 300), expected);
        // And back, by a second end.
        let mut back = to.try_clone().unwrap();
        back.push(here.parse().unwrap(), 2, &[b"back"]);
        assert_eq!(back.flush(), went(1));
        assert_eq!(receive(&mut from, 1)[0].1.ecn, 2);
    }
}

#[test]
fn datagrams_of_one_sender_come_joined() {
    if !is_possible() {
        return;
    }
    let (left, right) = Namespace::pair();
    let (mut from, mut to) = (udp(&left, "10.8.0.1:1"), udp(&right, "10.8.0.2:1"));
    for _ in 0..40 {
        from.push("10.8.0.2:1".parse().unwrap(), 0, &[&[1; 1_000]]);
    }
    assert_eq!(from.flush(), went(40));
    // One message of the first call has them all: the cable hands a burst over as one.
    wait(&to);
    assert_eq!(to.receive(|data, _| assert_eq!(data.len(), 1_000)).unwrap(), 40);
}

#[test]
fn a_socket_of_both_families_has_both() {
    if !is_possible() {
        return;
    }
    let (left, right) = Namespace::pair();
    let mut both = udp(&right, "[::]:7");
    assert_eq!(both.local_address().unwrap(), "[::]:7".parse().unwrap());
    for (here, there) in [("10.8.0.1:0", "10.8.0.2:7"), ("[fd08::1]:0", "[fd08::2]:7")] {
        let mut from = udp(&left, here);
        let address: SocketAddr = there.parse().unwrap();
        for _ in 0..3 {
            from.push(address, 1, &[b"there"]);
        }
        assert_eq!(from.flush(), went(3));
        let source = from.local_address().unwrap();
        let expected = Received { source, destination: Some(address.ip()), ecn: 1 };
        assert_eq!(receive(&mut both, 3), vec![(b"there".to_vec(), expected); 3]);
        for _ in 0..3 {
            both.push(source, 3, &[b"back"]);
        }
        assert_eq!(both.flush(), went(3));
        let expected = Received { source: address, destination: Some(source.ip()), ecn: 3 };
        assert_eq!(receive(&mut from, 3), vec![(b"back".to_vec(), expected); 3]);
    }
}

#[test]
fn packets_of_esp_arrive_without_ip_headers() {
    if !is_possible() {
        return;
    }
    let (left, right) = Namespace::pair();
    for (here, there) in [("10.8.0.1", "10.8.0.2"), ("fd08::1", "fd08::2")] {
        let (mut from, mut to) = (raw(&left, here), raw(&right, there));
        let address: IpAddr = there.parse().unwrap();
        let mut expected = Vec::new();
        for index in 0..200_u16 {
            let data = vec![index as u8; usize::from(8 + index * 7)];
            let ecn = (index % 4) as u8;
            // Such a packet has no port; one that is named is not looked at.
            from.push(SocketAddr::new(address, index), ecn, &[&data]);
            let source = SocketAddr::new(here.parse().unwrap(), 0);
            expected.push((data, Received { source, destination: Some(address), ecn }));
        }
        assert_eq!(from.flush(), went(200));
        assert_eq!(receive(&mut to, 200), expected);
        assert_eq!(to.malformed(), 0);
        let mtu = from.path_mtu(address).unwrap();
        let longest = mtu as usize - if address.is_ipv4() { 20 } else { 40 };
        from.push(SocketAddr::new(address, 0), 0, &[&vec![0; longest]]);
        assert_eq!(from.flush(), went(1));
        from.push(SocketAddr::new(address, 0), 0, &[&vec![0; longest + 1]]);
        let sent = from.flush();
        assert_eq!((sent.packets, sent.dropped), (0, 1));
        assert_eq!(sent.too_long.map(|to| to.ip()), Some(address));
    }
}

#[test]
fn what_is_too_long_for_its_path_is_named() {
    if !is_possible() {
        return;
    }
    let (left, _right) = Namespace::pair();
    let paths = [
        ("0.0.0.0:0", "10.8.0.2:9", "10.8.0.2/32", 1_300, 28),
        ("[::]:0", "[fd08::2]:9", "fd08::2/128", 1_290, 48),
    ];
    for (here, there, route, mtu, headers) in paths {
        let mut from = udp(&left, here);
        let to: SocketAddr = there.parse().unwrap();
        assert_eq!(from.path_mtu(to.ip()).unwrap(), 1_500);
        left.ip(&format!("route add {route} dev left mtu {mtu}"));
        assert_eq!(from.path_mtu(to.ip()).unwrap(), mtu);
        let longest = vec![0; mtu as usize - headers];
        let too_long = [&longest[..], &[0]].concat();
        from.push(to, 0, &[&longest]);
        assert_eq!(from.flush(), went(1));
        from.push(to, 0, &[&too_long]);
        let named = Sent { dropped: 1, too_long: Some(to), ..Sent::default() };
        assert_eq!(from.flush(), named);
        // In a burst only those that are too long are dropped, and the next is a burst again.
        for length in [too_long.len(), too_long.len(), 40] {
            from.push(to, 1, &[&vec![0; length]]);
        }
        assert_eq!(from.flush(), Sent { packets: 1, dropped: 2, ..named });
        // Longer than any datagram.
        from.push(to, 0, &[&[0; 60_000], &[0; 60_000]]);
        assert_eq!(from.flush(), named);
    }
}

#[test]
fn why_datagrams_are_dropped_is_said() {
    if !is_possible() {
        return;
    }
    let (left, _right) = Namespace::pair();
    let mut from = udp(&left, "0.0.0.0:0");
    let nowhere = "192.0.2.1:9".parse().unwrap();
    let near = "10.8.0.2:9".parse().unwrap();
    for _ in 0..3 {
        from.push(nowhere, 0, &[b"lost"]);
        from.push(near, 0, &[b"goes"]);
    }
    let sent = from.flush();
    assert_eq!((sent.packets, sent.dropped, sent.too_long), (3, 3, None));
    assert_eq!(sent.error, Some(ErrorKind::NetworkUnreachable));
    assert_eq!(from.path_mtu(nowhere.ip()).unwrap_err().kind(), ErrorKind::NetworkUnreachable);
    // A cable that is cut.
    left.ip("link set left down");
    from.push(near, 0, &[b"lost"]);
    assert_eq!(from.flush().dropped, 1);
}

#[test]
fn a_mark_and_an_interface_choose_the_way() {
    if !is_possible() {
        return;
    }
    let (left, right) = Namespace::pair();
    left.ip("rule add fwmark 51 table 100");
    left.ip("route add 10.8.0.2/32 dev left mtu 1200 table 100");
    let options = SocketOptions {
        mark: Some(51),
        interface: Some("left".to_owned()),
        ..SocketOptions::new("0.0.0.0:0".parse().unwrap())
    };
    let opened = options.clone();
    let marked = left.run(move || Socket::udp(&opened)).unwrap();
    let to: SocketAddr = "10.8.0.2:9".parse().unwrap();
    assert_eq!(
        left.run(move || marked.path_mtu(to.ip()).map(|mtu| (mtu, marked))).unwrap().0,
        1_200
    );
    assert_eq!(udp(&left, "0.0.0.0:0").path_mtu(to.ip()).unwrap_or(0), 1_500);
    // Another interface, whose packets no route but its own takes.
    left.ip("link add name other mtu 1400 type veth peer name end");
    left.ip("link set other up");
    left.ip("route add 10.8.0.0/24 dev other metric 9");
    let other = SocketOptions { interface: Some("other".to_owned()), ..options.clone() };
    let other = left.run(move || Socket::udp(&other)).unwrap();
    assert_eq!(other.path_mtu(to.ip()).unwrap(), 1_400);
    let none = SocketOptions { interface: Some("none".to_owned()), ..options };
    let why = right.run(move || Socket::udp(&none)).unwrap_err();
    assert!(why.to_string().contains("there is no interface of that name"), "{why}");
}

#[test]
fn what_cannot_be_sent_as_a_burst_goes_singly() {
    if !is_possible() {
        return;
    }
    let (left, right) = Namespace::pair();
    let (mut from, mut to) = (udp(&left, "10.8.0.1:1"), udp(&right, "10.8.0.2:1"));
    // A socket that makes no checksums is refused bursts, as older kernels refuse them for devices that make none.
    let on: libc::c_int = 1;
    // SAFETY: the option is an `int`, which the call reads.
    let set = unsafe {
        libc::setsockopt(
            from.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_NO_CHECK,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    assert_eq!(set, 0);
    for _ in 0..2 {
        for index in 0..70 {
            from.push("10.8.0.2:1".parse().unwrap(), 2, &[&[index; 500]]);
        }
        from.push("10.8.0.2:1".parse().unwrap(), 2, &[&[70; 100]]);
        assert_eq!(from.flush(), went(71));
        let came = receive(&mut to, 71);
        assert!(came.iter().all(|(_, received)| received.ecn == 2));
        let first: Vec<_> = came.iter().map(|(data, _)| data[0]).collect();
        assert_eq!(first, (0..71).collect::<Vec<_>>());
    }
}

#[test]
fn a_buffer_that_stays_full_is_said() {
    if !is_possible() {
        return;
    }
    let (left, _right) = Namespace::pair();
    let options =
        SocketOptions { buffer_bytes: 1, ..SocketOptions::new("10.8.0.1:1".parse().unwrap()) };
    let mut from = left.run(move || Socket::udp(&options)).unwrap();
    // They wait in the buffer for a neighbour that does not answer.
    for length in 1_000..1_060 {
        from.push("10.8.0.9:9".parse().unwrap(), 0, &[&vec![0; length]]);
    }
    let sent = from.flush();
    assert_eq!(sent.packets + sent.dropped, 60);
    assert!(sent.packets > 0 && sent.dropped > 0, "{sent:?}");
    assert_eq!(sent.error, Some(ErrorKind::WouldBlock));
}

#[test]
fn why_there_is_no_socket_is_said() {
    let options = SocketOptions::new("192.0.2.1:4500".parse().unwrap());
    let why = Socket::udp(&options).unwrap_err();
    assert_eq!(why.kind(), ErrorKind::AddrNotAvailable);
    assert!(why.to_string().starts_with("opening the UDP socket 192.0.2.1:4500: "), "{why}");
    let first = Socket::udp(&SocketOptions::new("127.0.0.1:0".parse().unwrap())).unwrap();
    let taken = SocketOptions::new(first.local_address().unwrap());
    let why = Socket::udp(&taken).unwrap_err();
    assert_eq!(why.kind(), ErrorKind::AddrInUse);
    assert!(why.to_string().ends_with("another socket has that port"), "{why}");
}
