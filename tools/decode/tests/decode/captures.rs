//! Captures of every kind and with every fault, against what was sent.

use super::wire::*;
use keyway_decode::Options;

#[test]
fn every_link_layer_is_read() {
    for v6 in [false, true] {
        let segments = searches(v6, 5).segments(1000);
        let expected = decode(&capture(&segments)).operations;
        assert_eq!(expected.len(), 7);
        for link in LINKS {
            let file = file(FORMATS[0], link.number(), &packets(link, &segments));
            assert_eq!(decode(&file).operations, expected, "{link:?}, IPv6: {v6}");
        }
    }
}

#[test]
fn every_format_is_read() {
    let packets = packets(Link::Ethernet, &searches(false, 3).segments(1000));
    for format in FORMATS {
        let file = file(format, 1, &packets);
        let mut compressed = flate2::write::GzEncoder::new(Vec::new(), Default::default());
        std::io::Write::write_all(&mut compressed, &file).unwrap();
        for file in [file, compressed.finish().unwrap()] {
            let told = decode(&file);
            assert_eq!(told.operations.len(), 5, "{format:?}");
            assert!(told.notes[0].starts_with("12:00:00.015000  c1  -- closed"), "{told:?}");
        }
    }
}

#[test]
fn a_line_says_what_was_asked_and_what_came_of_it() {
    let told = decode(&capture(&searches(false, 1).segments(1000)));
    assert_eq!(
        told.operations,
        [
            "c1.1 bind success \"cn=admin,dc=example,dc=com\" simple",
            "c1.2 search success, 1 entry \"dc=example,dc=com\" sub (uid=user.2) [cn mail]",
            "c1.3 unbind - -",
        ]
    );
    assert_eq!(told.notes.len(), 1);
}

#[test]
fn segments_of_any_size_are_the_same() {
    let conversation = searches(false, 20);
    let expected = decode(&capture(&conversation.segments(1460))).operations;
    for octets in [1, 2, 7, 100] {
        let told = decode(&capture(&conversation.segments(octets)));
        assert_eq!(told.operations, expected, "{octets} octets a segment");
        assert_eq!(told.gap_bytes, 0);
    }
}

#[test]
fn order_and_repetition_do_not_matter() {
    let conversation = searches(false, 50);
    let segments = conversation.segments(33);
    let expected = decode(&capture(&segments)).sorted();
    let mut swapped = segments.clone();
    let inner = 2..swapped.len() - 3;
    swapped[inner.clone()].chunk_by_mut(|a, b| a.from == b.from).for_each(<[_]>::reverse);
    assert_eq!(decode(&capture(&swapped)).sorted(), expected, "each side's turn reversed");
    let doubled: Vec<_> = segments.iter().flat_map(|one| [one.clone(), one.clone()]).collect();
    let (told, counts) = decode_with(&capture(&doubled), Options::default());
    assert_eq!(told.sorted(), expected, "each twice");
    assert!(counts.repeated_bytes > 1000);
    // Each with what the one after it has as well.
    let mut overlapping = segments.clone();
    for index in inner {
        let next = &segments[index + 1];
        if next.from == segments[index].from {
            overlapping[index].payload.extend(&next.payload);
        }
    }
    assert_eq!(decode(&capture(&overlapping)).sorted(), expected, "overlapping");
}

#[test]
fn fragments_are_put_together_in_any_order() {
    for v6 in [false, true] {
        let segments = searches(v6, 5).segments(1000);
        let expected = decode(&capture(&segments)).operations;
        let mut parts = Vec::new();
        for (index, segment) in segments.iter().enumerate() {
            let mut fragments = segment.fragments(16, index as u16 + 1);
            fragments.reverse();
            parts.extend(fragments);
        }
        let file = file(FORMATS[0], 1, &frames(Link::Ethernet, parts));
        assert_eq!(decode(&file).operations, expected, "IPv6: {v6}");
    }
}

#[test]
fn a_lost_segment_costs_no_more_than_what_was_in_it() {
    let conversation = searches(false, 200);
    let segments = conversation.segments(1460);
    let mut kept = segments.clone();
    // Every tenth, and neither the beginning nor the end.
    let (mut index, end) = (0, segments.len() - 4);
    kept.retain(|_| {
        index += 1;
        index < 4 || index > end || index % 10 != 0
    });
    let lost = segments.len() - kept.len();
    let (told, counts) = decode_with(&capture(&kept), Options::default());
    let lost_octets: usize = segments.iter().map(|segment| segment.payload.len()).sum::<usize>()
        - kept.iter().map(|segment| segment.payload.len()).sum::<usize>();
    assert_eq!(counts.missing_bytes, lost_octets as u64);
    assert_eq!(told.gap_bytes, lost_octets as u64);
    // A message each: one operation is not whole for each that is lost, at most.
    assert!(told.whole + lost >= 201, "{} whole of 201, {lost} lost", told.whole);
    assert!(told.notes.iter().any(|note| note.contains("gap of ")), "{:?}", told.notes);
}

