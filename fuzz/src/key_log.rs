//! Key logs of TLS: files, and the blocks of pcapng that have one in them.

use keyway_decode::capture::Item;
use keyway_decode::{Capture, Keys};
use std::sync::OnceLock;

/// Reads the bytes as a key log, by itself and in a block of a capture: both have the same secrets.
pub fn key_log(data: &[u8]) {
    let keys = new_keys();
    let count = keys.add(data);
    assert!(count <= data.split(|byte| *byte == b'\n').count());
    // Twice the same log has nothing new in it, and is read the same.
    assert_eq!(keys.add(&[data, b"\n", data].concat()), 2 * count);
    let file = pcapng(data);
    let mut capture = Capture::open(file.as_slice()).expect("it is a capture");
    let Ok(Some(Item::KeyLog(log))) = capture.read() else { panic!("there is a key log in it") };
    assert_eq!(log, data);
    assert!(matches!(capture.read(), Ok(None)));
    // The block as another program may have written it: of any length, of any kind.
    if let Some((at, rest)) = data.split_first() {
        let mut file = pcapng(rest);
        let at = SECTION_BYTES + usize::from(*at) % (file.len() - SECTION_BYTES);
        file[at] ^= 0x55;
        if let Ok(mut capture) = Capture::open(file.as_slice()) {
            while let Ok(Some(item)) = capture.read() {
                if let Item::KeyLog(log) = item {
                    keys.add(log);
                }
            }
        }
    }
}

/// None yet; the engine is made once.
fn new_keys() -> Keys {
    type Make = Box<dyn Fn() -> Keys + Send + Sync>;
    static MAKE: OnceLock<Make> = OnceLock::new();
    let make = || -> Make {
        let engine = keyway_drivers::engine();
        Box::new(move || Keys::new(&engine))
    };
    MAKE.get_or_init(make)()
}

const SECTION_BYTES: usize = 28;

/// A capture that has nothing but a key log.
fn pcapng(log: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    let section = [&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat();
    block(0x0a0d_0d0a, &section, &mut file);
    let length = u32::try_from(log.len()).expect("no input is that long").to_le_bytes();
    block(10, &[b"KSLT", &length[..], log].concat(), &mut file);
    file
}

fn block(kind: u32, contents: &[u8], out: &mut Vec<u8>) {
    let padded = contents.len().next_multiple_of(4);
    let length = u32::try_from(padded + 12).expect("no input is that long").to_le_bytes();
    out.extend(kind.to_le_bytes());
    out.extend(length);
    out.extend_from_slice(contents);
    out.resize(out.len() + padded - contents.len(), 0);
    out.extend(length);
}
