//! Cutting and joining, against a plain model of packets.

mod model;

use keyway_packet_io::{Coalescer, Malformed, VIRTIO_HEADER_BYTES, split};
use model::{ACK, CWR, ECE, FIN, PSH, Packet, RST, SYN, URG};
use proptest::prelude::*;

/// The packets of a frame.
fn cut(frame: &[u8]) -> Result<Vec<Vec<u8>>, Malformed> {
    let mut packets = Vec::new();
    let count = split(&mut frame.to_vec(), |packet| packets.push(packet.to_vec()))?;
    assert_eq!(count, packets.len());
    Ok(packets)
}

/// The frames that packets are joined to, and how many packets each says that it is.
fn join(joins_udp: bool, packets: &[Vec<u8>]) -> Vec<(Vec<u8>, usize)> {
    let mut coalescer = Coalescer::new(joins_udp);
    let mut frames = Vec::new();
    let mut take = |header: &[u8; VIRTIO_HEADER_BYTES], packet: &[u8], count: usize| {
        frames.push(([header, packet].concat(), count));
    };
    for packet in packets {
        coalescer.push(packet, &mut take);
    }
    coalescer.flush(&mut take);
    coalescer.flush(|_, _, _| panic!("nothing is left after a flush"));
    frames
}

/// How many frames these packets become.
fn frames(packets: &[Packet]) -> usize {
    let bytes: Vec<_> = packets.iter().map(Packet::bytes).collect();
    let frames = join(true, &bytes);
    assert_eq!(frames.iter().map(|(_, count)| count).sum::<usize>(), packets.len());
    frames.len()
}

fn data(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 7 + at / 251) as u8).collect()
}

/// A packet to be cut, and the bytes of a segment.
fn super_packet() -> impl Strategy<Value = (Packet, usize)> {
    let flags = prop::sample::select(vec![ACK, ACK | PSH, ACK | FIN | PSH, ACK | CWR, ACK | ECE]);
    let options = prop::sample::select(vec![0_usize, 12, 40]);
    let sizes = (1_usize..9_000, 1_usize..20_000);
    (any::<(bool, bool, bool, u8, u16, u32)>(), flags, options, sizes).prop_map(
        |((is_ipv6, is_tcp, has_df, class, identification, sequence), flags, options, sizes)| {
            let (segment_bytes, bytes) = sizes;
            let packet = match is_tcp {
                true => Packet::tcp(is_ipv6, sequence, data(bytes)),
                false => Packet::udp(is_ipv6, data(bytes)),
            };
            let options = if is_tcp { data(options) } else { Vec::new() };
            let packet =
                Packet { traffic_class: class, identification, has_df, flags, options, ..packet };
            (packet, segment_bytes)
        },
    )
}

