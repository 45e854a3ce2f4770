//! No packet asks for memory, once as many were there as come at a time.

use keyway_packet_io::{Coalescer, Socket, SocketOptions};
use keyway_test_allocator::within;
use rustix::event::{PollFd, PollFlags};

#[test]
fn datagrams_ask_for_no_memory() {
    let options = SocketOptions::new("127.0.0.1:0".parse().unwrap());
    let mut from = Socket::udp(&options).unwrap();
    let mut to = Socket::udp(&options).unwrap();
    let address = to.local_address().unwrap();
    let data = [7; 1_000];
    let mut round = || {
        for index in 0..100 {
            from.push(address, 0, &[&data[..500 + index % 7], &data[..400]]);
        }
        assert_eq!(from.flush().packets, 100);
        let mut left = 100;
        while left > 0 {
            rustix::event::poll(&mut [PollFd::new(&to, PollFlags::IN)], None).unwrap();
            left -= to.receive(|datagram, _| assert!(datagram.len() >= 900)).unwrap();
        }
    };
    round();
    assert_eq!(within(round), 0);
}

#[test]
fn joined_packets_ask_for_no_memory() {
    let mut coalescer = Coalescer::new(true);
    // IPv4, UDP, with a checksum that is wrong: each begins anew. And what is no packet.
    let mut packet = vec![0; 528];
    packet[..12].copy_from_slice(&[0x45, 0, 2, 16, 0, 0, 0x40, 0, 64, 17, 0x74, 0xdb]);
    packet[24..28].copy_from_slice(&[1, 252, 1, 1]);
    let mut round = || {
        for index in 0..200 {
            packet[20] = index;
            coalescer.push(&packet, |_, _, _| {});
            coalescer.push(&packet[..17], |_, _, _| {});
        }
        coalescer.flush(|_, _, _| {});
    };
    round();
    assert_eq!(within(round), 0);
}
