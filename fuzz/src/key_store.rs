//! The files of a key store, which a disk or an attacker may have spoilt, and keys to import.

use keyway_daemon::keys::{Encoding, Header, Index, Record, SealedFile, decode_pem};

/// Reads the bytes as a header, as one under a right checksum, as a sealed key, as what was sealed,
/// as an index, and as PEM. A header or a record that is accepted can be written, and read again
/// unchanged.
pub fn key_store(data: &[u8]) {
    header(data);
    header(&[data, &crc32fast::hash(data).to_le_bytes()].concat());
    if let Ok(file) = SealedFile::parse(data) {
        assert!(data.starts_with(b"KWYKEY") && data[10..26] == file.store);
    }
    record(data);
    if let Ok(index) = Index::decode(7, data) {
        assert!(index.generation == 7 && index.keys.len() <= data.len());
    }
    if let Ok((encoding, der)) = decode_pem(data) {
        assert!(encoding != Encoding::Secret && der.len() < data.len());
    }
}

fn header(bytes: &[u8]) {
    let Ok(header) = Header::parse(bytes) else { return };
    let again = header.to_bytes().unwrap_or_else(|why| panic!("{why}"));
    assert!(again.len() <= bytes.len(), "our form is the shortest");
    assert_eq!(Header::parse(&again), Ok(header));
}

fn record(bytes: &[u8]) {
    let read = |bytes: &[u8]| Record::decode("name", bytes);
    let write = |record: Record| record.encode().unwrap_or_else(|why| panic!("{why}"));
    let Ok(record) = read(bytes) else { return };
    let again = write(record);
    assert!(again.len() <= bytes.len(), "our form is the shortest");
    assert_eq!(write(read(&again).unwrap_or_else(|what| panic!("{what}"))), again);
}
