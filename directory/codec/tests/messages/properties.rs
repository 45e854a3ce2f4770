//! Properties of every message, filter and sequence of bytes.

use keyway_codec::ber::{self, Reader, Writer};
use keyway_codec::message::EntryWriter;
use keyway_codec::{Filter, Message, Op};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::random::{ALL, control, filter, message};

fn encoded(message: &Message<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    bytes
}

proptest! {
    #[test]
    fn a_message_survives_its_encoding(message in message(ALL)) {
        let bytes = encoded(&message);
        prop_assert_eq!(Message::decode(&bytes), Ok(message.clone()));
        prop_assert_eq!(Message::peek_id(&bytes), Some(message.id));
        prop_assert_eq!(Message::peek_tag(&bytes), Some(message.op.tag()));
    }

    #[test]
    fn a_frame_is_complete_with_its_last_byte_only(message in message(ALL), more in any::<u8>()) {
        let mut bytes = encoded(&message);
        let length = bytes.len();
        bytes.push(more);
        for cut in (0..length).step_by(1 + length / 50) {
            prop_assert_eq!(ber::frame(&bytes[..cut], length), Ok(None));
            prop_assert!(Message::decode(&bytes[..cut]).is_err());
        }
        prop_assert_eq!(ber::frame(&bytes, length), Ok(Some(length)));
        prop_assert!(ber::frame(&bytes, length - 1).is_err());
        prop_assert!(Message::decode(&bytes).is_err());
    }

    #[test]
    fn a_changed_byte_never_panics_and_what_decodes_encodes_the_same(
        message in message(ALL), at in any::<prop::sample::Index>(), byte in any::<u8>()
    ) {
        let mut bytes = encoded(&message);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(decoded) = Message::decode(&bytes) {
            let again = encoded(&decoded);
            prop_assert_eq!(Message::decode(&again), Ok(decoded));
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..200)) {
        let _ = Message::decode(&bytes);
        let _ = Message::peek_id(&bytes);
        let _ = Message::peek_tag(&bytes);
        let _ = Filter::decode(&bytes);
        let _ = ber::frame(&bytes, 100);
    }

    #[test]
    fn unknown_elements_at_the_end_of_a_message_are_ignored(
        message in message(ALL), tag in 0xa1..0xbe_u8, contents in vec(any::<u8>(), 0..9)
    ) {
        let bytes = encoded(&message);
        let body = Reader::new(&bytes).expect(ber::SEQUENCE).unwrap();
        let mut longer = Vec::new();
        let mut writer = Writer::new(&mut longer);
        let mark = writer.begin(ber::SEQUENCE);
        writer.raw(body);
        writer.octets(tag, &contents);
        writer.end(mark);
        prop_assert_eq!(Message::decode(&longer), Ok(message));
    }

    #[test]
    fn a_filter_survives_its_text(filter in filter(ALL)) {
        let text = filter.to_string();
        prop_assert_eq!(Filter::parse(&text), Ok(filter.clone()));
        prop_assert!(!text.contains(char::is_control));
        prop_assert_eq!(filter.clone().into_owned(), filter);
    }

    #[test]
    fn arbitrary_filter_text_never_panics(text in "[()&|!=*:~<>\\\\a-c0-2.;-]{0,40}|\\PC{0,20}") {
        if let Ok(filter) = Filter::parse(&text) {
            let again = filter.to_string();
            prop_assert_eq!(Filter::parse(&again), Ok(filter));
        }
    }

    #[test]
    fn integers_are_shortest_and_come_back(value in prop_oneof![any::<i64>(), -400..400_i64]) {
        let mut bytes = Vec::new();
        Writer::new(&mut bytes).integer(ber::INTEGER, value);
        prop_assert_eq!(Reader::new(&bytes).integer(ber::INTEGER), Ok(value));
        if let [_, _, first, second, ..] = bytes[..] {
            prop_assert_ne!((first, second & 0x80), (0, 0));
            prop_assert_ne!((first, second & 0x80), (0xff, 0x80));
        }
    }

    #[test]
    fn the_entry_writer_writes_what_the_message_encodes(
        id in 0..0x7fff_ffff_u32, message in message(ALL), controls in vec(control(), 0..3),
        before in vec(any::<u8>(), 0..3),
    ) {
        let Op::SearchResultEntry(entry) = &message.op else { return Ok(()) };
        let mut streamed = before.clone();
        let mut writer = EntryWriter::begin(&mut streamed, id, &entry.dn);
        for attribute in &entry.attributes {
            writer.attribute(&attribute.description);
            attribute.values.iter().for_each(|value| writer.value(value));
        }
        writer.finish(&controls);
        let mut whole = before.clone();
        Message { id, op: message.op.clone(), controls }.encode(&mut whole);
        prop_assert_eq!(&streamed, &whole);

        let mut writer = EntryWriter::begin(&mut streamed, id, "cn=gone");
        writer.attribute("cn");
        writer.value(b"gone");
        writer.discard();
        prop_assert_eq!(streamed, whole);
    }
}
