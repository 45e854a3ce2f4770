//! Packets that no honest peer sends. Some are authentic: the peer's gateway may be under the attacker's control.

use crate::support::{
    ENGINE, Kind, NOW, Pair, SPI, address, ipv4, ipv6, key, outer, udp, udp4, udp6, with_text,
};
use keyway_esp::{
    Cause, Dispatch, DuplicateSpi, Inbound, InboundSa, InnerPacket, Lifetime, Mode, OutboundSa,
    Outer, Prefix, SaError, SaKey, Selector, Selectors, Suite,
};
use std::sync::Arc;

const GCM: Kind = Kind { suite: Suite::Aes128Gcm, mode: Mode::Tunnel, esn: false };

/// Text, padding 1, 2, 3 to a multiple of 4, its length, and the next header.
fn padded(text: &[u8], next_header: u8) -> Vec<u8> {
    let padding = (text.len() + 2).next_multiple_of(4) - text.len() - 2;
    let mut padded = text.to_vec();
    padded.extend((0..padding).map(|at| at as u8 + 1));
    padded.extend([padding as u8, next_header]);
    padded
}

/// The fate of an authentic packet with this text.
fn verdict(kind: Kind, text: &[u8]) -> Result<Vec<u8>, Cause> {
    let mut pair = Pair::new(kind, 1..2, 64);
    let packet = with_text(kind, 9, text);
    let result = pair.open(&[packet], outer(&udp4(&[]))).remove(0);
    // Whatever is in it: the number was used.
    assert_eq!(pair.inside.highest(), 9);
    result
}

#[test]
fn authentic_texts_that_are_no_packets() {
    let packet = udp4(b"0123456");
    assert_eq!(verdict(GCM, &padded(&packet, 4)), Ok(packet.clone()));
    // Next headers: a version that is another, no IP at all, none.
    for (next_header, cause) in [(41, Cause::Malformed), (17, Cause::Malformed), (59, Cause::Dummy)]
    {
        assert_eq!(verdict(GCM, &padded(&packet, next_header)), Err(cause));
    }
    assert_eq!(verdict(GCM, &padded(&[], 59)), Err(Cause::Dummy));
    assert_eq!(verdict(GCM, &padded(&[], 4)), Err(Cause::Malformed));
    // Padding that is another, or longer than the text.
    let mut wrong = padded(&packet, 4);
    let at = wrong.len() - 3;
    wrong[at] ^= 1;
    assert_eq!(verdict(GCM, &wrong), Err(Cause::Malformed));
    let mut wrong = padded(&packet, 4);
    let at = wrong.len() - 2;
    wrong[at] = 255;
    assert_eq!(verdict(GCM, &wrong), Err(Cause::Malformed));
    // As much padding as there can be.
    let long: Vec<u8> = packet.iter().copied().chain(1..=255).chain([255, 4]).collect();
    assert_eq!(long.len() % 4, 0);
    assert_eq!(verdict(GCM, &long), Ok(packet.clone()));
    // Padding that hides the length, behind the packet (RFC 4303 § 2.7).
    let hidden = [&packet[..], &[0xaa; 301]].concat();
    assert_eq!(verdict(GCM, &padded(&hidden, 4)), Ok(packet.clone()));
    let hidden = [&udp6(b"text")[..], &[0; 77]].concat();
    assert_eq!(verdict(GCM, &padded(&hidden, 41)), Ok(udp6(b"text")));
    // Lengths that reach out of it, or are too small.
    for (at, value) in [(3, 200), (2, 1), (3, 19), (0, 0x44), (0, 0x4f), (0, 0x55), (3, 0)] {
        let mut wrong = packet.clone();
        wrong[at] = value;
        assert_eq!(verdict(GCM, &padded(&wrong, 4)), Err(Cause::Malformed), "{at} {value}");
    }
    let mut wrong = udp6(&[1]);
    wrong[5] += 5;
    assert_eq!(verdict(GCM, &padded(&wrong, 41)), Err(Cause::Malformed));
    assert_eq!(verdict(GCM, &padded(&wrong[..39], 41)), Err(Cause::Malformed));
    assert_eq!(verdict(GCM, &padded(&packet[..19], 4)), Err(Cause::Malformed));
}