#[test]
fn after_a_hole_over_several_messages_the_next_whole_one_is_found() {
    // Everything of one side in segments that end anywhere.
    let requests: Vec<u8> = (1..=300).flat_map(|id| search(id, &format!("(uid={id})"))).collect();
    let answers: Vec<u8> = (1..=300).flat_map(done).collect();
    let conversation =
        Conversation::new(false, vec![(End::Client, requests), (End::Server, answers)]);
    let mut segments = conversation.segments(150);
    segments.remove(20);
    segments.remove(10);
    let told = decode(&capture(&segments));
    assert_eq!(told.gap_bytes, 300);
    // Two holes of 150 octets have part in at most four messages of 64 each.
    assert!(told.whole >= 300 - 8, "{} whole", told.whole);
    assert!(told.notes.iter().any(|note| note.contains("in step with the client again")));
}

#[test]
fn what_the_capture_cut_off_is_said_and_stepped_over() {
    let mut says = Vec::new();
    let photo = vec![0xff; 5000];
    for id in 1..=10 {
        let dn = format!("uid={id},dc=example,dc=com");
        says.push((End::Client, add(id, &dn, vec![attribute("jpegPhoto", &photo)])));
        says.push((End::Server, added(id)));
    }
    let conversation = Conversation::new(false, says);
    let mut packets = packets(Link::Ethernet, &conversation.segments(1460));
    for packet in &mut packets {
        packet.data.truncate(200);
    }
    let told = decode(&file(FORMATS[0], 1, &packets));
    assert_eq!(told.operations.len(), 10);
    for (index, line) in told.operations.iter().enumerate() {
        assert_eq!(*line, format!("c1.{} add success (request cut off)", index + 1));
    }
}

#[test]
fn a_connection_that_was_joined_midway_is_read_from_its_next_message() {
    let conversation = searches(false, 10);
    let mut segments = conversation.segments(50);
    segments.drain(..9);
    let told = decode(&capture(&segments));
    assert!(told.operations.len() >= 8, "{told:?}");
    assert!(told.operations.iter().all(|line| !line.contains("malformed")), "{told:?}");
}

#[test]
fn other_protocols_are_passed_over_and_ldap_on_another_port_is_found() {
    let mut conversation = searches(false, 2);
    conversation.server.set_port(4444);
    assert_eq!(decode(&capture(&conversation.segments(100))).operations.len(), 4);
    let http = b"GET / HTTP/1.1\r\n\r\n".to_vec();
    let mut other = Conversation::new(false, vec![(End::Client, http.clone())]);
    other.server.set_port(80);
    let told = decode(&capture(&other.segments(100)));
    assert!(told.operations.is_empty() && told.notes.is_empty(), "{told:?}");
    // On a port of LDAP it is said that it is none.
    let told = decode(&capture(&Conversation::new(false, vec![(End::Client, http)]).segments(100)));
    assert!(told.notes[0].contains("out of step with the client"), "{told:?}");
}

#[test]
fn a_capture_that_ends_anywhere_tells_what_it_has() {
    for format in [FORMATS[0], FORMATS[4]] {
        let packets = packets(Link::Ethernet, &searches(false, 2).segments(1000));
        let file = file(format, 1, &packets);
        let mut last = 0;
        for length in 0..file.len() {
            let told = decode(&file[..length]);
            let answered = told.operations.iter().filter(|line| line.contains("success")).count();
            assert!(answered >= last, "at {length} of {}", file.len());
            last = answered;
        }
        assert_eq!(last, 3);
    }
}

#[test]
fn what_is_held_is_bounded() {
    // Connections that begin and never end, and messages that are announced and never come.
    let mut frames = Vec::new();
    for connection in 0..70_000_u32 {
        let mut conversation = Conversation::new(
            false,
            vec![(
                End::Client,
                [&[0x30, 0x84, 0x70, 0, 0, 0, 2, 1, 1, 0x60][..], &[0; 90]].concat(),
            )],
        );
        let [a, b, ..] = connection.to_be_bytes()[1..] else { unreachable!() };
        conversation.client.set_ip([10, 0, a, b].into());
        conversation.client.set_port(1024 + (connection % 256) as u16);
        let segments = conversation.segments(1000);
        frames.extend(packets(Link::Raw, &segments[..3]));
    }
    let (_, counts) = decode_with(&file(FORMATS[0], 101, &frames), Options::default());
    assert!(counts.given_up > 4000, "{counts:?}");
}
