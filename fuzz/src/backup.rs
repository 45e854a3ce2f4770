//! The files of a repository of backups, which a disk or an attacker may have spoilt.

use keyway_backup::limits::PIECE_BYTES;
use keyway_backup::{BackupName, Envelope, Header, Manifest, Segment, unpack};
use serde_json::Value;

/// Reads the bytes as a header, as one under a right checksum, as a sealed file, as what was sealed, as a
/// manifest, and as names. A header, a manifest or a name that is accepted can be written, and read again
/// unchanged.
pub fn backup(data: &[u8]) {
    header(data);
    header(&[data, &crc32fast::hash(data).to_le_bytes()].concat());
    if let Ok(envelope) = Envelope::parse(data) {
        assert!(data.starts_with(b"KWYB") && envelope.label.len() < data.len());
    }
    if let Ok(text) = unpack(data, PIECE_BYTES) {
        assert!(text.len() <= PIECE_BYTES);
    }
    manifest(data);
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Some(name) = BackupName::parse(text) {
        assert_eq!(name.to_string(), text);
    }
    if let Some(segment) = Segment::parse([0; 16], text) {
        assert!(segment.first <= segment.last && text.len() == 41);
    }
}

fn header(bytes: &[u8]) {
    let Ok(header) = Header::parse(bytes) else { return };
    let again = header.to_bytes().unwrap_or_else(|why| panic!("{why}"));
    assert!(again.len() <= bytes.len(), "our form is the shortest");
    assert!(matches!(Header::parse(&again), Ok(again) if again == header));
}

fn manifest(text: &[u8]) {
    let Ok(manifest) = Manifest::parse(text) else { return };
    let again = manifest.to_bytes().unwrap_or_else(|why| panic!("{why}"));
    let again = Manifest::parse(&again).unwrap_or_else(|why| panic!("{why}"));
    // A fraction in the metadata may be rounded each time.
    let checked = |manifest| Manifest { meta: Value::Null, ..manifest };
    assert_eq!(checked(again), checked(manifest));
}