#[test]
fn authentic_texts_that_transport_mode_cannot_have() {
    let kind = Kind { mode: Mode::Transport, ..GCM };
    let upper = udp(5353, 53, b"text");
    assert_eq!(verdict(kind, &padded(&upper, 17)), Ok(udp4(b"text")));
    // A packet of IPv4 in the packet is a payload like others.
    assert_eq!(verdict(kind, &padded(&udp4(b"x"), 4)), Ok(ipv4(4, &udp4(b"x"))));
    assert_eq!(verdict(kind, &padded(&upper, 59)), Err(Cause::Dummy));
    assert_eq!(verdict(kind, &padded(&vec![0; 65_000], 17)).map(|it| it.len()), Ok(65_020));
    // With IPv6 there are headers that routers look at, and fragments.
    for (next_header, text, expected) in [
        (0, vec![17, 0, 1, 4, 0, 0, 0, 0], Err(Cause::Transport)),
        (43, vec![17, 0, 0, 0, 0, 0, 0, 0], Err(Cause::Transport)),
        (44, vec![17, 0, 0, 9, 0, 0, 0, 1], Err(Cause::Transport)),
        (60, vec![17, 0, 1, 4, 0, 0, 0, 0], Ok(())),
        (60, vec![17, 1, 1, 4, 0, 0, 0, 0], Err(Cause::Malformed)),
        (17, udp(1, 2, b"abc"), Ok(())),
    ] {
        let mut pair = Pair::new(kind, 1..2, 64);
        let packet = with_text(kind, 1, &padded(&text, next_header));
        let result = pair.open(&[packet], outer(&udp6(&[]))).remove(0);
        assert_eq!(result, expected.map(|()| ipv6(next_header, &text)), "{next_header}");
    }
    // Outer addresses of two families.
    let mut pair = Pair::new(kind, 1..2, 64);
    let mixed = Outer { source: address("10.0.0.1"), destination: address("::1"), ecn: 0 };
    let packet = with_text(kind, 1, &padded(&upper, 17));
    assert_eq!(pair.open(&[packet], mixed), [Err(Cause::Malformed)]);
}

#[test]
fn packets_that_transport_mode_does_not_take() {
    let kind = Kind { mode: Mode::Transport, ..GCM };
    let mut pair = Pair::new(kind, 1..200, 64);
    let mut options = ipv4(17, &[&[1; 4][..], &udp(1, 2, b"")].concat());
    options[0] = 0x46;
    let mut fragment = udp4(b"text");
    fragment[6] = 0x20;
    let mut later = udp4(b"text");
    later[7] = 9;
    let hop_by_hop = ipv6(0, &[&[17, 0, 1, 4, 0, 0, 0, 0][..], &udp(1, 2, b"")].concat());
    let routing = ipv6(43, &[&[17, 0, 0, 0, 0, 0, 0, 0][..], &udp(1, 2, b"")].concat());
    let fragment6 = ipv6(44, &[&[17, 0, 0, 1, 0, 0, 0, 0][..], &udp(1, 2, b"")].concat());
    for packet in [options, fragment, later, hop_by_hop, routing, fragment6] {
        let packet = InnerPacket::parse(&packet).unwrap();
        assert_eq!(pair.sealer.push(&pair.out, &packet, 0), Err(Cause::Transport), "{packet:?}");
    }
    assert_eq!(pair.out.next_number(), 1);
}

