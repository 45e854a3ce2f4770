//! Captures: whole files, and segments of one connection.

use keyway_decode::network::Segment;
use keyway_decode::tcp::{Delivery, Stream};
use keyway_decode::view::{Full, Json, Printer};
use keyway_decode::{Capture, Decoder, Keys, Options};
use std::sync::{Arc, OnceLock};

/// A decoder whose keys are those of the file.
fn new_decoder(options: Options) -> Decoder {
    // Made once; the secrets that a file brings with it stay, and are no other file's.
    static KEYS: OnceLock<Arc<Keys>> = OnceLock::new();
    let keys = KEYS.get_or_init(|| Arc::new(Keys::new(&keyway_drivers::engine())));
    Decoder::new(&[], options).with_keys(keys.clone())
}

/// Reads the bytes as a file of packets and tells all that is in them.
pub fn capture(data: &[u8]) {
    let options = Options { keep_answers: true, ..Options::default() };
    let mut full = Printer::new(Full, None, Vec::new());
    let mut decoder = new_decoder(options);
    if let Ok(mut capture) = Capture::open(data) {
        let _ = decoder.run(&mut capture, &mut full, &|| true);
    }
    decoder.finish(&mut full).expect("memory can be written");
    full.end().expect("memory can be written");
    let mut json = Printer::new(Json, None, Vec::new());
    let mut decoder = new_decoder(options);
    if let Ok(mut capture) = Capture::open(data) {
        let _ = decoder.run(&mut capture, &mut json, &|| true);
    }
    decoder.finish(&mut json).expect("memory can be written");
    json.end().expect("memory can be written");
    assert_eq!(full.seen, json.seen);
    let text = String::from_utf8(full.into_output()).expect("what is shown is text");
    assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?} commands a terminal");
}

/// Reads the bytes as segments, eight octets of a header each: what comes out are octets of some
/// segment, in the order of their places, and no place twice.
pub fn segments(data: &[u8]) {
    const BASE: u32 = u32::MAX - 100;
    let place = |position: u64| (position as u8).wrapping_mul(31) ^ 0x5a;
    let mut stream = Stream::default();
    let mut position = 0_u64;
    let mut check = |delivery: Delivery<'_>| -> Result<(), ()> {
        match delivery {
            Delivery::Octets(octets) => {
                for octet in octets {
                    assert_eq!(*octet, place(position), "at {position}");
                    position += 1;
                }
            }
            Delivery::Gap(octets) => position += octets,
        }
        Ok(())
    };
    let address = std::net::SocketAddr::from(([192, 0, 2, 1], 389));
    let first = Segment {
        from: address,
        to: address,
        sequence: BASE.wrapping_sub(1),
        acknowledgement: None,
        syn: true,
        fin: false,
        rst: false,
        payload: &[],
        missing: 0,
    };
    let _ = stream.take(&first, &mut check);
    for header in data.chunks_exact(6) {
        let [low, high, length, missing, flags, acknowledged] = *header else { continue };
        let offset = u32::from(low) | u32::from(high & 0x0f) << 8;
        let octets: Vec<u8> =
            (0..u64::from(length)).map(|index| place(u64::from(offset) + index)).collect();
        let mut segment = Segment { payload: &octets, ..first };
        (segment.syn, segment.fin) = (false, flags & 0x80 != 0 && data.len() < 12);
        segment.sequence = BASE.wrapping_add(offset);
        segment.missing = usize::from(missing);
        let _ = stream.take(&segment, &mut check);
        if flags & 1 != 0 {
            let acknowledgement = BASE.wrapping_add(u32::from(acknowledged) * 8);
            let _ = stream.give_up_before(acknowledgement, &mut check);
            assert!(!stream.lacks(acknowledgement));
        }
    }
    let _ = stream.finish(&mut check);
    assert_eq!(stream.held_bytes(), 0);
}