proptest! {
    #[test]
    fn a_frame_is_cut_as_the_model_cuts_it((packet, segment_bytes) in super_packet()) {
        let expected: Vec<_> = packet.segments(segment_bytes).iter().map(Packet::bytes).collect();
        prop_assert_eq!(cut(&packet.frame(segment_bytes)).unwrap(), expected);
    }

    #[test]
    fn segments_are_joined_to_what_they_were(
        (packet, segment_bytes) in super_packet().prop_map(|(packet, bytes)| (packet, bytes.max(400)))
    ) {
        let packets: Vec<_> = packet.segments(segment_bytes).iter().map(Packet::bytes).collect();
        let joined = join(true, &packets);
        if packets.len() > 1 && !(packet.is_tcp && packet.flags & CWR != 0) {
            prop_assert_eq!(joined, vec![(packet.frame(segment_bytes), packets.len())]);
        }
    }

    #[test]
    fn what_was_joined_is_cut_to_the_bytes_that_came(
        packets in prop::collection::vec((super_packet(), 0_u8..3), 1..6),
        order in any::<prop::sample::Index>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>()), 0..4),
        joins_udp: bool,
    ) {
        // Flows that alternate.
        let mut flows: Vec<Vec<Vec<u8>>> = Vec::new();
        for (index, ((packet, bytes), from)) in packets.iter().enumerate() {
            let packet = Packet { from: *from, port: index as u16, ..packet.clone() };
            flows.push(packet.segments((*bytes).max(200)).iter().map(Packet::bytes).collect());
        }
        let mut came = Vec::new();
        let mut at = order.index(flows.len());
        while flows.iter().any(|flow| !flow.is_empty()) {
            let count = flows.len();
            let flow = &mut flows[at % count];
            came.extend(flow.drain(..flow.len().min(1 + at % 3)));
            at += 1;
        }
        for (packet, byte, value) in &damage {
            let packet = packet.get_mut(&mut came);
            let at = byte.index(packet.len());
            packet[at] ^= value;
        }
        let mut went: Vec<Vec<u8>> = Vec::new();
        for (frame, count) in join(joins_udp, &came) {
            let packets = match count {
                1 => vec![frame[VIRTIO_HEADER_BYTES..].to_vec()],
                _ => cut(&frame).unwrap(),
            };
            prop_assert_eq!(packets.len(), count);
            went.extend(packets);
        }
        prop_assert_eq!(by_flow(&went), by_flow(&came));
    }

    #[test]
    fn any_frame_is_cut_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400), kind in 0_u8..7) {
        let mut frame = bytes;
        if let Some(first) = frame.get_mut(..2) {
            first.copy_from_slice(&[1, kind]);
        }
        let _ = cut(&frame);
    }

    #[test]
    fn a_damaged_frame_is_cut_or_refused(
        (packet, segment_bytes) in super_packet(),
        at in any::<prop::sample::Index>(),
        value: u8,
        left in any::<prop::sample::Index>(),
    ) {
        let mut frame = packet.frame(segment_bytes);
        // Mostly in the headers.
        let at = at.index(frame.len().min(90));
        frame[at] ^= value;
        let _ = cut(&frame);
        frame.truncate(left.index(frame.len()));
        let _ = cut(&frame);
    }

    #[test]
    fn any_packets_are_joined_or_not(
        packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 0..20)
    ) {
        let joined = join(true, &packets);
        prop_assert_eq!(joined.iter().map(|(_, count)| count).sum::<usize>(), packets.len());
    }
}

/// Packets of a flow stay in order, those of different flows need not.
fn by_flow(packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut packets = packets.to_vec();
    packets.sort_by_key(|packet| match packet.first().map(|first| first >> 4) {
        Some(4) if packet.len() >= 24 => [&packet[9..10], &packet[12..24]].concat(),
        Some(6) if packet.len() >= 44 => [&packet[6..7], &packet[8..44]].concat(),
        _ => Vec::new(),
    });
    packets
}

#[test]
fn a_checksum_is_finished() {
    for packet in [
        Packet::tcp(false, 1, data(33)),
        Packet::tcp(true, 1, Vec::new()),
        Packet::udp(false, data(33)),
        Packet::udp(true, Vec::new()),
    ] {
        let mut frame = packet.frame(1);
        frame[1] = 0;
        assert_eq!(cut(&frame), Ok(vec![packet.bytes()]));
        // As it is, without the flag.
        let mut frame = [vec![0; VIRTIO_HEADER_BYTES], packet.bytes()].concat();
        frame[6] = 200;
        assert_eq!(cut(&frame), Ok(vec![packet.bytes()]));
    }
}

/// A change of a good frame.
type Change = fn(&mut Vec<u8>);

