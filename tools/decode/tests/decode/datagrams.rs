//! CLDAP, link layers that are only named, and layers of SASL.

use super::wire::*;
use keyway_codec::message::{Authentication, BindRequest, BindResponse, LdapResult};
use keyway_codec::{Message, Op};
use keyway_decode::Options;

/// A datagram of UDP over IPv4.
fn udp(from: (u8, u16), to: (u8, u16), payload: &[u8]) -> Vec<u8> {
    let total = (28 + payload.len()) as u16;
    let mut out = vec![0x45, 0];
    out.extend(total.to_be_bytes());
    out.extend([0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, from.0, 192, 0, 2, to.0]);
    out.extend(from.1.to_be_bytes());
    out.extend(to.1.to_be_bytes());
    out.extend((8 + payload.len() as u16).to_be_bytes());
    out.extend([0, 0]);
    out.extend(payload);
    out
}

#[test]
fn datagrams_are_decoded_on_ports_of_ldap() {
    let says = searches(false, 1).says;
    // The search and its answers; a bind makes no sense here.
    let search: Vec<_> = says.into_iter().skip(2).take(3).collect();
    let datagrams = |port: u16| {
        let one = |(end, octets): &(End, Vec<u8>)| match end {
            End::Client => udp((1, 50_000), (2, port), octets),
            End::Server => udp((2, port), (1, 50_000), octets),
        };
        frames(Link::Ethernet, search.iter().map(one).collect::<Vec<_>>())
    };
    let told = decode(&file(FORMATS[0], 1, &datagrams(389)));
    assert_eq!(told.operations.len(), 1, "{told:?}");
    assert!(told.operations[0].contains("search success, 1 entry"), "{told:?}");
    let (told, counts) = decode_with(&file(FORMATS[0], 1, &datagrams(53)), Options::default());
    assert_eq!((told.operations.len(), counts.others), (0, search.len() as u64));
}

#[test]
fn link_layers_that_are_not_known_have_a_name() {
    let packets = packets(Link::Ethernet, &searches(false, 1).segments(1000));
    for (link, name) in [(127, "radiotap"), (189, "USB"), (77, "number 77")] {
        let told = decode(&file(FORMATS[0], link, &packets));
        assert_eq!(told.notes.len(), 1, "{told:?}");
        assert!(told.notes[0].contains(name), "{told:?}");
    }
    let told = decode(&file(Format::Snoop, 99, &packets));
    assert!(told.notes[0].contains("number 99 of snoop"), "{told:?}");
}

#[test]
fn frames_with_a_length_and_a_protocol_are_read() {
    let segments = searches(false, 3).segments(100);
    let expected = decode(&capture(&segments)).operations;
    let frame = |segment: &Segment| {
        let datagram = segment.datagram();
        let mut frame = vec![2; 12];
        frame.extend((8 + datagram.len() as u16).to_be_bytes());
        frame.extend([0xaa, 0xaa, 3, 0, 0, 0, 8, 0]);
        [frame, datagram].concat()
    };
    let mut packets = packets(Link::Ethernet, &segments);
    for (packet, segment) in packets.iter_mut().zip(&segments) {
        packet.data = frame(segment);
        packet.original = packet.data.len();
    }
    assert_eq!(decode(&file(FORMATS[0], 1, &packets)).operations, expected);
}

/// A SASL bind that succeeds, and what both say after it.
fn after_sasl(mechanism: &str, client: Vec<u8>, server: Vec<u8>) -> Told {
    let authentication = Authentication::Sasl { mechanism, credentials: Some(b"token") };
    let bind = encode(1, Op::BindRequest(BindRequest { version: 3, name: "", authentication }));
    let result = LdapResult::success();
    let mut answer = Vec::new();
    let response = BindResponse { result, server_sasl_credentials: None };
    Message::new(1, Op::BindResponse(response)).encode(&mut answer);
    let says = vec![
        (End::Client, bind),
        (End::Server, answer),
        (End::Client, client),
        (End::Server, server),
    ];
    decode(&capture(&Conversation::new(false, says).segments(1000)))
}

#[test]
fn a_layer_of_sasl_is_named() {
    let sealed = [&[0, 0, 0, 60][..], &[0x05; 60]].concat();
    let told = after_sasl("GSS-SPNEGO", sealed.clone(), sealed);
    assert_eq!(told.operations.len(), 1, "{told:?}");
    let layers: Vec<_> = told.notes.iter().filter(|note| note.contains("SASL layer")).collect();
    assert_eq!(layers.len(), 1, "{told:?}");
    assert!(layers[0].contains("(GSS-SPNEGO)"), "{told:?}");
    // Without a layer all goes on as before.
    let mut says = searches(false, 1).says.into_iter().skip(2);
    let (_, request) = says.next().unwrap();
    let answers: Vec<u8> = says.take(2).flat_map(|(_, octets)| octets).collect();
    let told = after_sasl("SCRAM-SHA-256", request, answers);
    assert_eq!(told.operations.len(), 2, "{told:?}");
    assert!(told.operations[1].contains("search success"), "{told:?}");
}
