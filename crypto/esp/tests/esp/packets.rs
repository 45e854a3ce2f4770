//! IP packets read, messages about them, and what is in datagrams.

use crate::support::{address, ipv4, ipv6, outer, sum, udp, udp4, udp6};
use keyway_esp::{Cause, Encapsulated, InnerPacket, Suite, encapsulated, too_big};
use proptest::prelude::*;
use std::net::IpAddr;

#[test]
fn a_packet_of_ipv4_is_read() {
    let mut bytes = udp4(b"text");
    bytes[1] = 46 << 2 | 2;
    let packet = InnerPacket::parse(&bytes).unwrap();
    assert_eq!((packet.source(), packet.destination()), (address("10.1.0.5"), address("10.2.0.7")));
    assert_eq!((packet.protocol(), packet.ports()), (17, Some((5353, 53))));
    assert_eq!((packet.dscp(), packet.ecn()), (46, 2));
    assert!(packet.dont_fragment() && !packet.is_fragment());
    assert_eq!(packet.bytes(), bytes);
    let longer = [&bytes[..], b"behind it"].concat();
    assert_eq!(InnerPacket::parse(&longer).unwrap().bytes(), bytes);
    // The first fragment has ports, the others have none, and what they have in that place is not taken for one.
    bytes[6] = 0x20;
    let packet = InnerPacket::parse(&bytes).unwrap();
    assert!(packet.is_fragment() && !packet.is_later_fragment() && !packet.dont_fragment());
    assert_eq!(packet.ports(), Some((5353, 53)));
    bytes[7] = 1;
    let packet = InnerPacket::parse(&bytes).unwrap();
    assert!(packet.is_later_fragment());
    assert_eq!(packet.ports(), None);
    // Ports that are cut off, and a protocol without them.
    assert_eq!(InnerPacket::parse(&ipv4(6, &[1, 2, 3])).unwrap().ports(), None);
    assert_eq!(InnerPacket::parse(&ipv4(1, &[8, 0, 0, 0])).unwrap().ports(), None);
    // Behind options.
    let mut options = ipv4(17, &[&[1; 8][..], &udp(1, 2, b"")].concat());
    options[0] = 0x47;
    assert_eq!(InnerPacket::parse(&options).unwrap().ports(), Some((1, 2)));
}

#[test]
fn a_packet_of_ipv6_is_read_behind_its_extensions() {
    let mut bytes = udp6(b"text");
    bytes[0] = 0x60 | 46 >> 2;
    bytes[1] = ((46 << 2 | 1) << 4) as u8;
    let packet = InnerPacket::parse(&bytes).unwrap();
    assert_eq!(
        (packet.source(), packet.destination()),
        (address("fd00:1::5"), address("fd00:2::7"))
    );
    assert_eq!((packet.protocol(), packet.ports()), (17, Some((5353, 53))));
    assert_eq!((packet.dscp(), packet.ecn()), (46, 1));
    assert!(packet.dont_fragment() && !packet.is_fragment());
    let extended = |chain: &[(u8, usize)], last: u8| {
        let mut upper = Vec::new();
        for (at, (_, bytes)) in chain.iter().enumerate() {
            let next = chain.get(at + 1).map_or(last, |it| it.0);
            let start = upper.len();
            upper.extend([next, (bytes / 8 - 1) as u8]);
            upper.resize(start + bytes, 0);
        }
        upper.extend(udp(7, 8, b"text"));
        ipv6(chain.first().map_or(last, |it| it.0), &upper)
    };
    let bytes = extended(&[(0, 16), (60, 8), (43, 24), (44, 8), (60, 8)], 17);
    let packet = InnerPacket::parse(&bytes).unwrap();
    assert_eq!((packet.protocol(), packet.ports()), (17, Some((7, 8))));
    assert!(!packet.is_fragment());
    // A fragment that is not the first: nothing behind its header is looked at.
    let mut bytes = extended(&[(44, 8)], 60);
    bytes[43] = 8;
    let packet = InnerPacket::parse(&bytes).unwrap();
    assert!(packet.is_later_fragment());
    assert_eq!((packet.protocol(), packet.ports()), (60, None));
    // As many as are looked behind, and one more.
    assert!(InnerPacket::parse(&extended(&[(60, 8); 15], 17)).is_ok());
    assert!(InnerPacket::parse(&extended(&[(60, 8); 16], 17)).is_err());
    // One that reaches out of the packet.
    let mut bytes = extended(&[(60, 8)], 17);
    bytes[41] = 200;
    assert!(InnerPacket::parse(&bytes).is_err());
    assert!(InnerPacket::parse(&ipv6(60, &[17])).is_err());
    // No next header is no error of the packet.
    assert_eq!(InnerPacket::parse(&ipv6(59, &[])).unwrap().protocol(), 59);
}

proptest! {
    /// No bytes make it panic, and what it says is in them.
    #[test]
    fn no_bytes_do_harm(mut bytes in prop::collection::vec(any::<u8>(), 0..120), first in 0_u8..4) {
        if let Some(byte) = bytes.first_mut() {
            *byte = [0x45, 0x46, 0x60, *byte][usize::from(first)];
        }
        if let Some(length) = bytes.get_mut(if first == 2 { 4 } else { 2 }) {
            *length = 0;
        }
        if let Ok(packet) = InnerPacket::parse(&bytes) {
            prop_assert!(bytes.starts_with(packet.bytes()));
            prop_assert!(packet.ecn() < 4 && packet.dscp() < 64);
            let _ = too_big(&packet, 1300, packet.destination());
            let _ = too_big(&packet, 1300, address("10.9.9.9"));
            let _ = too_big(&packet, 1300, address("fd00::9"));
        }
        let _ = encapsulated(&bytes);
    }
}