#[test]
fn frames_that_contradict_themselves_are_refused() {
    let changes: [(&str, Change); 14] = [
        ("no packet", |frame| frame.truncate(VIRTIO_HEADER_BYTES)),
        ("no whole header", |frame| frame.truncate(VIRTIO_HEADER_BYTES - 1)),
        ("no data", |frame| frame.truncate(VIRTIO_HEADER_BYTES + 20 + 32)),
        ("a part of TCP's header", |frame| frame.truncate(VIRTIO_HEADER_BYTES + 20 + 10)),
        ("no checksum to be finished", |frame| frame[0] = 0),
        ("fragments of UDP (UFO)", |frame| frame[1] = 3),
        ("IPv6 that is IPv4", |frame| frame[1] = 4),
        ("an unknown kind", |frame| frame[1] = 9),
        ("segments of nothing", |frame| frame[4..6].fill(0)),
        ("TCP elsewhere", |frame| frame[6..8].copy_from_slice(&24_u16.to_ne_bytes())),
        ("a checksum elsewhere", |frame| frame[8..10].copy_from_slice(&6_u16.to_ne_bytes())),
        ("a version that is none", |frame| frame[VIRTIO_HEADER_BYTES] = 0x55),
        ("an IPv4 header too short", |frame| frame[VIRTIO_HEADER_BYTES] = 0x44),
        ("a TCP header too short", |frame| frame[VIRTIO_HEADER_BYTES + 20 + 12] = 0x40),
    ];
    let good = Packet::tcp(false, 1, data(3_000)).frame(1_000);
    assert_eq!(cut(&good).unwrap().len(), 3);
    for (what, change) in changes {
        let mut frame = good.clone();
        change(&mut frame);
        assert_eq!(cut(&frame), Err(Malformed), "{what}");
    }
    // A checksum behind the end.
    let mut frame = good;
    frame[1] = 0;
    frame[6..8].copy_from_slice(&60_000_u16.to_ne_bytes());
    assert_eq!(cut(&frame), Err(Malformed));
}

/// A change of the second of two packets.
type Difference = fn(&mut Packet);

#[test]
fn what_the_kernel_would_not_join_is_not_joined() {
    let tcp: [(&str, Difference); 14] = [
        ("a gap", |packet| packet.sequence += 1),
        ("a repetition", |packet| packet.sequence -= 1_000),
        ("another acknowledgement", |packet| packet.acknowledgement += 1),
        ("another window", |packet| packet.window += 1),
        ("other options", |packet| packet.options[11] = 3),
        ("fewer options", |packet| packet.options.truncate(8)),
        ("SYN", |packet| packet.flags |= SYN),
        ("RST", |packet| packet.flags |= RST),
        ("URG", |packet| packet.flags |= URG),
        ("ECE", |packet| packet.flags |= ECE),
        ("CWR", |packet| packet.flags |= CWR),
        ("no ACK", |packet| packet.flags = 0),
        ("no data", |packet| packet.data.clear()),
        ("more data", |packet| packet.data.push(0)),
    ];
    let ip: [(&str, Difference); 4] = [
        ("another class", |packet| packet.traffic_class ^= 1),
        ("another hop limit", |packet| packet.hop_limit -= 1),
        ("another port", |packet| packet.port += 1),
        ("another address", |packet| packet.from += 1),
    ];
    let udp: [(&str, Difference); 2] =
        [("no data", |packet| packet.data.clear()), ("more data", |packet| packet.data.push(0))];
    for is_ipv6 in [false, true] {
        let pair = |packet: Packet| {
            let mut packets = packet.segments(1_000);
            assert_eq!(frames(&packets), 1);
            packets.truncate(2);
            packets
        };
        let of_tcp = pair(Packet::tcp(is_ipv6, 5_000, data(2_000)));
        let of_udp = pair(Packet::udp(is_ipv6, data(2_000)));
        let both =
            [(&of_tcp, &ip[..]), (&of_tcp, &tcp[..]), (&of_udp, &ip[..]), (&of_udp, &udp[..])];
        for (packets, differences) in both {
            for (what, difference) in differences {
                let mut packets = packets.clone();
                difference(&mut packets[1]);
                assert_eq!(frames(&packets), 2, "{what}, IPv6: {is_ipv6}, {:?}", packets[1]);
            }
        }
        // Another protocol of equal ports.
        assert_eq!(frames(&[of_tcp[0].clone(), of_udp[1].clone()]), 2);
    }
    let mut packets = Packet::tcp(false, 5_000, data(2_000)).segments(1_000);
    packets[1].has_df = false;
    assert_eq!(frames(&packets), 2);
    packets[0].has_df = false;
    assert_eq!(frames(&packets), 1);
    packets[1].identification += 1;
    assert_eq!(frames(&packets), 2, "identifications go up by one");
    packets[1].identification = packets[0].identification;
    assert_eq!(frames(&packets), 2, "they are equal with DF only");
    packets.iter_mut().for_each(|packet| packet.has_df = true);
    assert_eq!(frames(&packets), 1);
}