#[test]
fn lengths_that_no_packet_has() {
    for kind in Kind::all() {
        let mut pair = Pair::new(kind, 1..200, 64);
        let whole = pair.seal(&[udp4(b"twenty bytes of text")]).remove(0).unwrap();
        let around = outer(&udp4(&[]));
        for bytes in 0..whole.len() {
            let cut = whole[..bytes].to_vec();
            let cause = pair.open(&[cut], around).remove(0).unwrap_err();
            let overhead = kind.suite.sealed_bytes(0);
            if bytes < 8 || bytes < overhead {
                assert_eq!(cause, Cause::Malformed, "{kind:?} {bytes}");
            } else {
                assert!(matches!(cause, Cause::Malformed | Cause::Icv), "{kind:?} {bytes}");
            }
        }
        assert!(pair.open(std::slice::from_ref(&whole), around).remove(0).is_ok());
        let long = vec![0; 65_508];
        assert_eq!(pair.open(std::slice::from_ref(&long), around), [Err(Cause::Spi)]);
        let long = [&whole[..8], &long[8..]].concat();
        assert_eq!(pair.open(&[long], around), [Err(Cause::TooLong)]);
        // Too long to be sealed.
        let packet = ipv4(17, &vec![0; 65_515]);
        let packet = InnerPacket::parse(&packet).unwrap();
        assert_eq!(pair.sealer.push(&pair.out, &packet, 0), Err(Cause::TooLong));
    }
}

/// A forged packet with a high number does not move the window, and an authentic one of number 0 is none.
#[test]
fn numbers_that_no_packet_has() {
    for esn in [false, true] {
        let kind = Kind { esn, ..GCM };
        let mut pair = Pair::new(kind, 1..200, 64);
        let sealed: Vec<_> =
            pair.seal(&[udp4(b"1"), udp4(b"2")]).into_iter().map(Result::unwrap).collect();
        let around = outer(&udp4(&[]));
        let mut forged = sealed[1].clone();
        forged[4] = 0xff;
        assert_eq!(pair.open(&[forged], around), [Err(Cause::Icv)]);
        assert_eq!(pair.inside.highest(), 0);
        let zero = with_text(kind, 0, &padded(&udp4(b"0"), 4));
        assert_eq!(pair.open(&[zero], around), [Err(Cause::Replay)]);
        let opened = pair.open(&sealed, around);
        assert_eq!(opened, [Ok(udp4(b"1")), Ok(udp4(b"2"))]);
        // Two copies in one batch.
        let third = pair.seal(&[udp4(b"3")]).remove(0).unwrap();
        let opened = pair.open(&[third.clone(), third], around);
        assert_eq!(opened, [Ok(udp4(b"3")), Err(Cause::Replay)]);
    }
    // 2^32 is a number like others where they are extended.
    let kind = Kind { esn: true, ..GCM };
    let mut pair = Pair::new(kind, (1 << 32) - 1..1 << 33, 64);
    let sealed: Vec<_> =
        pair.seal(&[udp4(b"1"), udp4(b"2")]).into_iter().map(Result::unwrap).collect();
    assert_eq!(sealed[1][4..8], [0; 4]);
    let opened = pair.open(&sealed, outer(&udp4(&[])));
    assert_eq!(opened, [Ok(udp4(b"1")), Ok(udp4(b"2"))]);
    assert_eq!(pair.inside.highest(), 1 << 32);
}

