//! LDIF files, in pieces as they come from a disk.

use keyway_codec::ldif::{LdifError, Reader, Record, Writer};

/// Reads the bytes at once and in pieces whose size the first byte gives, which must not matter.
pub fn ldif(data: &[u8]) {
    let Some((piece, text)) = data.split_first() else { return };
    let found = read(text, text.len().max(1));
    assert_eq!(read(text, usize::from(*piece) % 16 + 1), found);
    let lines = text.iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
    let mut records = Vec::new();
    for found in found {
        match found {
            Ok(record) => records.push(record),
            Err(error) => assert!((1..=lines).contains(&error.line), "{error} is beyond the text"),
        }
    }
    survives(records);
}

fn read(text: &[u8], piece_bytes: usize) -> Vec<Result<Record, LdifError>> {
    let mut reader = Reader::new();
    let mut found = Vec::new();
    for mut piece in text.chunks(piece_bytes) {
        while let Some(record) = reader.read(&mut piece) {
            found.push(record);
        }
    }
    found.extend(reader.finish());
    found
}

fn survives(mut records: Vec<Record>) {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out);
    writer.version();
    records.iter().for_each(|record| writer.record(record));
    assert!(out.is_ascii() && out.split(|byte| *byte == b'\n').all(|line| line.len() <= 76));
    let again = read(&out, out.len()).into_iter().collect::<Result<Vec<Record>, LdifError>>();
    let mut again = again.expect("what was written can be read");
    records.iter_mut().chain(&mut again).for_each(|record| record.line = 0);
    assert_eq!(again, records);
}