#[test]
fn a_sender_hears_that_its_packet_is_too_long() {
    let bytes = udp4(&[7; 1_400]);
    let packet = InnerPacket::parse(&bytes).unwrap();
    let message = too_big(&packet, 1_300, address("10.1.0.1")).unwrap();
    assert_eq!(message.len(), 576);
    let parsed = InnerPacket::parse(&message).unwrap();
    assert_eq!((parsed.source(), parsed.destination()), (address("10.1.0.1"), packet.source()));
    assert_eq!((parsed.protocol(), parsed.bytes().len()), (1, 576));
    assert_eq!(sum(&message[..20]), 0xffff);
    assert_eq!(sum(&message[20..]), 0xffff);
    assert_eq!(message[20..22], [3, 4]);
    assert_eq!(message[24..28], [0, 0, 0x05, 0x14]);
    assert_eq!(message[28..], bytes[..548]);

    let bytes = udp6(&[7; 1_400]);
    let packet = InnerPacket::parse(&bytes).unwrap();
    let message = too_big(&packet, 1_300, address("fd00:1::1")).unwrap();
    assert_eq!(message.len(), 1_280);
    let parsed = InnerPacket::parse(&message).unwrap();
    assert_eq!((parsed.destination(), parsed.protocol()), (packet.source(), 58));
    let pseudo = [&message[8..40], &[0, 0, 4, 216, 0, 0, 0, 58]].concat();
    assert_eq!(sum(&[&pseudo[..], &message[40..]].concat()), 0xffff);
    assert_eq!(message[40..42], [2, 0]);
    assert_eq!(message[44..48], [0, 0, 0x05, 0x14]);
    assert_eq!(message[48..], bytes[..1_232]);
    // No link with IPv6 is shorter.
    let message = too_big(&packet, 600, address("fd00:1::1")).unwrap();
    assert_eq!(message[44..48], [0, 0, 0x05, 0x00]);
}

#[test]
fn some_packets_are_too_long_in_silence() {
    let v4: IpAddr = address("10.1.0.1");
    let said =
        |bytes: &[u8], from| too_big(&InnerPacket::parse(bytes).unwrap(), 1_300, from).is_some();
    let changed = |at: usize, value: u8| {
        let mut bytes = udp4(&[7; 1_400]);
        bytes[at] = value;
        bytes
    };
    assert!(said(&changed(0, 0x45), v4));
    assert!(!said(&changed(6, 0), v4), "it may be cut");
    assert!(!said(&changed(7, 1), v4), "a later fragment");
    assert!(said(&changed(6, 0x60), v4), "a first fragment");
    assert!(!said(&changed(16, 224), v4), "to many");
    assert!(!said(&changed(12, 224), v4), "from many");
    assert!(!said(&changed(12, 0), v4), "from no host");
    assert!(!said(&changed(0, 0x45), address("fd00::1")), "another family");
    for (kind, error) in [(0, false), (8, false), (3, true), (5, true), (11, true), (12, true)] {
        assert_eq!(said(&ipv4(1, &[kind, 0, 0, 0]), v4), !error, "{kind}");
    }
    assert!(!said(&ipv4(1, &[]), v4), "it might be an error");
    let v6 = address("fd00:1::1");
    for (kind, error) in [(1, true), (2, true), (127, true), (128, false), (137, true)] {
        assert_eq!(said(&ipv6(58, &[kind, 0, 0, 0]), v6), !error, "{kind}");
    }
    // RFC 4443 § 2.4 (e.3): about a packet to many it may be said, and has to be.
    let mut many = udp6(&[7; 1_400]);
    many[24] = 0xff;
    assert!(said(&many, v6));
    let mut from_none = udp6(&[7; 1_400]);
    from_none[8..24].fill(0);
    assert!(!said(&from_none, v6));
}

#[test]
fn a_datagram_has_esp_or_ike_or_keeps_alive() {
    assert_eq!(encapsulated(&[0, 0, 1, 0, 9]), Encapsulated::Esp(&[0, 0, 1, 0, 9]));
    assert_eq!(encapsulated(&[0, 0, 0, 0, 9]), Encapsulated::Ike(&[9]));
    assert_eq!(encapsulated(&[0; 4]), Encapsulated::Ike(&[]));
    assert_eq!(encapsulated(&[0xff]), Encapsulated::Keepalive);
    for malformed in [&[][..], &[0xfe], &[0xff, 0xff], &[0; 3]] {
        assert_eq!(encapsulated(malformed), Encapsulated::Malformed);
    }
}

#[test]
fn names_are_read_back_and_differ() {
    for suite in Suite::ALL {
        assert_eq!(Suite::from_name(suite.name()), Some(suite));
    }
    assert_eq!(Suite::from_name("des"), None);
    let mut names: Vec<_> = Cause::ALL.map(Cause::name).into();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Cause::ALL.len());
    assert_eq!(outer(&udp4(&[])).ecn, 0);
}