#[test]
fn selectors_hold_for_what_comes_out() {
    let prefix = |text: &str| text.parse::<Prefix>().unwrap();
    let selector = Selector {
        protocol: Some(17),
        local_ports: 53..=53,
        ..Selector::between(prefix("10.2.0.0/24"), prefix("10.1.0.0/24"))
    };
    let other = Selector::between(prefix("fd00:2::/32"), prefix("fd00:1::/32"));
    let selectors = Selectors(vec![selector, other]);
    let lifetime = Lifetime::default();
    let mut pair = Pair::with(GCM, 1..200, 64, selectors, lifetime, Dispatch::Queued);
    let mut stranger = udp4(b"text");
    stranger[14] = 9;
    let mut elsewhere = udp4(b"text");
    elsewhere[18] = 9;
    let port = ipv4(17, &udp(53, 5353, b"text"));
    let mut later = udp4(b"text");
    later[7] = 1;
    let packets =
        [udp4(b"text"), udp6(b"text"), stranger, elsewhere, port, later, ipv4(1, &[8, 0, 0, 0])];
    let sealed: Vec<_> = pair.seal(&packets).into_iter().map(Result::unwrap).collect();
    let opened = pair.open(&sealed, outer(&udp4(&[])));
    let fits: Vec<_> = opened.iter().map(|it| it.as_ref().map(drop).map_err(|it| *it)).collect();
    let no = Err(Cause::Selectors);
    assert_eq!(fits, [Ok(()), Ok(()), no, no, no, no, no]);
    // In transport mode they hold for the outer addresses.
    let kind = Kind { mode: Mode::Transport, ..GCM };
    let selector = Selector::between(prefix("10.2.0.7/32"), prefix("10.1.0.5/32"));
    let selectors = Selectors(vec![selector]);
    let mut pair = Pair::with(kind, 1..200, 64, selectors, lifetime, Dispatch::Queued);
    let sealed: Vec<_> =
        pair.seal(&[udp4(b"1"), udp4(b"2")]).into_iter().map(Result::unwrap).collect();
    let around = outer(&udp4(&[]));
    assert_eq!(pair.open(&sealed[..1], around), [Ok(udp4(b"1"))]);
    let strange = Outer { source: address("10.1.0.6"), ..around };
    assert_eq!(pair.open(&sealed[1..], strange), [Err(Cause::Selectors)]);
}

/// RFC 6040, through a tunnel: what the outer header met on its way.
#[test]
fn congestion_comes_through() {
    let mark = |ecn: u8, v6: bool| {
        let mut packet = if v6 { udp6(b"text") } else { udp4(b"text") };
        if v6 {
            packet[1] = ecn << 4;
        } else {
            packet[1] = ecn | 0x48;
            crate::support::set_checksum(&mut packet[..20]);
        }
        packet
    };
    let table = [
        // Inner, outer, result.
        (0, 0, Some(0)),
        (0, 2, Some(0)),
        (0, 1, Some(0)),
        (0, 3, None),
        (2, 0, Some(2)),
        (2, 2, Some(2)),
        (2, 1, Some(1)),
        (2, 3, Some(3)),
        (1, 0, Some(1)),
        (1, 2, Some(1)),
        (1, 1, Some(1)),
        (1, 3, Some(3)),
        (3, 0, Some(3)),
        (3, 2, Some(3)),
        (3, 1, Some(3)),
        (3, 3, Some(3)),
    ];
    for (inner, ecn, expected) in table {
        for v6 in [false, true] {
            let mut pair = Pair::new(GCM, 1..200, 64);
            let packet = mark(inner, v6);
            let parsed = InnerPacket::parse(&packet).unwrap();
            pair.sealer.push(&pair.out, &parsed, 0).unwrap();
            let mut sealed = Vec::new();
            pair.sealer.seal(NOW, |_, packet| {
                let packet = packet.unwrap();
                assert_eq!(packet.ecn, inner);
                packet.write_to(&mut sealed);
            });
            let around = Outer { ecn, ..outer(&udp4(&[])) };
            let expected = expected.map(|ecn| mark(ecn, v6)).ok_or(Cause::Ecn);
            assert_eq!(pair.open(&[sealed], around), [expected], "{inner} in {ecn}");
        }
    }
    // In transport mode the outer header is the packet's own.
    let mut pair = Pair::new(Kind { mode: Mode::Transport, ..GCM }, 1..200, 64);
    let sealed = pair.seal(&[udp4(b"text")]).remove(0).unwrap();
    let mut expected = udp4(b"text");
    expected[1] = 3;
    crate::support::set_checksum(&mut expected[..20]);
    let around = Outer { ecn: 3, ..outer(&udp4(&[])) };
    assert_eq!(pair.open(&[sealed], around), [Ok(expected)]);
}