#[test]
fn damaged_fragmented_and_optioned_packets_are_not_joined() {
    let changes: [(&str, Change); 6] = [
        ("data", |packet| packet[70] ^= 1),
        ("checksum of TCP", |packet| packet[36] ^= 1),
        ("checksum of IPv4", |packet| packet[10] ^= 1),
        ("more fragments", |packet| packet[6] |= 0x20),
        ("an offset", |packet| packet[7] = 1),
        ("a byte behind the packet", |packet| packet.push(0)),
    ];
    let packets: Vec<_> =
        Packet::tcp(false, 5_000, data(2_000)).segments(1_000).iter().map(Packet::bytes).collect();
    for (what, change) in changes {
        for which in [0, 1] {
            let mut packets = packets.clone();
            change(&mut packets[which]);
            let joined = join(true, &packets);
            assert_eq!(joined.len(), 2, "{what}");
            for packet in &packets {
                let alone = ([&[0; VIRTIO_HEADER_BYTES], &packet[..]].concat(), 1);
                assert!(joined.contains(&alone), "{what}");
            }
        }
    }
}

#[test]
fn a_fragment_stays_behind_what_came_before_it() {
    for (is_ipv6, protocol, value) in [(false, 7, 1), (true, 6, 44)] {
        let mut packets: Vec<_> =
            Packet::udp(is_ipv6, data(1_500)).segments(500).iter().map(Packet::bytes).collect();
        packets[2][protocol] = value;
        let expected: Vec<_> = packets.clone();
        let joined = join(true, &packets);
        let counts: Vec<_> = joined.iter().map(|(_, count)| *count).collect();
        assert_eq!(counts, [2, 1]);
        assert_eq!(joined[1].0[VIRTIO_HEADER_BYTES..], expected[2]);
    }
}

#[test]
fn udp_is_joined_where_the_device_takes_it() {
    let packet = Packet::udp(false, data(100 * 500));
    let packets: Vec<_> = packet.segments(500).iter().map(Packet::bytes).collect();
    assert_eq!(join(false, &packets).len(), packets.len());
    let counts: Vec<_> = join(true, &packets).iter().map(|(_, count)| *count).collect();
    assert_eq!(counts, [64, 36]);
    // Without a checksum none is made up.
    let mut packets = packets;
    for packet in &mut packets {
        packet[26..28].fill(0);
    }
    assert_eq!(join(true, &packets).len(), packets.len());
}

#[test]
fn a_joined_packet_has_at_most_64_kibibytes() {
    for is_ipv6 in [false, true] {
        let packets: Vec<_> = (0..100)
            .map(|index| Packet {
                identification: index as u16,
                ..Packet::tcp(is_ipv6, index * 1_400, data(1_400))
            })
            .collect();
        let bytes: Vec<_> = packets.iter().map(Packet::bytes).collect();
        let joined = join(true, &bytes);
        assert_eq!(joined.len(), 3);
        let went: Vec<_> = joined.iter().flat_map(|(frame, _)| cut(frame).unwrap()).collect();
        assert_eq!(went, bytes);
    }
}

#[test]
fn the_first_of_more_flows_than_are_held_makes_room() {
    let packets: Vec<_> = (0..200_u16)
        .flat_map(|port| Packet { port, ..Packet::tcp(true, 0, data(200)) }.segments(100))
        .collect();
    // One after the other, each flow is joined; in turns, none is.
    assert_eq!(frames(&packets), 200);
    let (first, second): (Vec<_>, Vec<_>) =
        packets.into_iter().partition(|packet| packet.sequence == 0);
    assert_eq!(frames(&[first, second].concat()), 400);
}
