//! Prefixes, selectors, and the table of policies against a plain list.

use crate::support::{address, ipv4, ipv6, udp, udp4, udp6};
use keyway_esp::{InnerPacket, Outbound, Prefix, PrefixError, Selector};
use proptest::prelude::*;
use std::cmp::Reverse;

fn prefix(text: &str) -> Prefix {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn prefixes_are_read() {
    for text in ["10.1.0.0/24", "0.0.0.0/0", "10.1.2.3/32", "2001:db8::/32", "::/0", "::1/128"] {
        assert_eq!(prefix(text).to_string(), text);
    }
    assert_eq!(prefix("10.1.2.3"), prefix("10.1.2.3/32"));
    let error = |text: &str| text.parse::<Prefix>().unwrap_err();
    for text in ["", "/", "10.1.0.0/", "10.1.0/24", "10.1.0.0/+4", "10.1.0.0/2 ", "a/1", "1/1"] {
        assert_eq!(error(text), PrefixError::Form, "{text}");
    }
    assert_eq!(error("10.1.0.0/33"), PrefixError::Bits { most: 32 });
    assert_eq!(error("::/129"), PrefixError::Bits { most: 128 });
    assert_eq!(error("::/300"), PrefixError::Bits { most: 128 });
    let within = prefix("10.1.0.0/24");
    assert_eq!(error("10.1.0.7/24"), PrefixError::HostBits { within });
    assert!(error("10.1.0.7/24").to_string().contains("10.1.0.0/24"));
    assert!(prefix("0.0.0.0/0").contains(address("1.2.3.4")));
    assert!(!prefix("0.0.0.0/0").contains(address("::")));
    assert!(prefix("fd00:1::/32").contains(address("fd00:1::9")));
    assert!(!prefix("fd00:1::/32").contains(address("fd00:2::9")));
}

#[test]
fn the_longest_prefix_goes_first_then_the_order() {
    let between = |local, remote| Selector::between(prefix(local), prefix(remote));
    let web = Selector {
        protocol: Some(6),
        remote_ports: 443..=443,
        ..between("10.1.0.0/24", "10.2.0.7/32")
    };
    let table = Outbound::new([
        (between("0.0.0.0/0", "0.0.0.0/0"), "default"),
        (between("10.1.0.0/24", "10.2.0.0/24"), "office"),
        (between("10.1.0.5/32", "10.2.0.0/24"), "one host"),
        (web.clone(), "web"),
        (Selector { protocol: None, ..web.clone() }, "web again"),
        (between("::/0", "::/0"), "six"),
    ]);
    let find = |bytes: &[u8]| table.find(&InnerPacket::parse(bytes).unwrap()).copied();
    assert_eq!(find(&udp4(b"")), Some("one host"));
    assert_eq!(find(&ipv4(6, &udp(9, 443, b""))), Some("web"));
    assert_eq!(find(&ipv4(17, &udp(9, 443, b""))), Some("web again"));
    assert_eq!(find(&ipv4(6, &udp(443, 9, b""))), Some("one host"));
    let mut other = udp4(b"");
    other[15] = 6;
    assert_eq!(find(&other), Some("office"));
    other[12] = 11;
    assert_eq!(find(&other), Some("default"));
    assert_eq!(find(&udp6(b"")), Some("six"));
    assert_eq!(Outbound::<()>::default().find(&InnerPacket::parse(&other).unwrap()), None);
    assert_eq!(table.policies().len(), 6);
}

/// Prefixes of a few addresses that begin alike.
fn any_prefix() -> impl Strategy<Value = Prefix> {
    let v4 = (0_u32..4, prop::sample::select(vec![0_u8, 8, 30, 31, 32])).prop_map(|(low, bits)| {
        let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
        Prefix::new(std::net::Ipv4Addr::from((0x0a01_0000 + low) & mask).into(), bits).unwrap()
    });
    let v6 =
        (0_u128..4, prop::sample::select(vec![0_u8, 126, 127, 128])).prop_map(|(low, bits)| {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            let address = ((0xfd00_u128 << 112) + low) & mask;
            Prefix::new(std::net::Ipv6Addr::from(address).into(), bits).unwrap()
        });
    prop_oneof![v4, v6]
}

fn selector() -> impl Strategy<Value = Selector> {
    let protocol = prop::option::of(prop::sample::select(vec![6_u8, 17]));
    let ports = || prop_oneof![2 => Just(0..=u16::MAX), 1 => Just(1..=2), 1 => Just(3..=3)];
    (any_prefix(), any_prefix(), protocol, ports(), ports()).prop_map(
        |(local, remote, protocol, local_ports, remote_ports)| Selector {
            local,
            remote,
            protocol,
            local_ports,
            remote_ports,
        },
    )
}

proptest! {
    #[test]
    fn the_table_finds_what_a_list_finds(
        selectors in prop::collection::vec(selector(), 0..30),
        packets in prop::collection::vec((any::<bool>(), 0_u8..5, 0_u8..5, 0_usize..3, 0_u16..5, 0_u16..5), 20),
    ) {
        let table = Outbound::new(selectors.iter().cloned().zip(0..));
        let mut list: Vec<_> = selectors.iter().zip(0..).collect();
        list.sort_by_key(|(it, order)| (Reverse((it.remote.bits(), it.local.bits())), *order));
        for (v6, source, destination, protocol, from, to) in packets {
            let (protocol, upper) = ([6, 17, 1][protocol], udp(from, to, b""));
            let bytes = match v6 {
                true => {
                    let mut bytes = ipv6(protocol, &upper);
                    bytes[8..40].fill(0);
                    (bytes[8], bytes[23], bytes[24], bytes[39]) = (0xfd, source, 0xfd, destination);
                    bytes
                }
                false => {
                    let mut bytes = ipv4(protocol, &upper);
                    bytes[12..20].copy_from_slice(&[10, 1, 0, source, 10, 1, 0, destination]);
                    bytes
                }
            };
            let packet = InnerPacket::parse(&bytes).unwrap();
            let expected = list.iter().find(|(it, _)| it.fits_outbound(&packet)).map(|it| it.1);
            prop_assert_eq!(table.find(&packet).copied(), expected);
            // A packet that comes back fits as well.
            let mut back = bytes.clone();
            let (at, half) = if v6 { (8, 16) } else { (12, 4) };
            back[at..at + 2 * half].rotate_left(half);
            let upper = back.len() - 8;
            back[upper..upper + 4].rotate_left(2);
            let back = InnerPacket::parse(&back).unwrap();
            for selector in &selectors {
                prop_assert_eq!(selector.fits_outbound(&packet), selector.fits_inbound(&back));
            }
        }
    }
}
