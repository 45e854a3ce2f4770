use super::*;
use keyway_codec::Op;

fn unbind(id: u32) -> Vec<u8> {
    let mut out = Vec::new();
    Message::new(id, Op::DeleteRequest("cn=employee,dc=example,dc=com")).encode(&mut out);
    out
}

/// The frames that come out, with the ids of messages and heads.
fn frames(framer: &mut Framer, mut input: &[u8]) -> Vec<String> {
    let mut all = Vec::new();
    while let Some(frame) = framer.next(&mut input) {
        all.push(match frame {
            Frame::Message(octets) => format!("{}", Message::peek_id(octets).unwrap()),
            Frame::Head { head, total } => format!("head {} of {total}", head.len()),
            Frame::Lost(_) => "lost".to_owned(),
            Frame::Found(passed) => format!("found {passed}"),
        });
    }
    all
}

fn stream(ids: std::ops::Range<u32>) -> Vec<u8> {
    ids.flat_map(unbind).collect()
}

#[test]
fn messages_come_in_pieces_of_any_size() {
    let stream = stream(1..5);
    for size in 1..stream.len() {
        let mut framer = Framer::default();
        let all: Vec<_> =
            stream.chunks(size).flat_map(|piece| frames(&mut framer, piece)).collect();
        assert_eq!(all, ["1", "2", "3", "4"], "pieces of {size}");
        assert!(framer.is_between());
    }
}

#[test]
fn a_hole_within_a_message_costs_that_message() {
    let (stream, length) = (stream(1..4), unbind(1).len());
    for start in length + 2..2 * length {
        for end in start + 1..=2 * length {
            let mut framer = Framer::default();
            assert_eq!(frames(&mut framer, &stream[..start]), ["1"]);
            assert_eq!(framer.gap((end - start) as u64), None);
            let head = format!("head {} of {length}", start - length);
            assert_eq!(frames(&mut framer, &stream[end..]), [&head, "3"], "{start}..{end}");
        }
    }
}

#[test]
fn after_a_hole_at_a_boundary_the_next_message_is_found() {
    let (stream, length) = (stream(1..6), unbind(1).len());
    for end in length + 1..4 * length {
        let mut framer = Framer::default();
        assert_eq!(frames(&mut framer, &stream[..length]), ["1"]);
        assert_eq!(framer.gap((end - length) as u64), None);
        let whole = end.next_multiple_of(length);
        let mut expected = vec![format!("found {}", whole - length)];
        expected.extend((whole / length + 1..6).map(|id| id.to_string()));
        for size in [1, 3, 19, 20, 21, 1000] {
            let mut framer = Framer::default();
            frames(&mut framer, &stream[..length]);
            framer.gap((end - length) as u64);
            let found: Vec<_> =
                stream[end..].chunks(size).flat_map(|piece| frames(&mut framer, piece)).collect();
            assert_eq!(found, expected, "from {end} in pieces of {size}");
        }
    }
}

#[test]
fn what_is_no_message_is_passed_over() {
    let stream = [unbind(1), b"GET / HTTP/1.1\r\n0000".to_vec(), unbind(2)].concat();
    for size in 1..stream.len() {
        let mut framer = Framer::default();
        let all: Vec<_> =
            stream.chunks(size).flat_map(|piece| frames(&mut framer, piece)).collect();
        assert_eq!(all[0], "1", "pieces of {size}");
        assert_eq!(all[1], "lost", "pieces of {size}");
        assert_eq!(all.last().unwrap(), "2", "pieces of {size}: {all:?}");
    }
}

#[test]
fn a_message_that_is_too_long_is_stepped_over() {
    let length = MESSAGE_BYTES_MAX + 1;
    let mut stream = vec![0x30, 0x84];
    stream.extend((length as u32).to_be_bytes());
    stream.extend([2, 1, 1, 0x77]);
    stream.resize(6 + length, 0);
    stream.extend(unbind(2));
    let mut framer = Framer::default();
    let all: Vec<_> = stream.chunks(50_000).flat_map(|piece| frames(&mut framer, piece)).collect();
    assert_eq!(all, [format!("head {HEAD_BYTES_MAX} of {}", length + 6), "2".to_owned()]);
    assert!(framer.held_bytes() <= 2 * HEAD_BYTES_MAX);
}