#[test]
fn parameters_that_do_not_fit_are_refused() {
    let make = |change: &dyn Fn(&mut keyway_esp::SaParameters<'_>), numbers, window, selectors| {
        let key = key(Suite::Aes128Gcm);
        let mut parameters = GCM.parameters(&key, Lifetime::default());
        change(&mut parameters);
        let out = OutboundSa::new(&ENGINE, &parameters, numbers, 0, NOW).map(drop);
        let inside = InboundSa::new(&ENGINE, &parameters, window, selectors, NOW).map(drop);
        (out, inside)
    };
    let fine = |_: &mut keyway_esp::SaParameters<'_>| {};
    let any = Selectors::any;
    assert_eq!(make(&fine, 1..2, 32, any()), (Ok(()), Ok(())));
    let both = |error: SaError| (Err(error.clone()), Err(error));
    assert_eq!(make(&|it| it.spi = 255, 1..2, 32, any()), both(SaError::Spi(255)));
    let error = SaError::KeyBytes { given: 3, expected: 16 };
    assert_eq!(make(&|it| it.key = SaKey::Secret(b"key"), 1..2, 32, any()), both(error));
    let error = SaError::KeyBytes { given: 3, expected: 48 };
    let chain = |it: &mut keyway_esp::SaParameters<'_>| {
        it.suite = Suite::Aes128CbcSha256;
        it.key = SaKey::Secret(b"key");
    };
    assert_eq!(make(&chain, 1..2, 32, any()), both(error));
    let named = |it: &mut keyway_esp::SaParameters<'_>| {
        it.suite = Suite::Aes128CbcSha256;
        it.key = SaKey::Named("key");
    };
    assert_eq!(make(&named, 1..2, 32, any()), both(SaError::NamedKey(Suite::Aes128CbcSha256)));
    // No driver here has keys by name.
    let named = make(&|it| it.key = SaKey::Named("key"), 1..2, 32, any());
    assert!(matches!(named, (Err(SaError::Engine(_)), Err(SaError::Engine(_)))), "{named:?}");
    for window in [31, 8_193] {
        assert_eq!(make(&fine, 1..2, window, any()).1, Err(SaError::Window(window)));
    }
    for first in [0, 1 << 32] {
        assert_eq!(make(&fine, first..u64::MAX, 32, any()).0, Err(SaError::Numbers(first)));
    }
    let mixed = Selector::between(Prefix::ALL_V4, Prefix::ALL_V6);
    let error = SaError::Families(Box::new(mixed.clone()));
    assert_eq!(make(&fine, 1..2, 32, Selectors(vec![mixed])).1, Err(error));

    let key = key(Suite::Aes128Gcm);
    let parameters = GCM.parameters(&key, Lifetime::default());
    let one = || Arc::new(InboundSa::new(&ENGINE, &parameters, 64, any(), NOW).unwrap());
    assert_eq!(Inbound::new([one(), one()]).unwrap_err(), DuplicateSpi(SPI));
    // Nothing that is printed has a key in it.
    let shown = format!("{parameters:?} {:?}", one());
    assert!(!shown.contains("90") && shown.contains("Secret(..)"), "{shown}");
}

#[test]
fn a_batch_has_an_end() {
    let mut pair = Pair::new(GCM, 1..2_000, 64);
    let packet = udp4(b"text");
    let parsed = InnerPacket::parse(&packet).unwrap();
    for user in 0..256 {
        pair.sealer.push(&pair.out, &parsed, user).unwrap();
    }
    assert_eq!(pair.sealer.push(&pair.out, &parsed, 256), Err(Cause::QueueFull));
    let mut sealed = Vec::new();
    pair.sealer.seal(NOW, |_, packet| packet.unwrap().write_to(&mut sealed));
    let around = outer(&packet);
    let mut packets = sealed.chunks(Suite::Aes128Gcm.sealed_bytes(packet.len()));
    let first = packets.next().unwrap();
    pair.opener.push(&pair.inbound, first, around).unwrap();
    for packet in packets {
        pair.opener.push(&pair.inbound, packet, around).unwrap();
    }
    assert_eq!(pair.opener.push(&pair.inbound, first, around), Err(Cause::QueueFull));
    let mut opened = 0;
    pair.opener.open(NOW, |result, _| {
        assert_eq!(result.unwrap(), packet);
        opened += 1;
    });
    assert_eq!(opened, 256);
}
