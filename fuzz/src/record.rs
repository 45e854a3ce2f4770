//! Entries as they lie in the store, which a disk may have spoilt.

use keyway_server::ChangeNote;
use keyway_store::{EntryId, EntryRef, FeedRow, Large, ValueChunk};

const ID: EntryId = EntryId(1);

/// Reads the bytes as a record, and as what follows a right checksum: an accepted one is the same
/// after it was written and read again.
pub fn record(data: &[u8]) {
    accept(data);
    accept(&[checksum(data).as_slice(), data].concat());
    accept_values(data);
    accept_values(&[checksum(data).as_slice(), data].concat());
    accept_row(data);
    accept_row(&[row_checksum(data).as_slice(), data].concat());
}

/// Reads a row of the feed at the position [`ID`].
fn accept_row(bytes: &[u8]) {
    let Ok(row) = FeedRow::decode(ID.0, bytes) else { return };
    assert!(row.first_change > 0 && row.bytes == 8 + bytes.len() as u64);
    assert!(row.changes() <= bytes.len() as u64 && row.jobs.len() <= bytes.len());
    for note in row.jobs.iter().filter_map(|job| ChangeNote::decode(&job.note)) {
        assert!(note.author.len() <= bytes.len());
    }
}

/// Reads a row of the table of values; the checksum is over the row's key, too.
fn accept_values(bytes: &[u8]) {
    let row = ID.0.to_be_bytes();
    let Ok(found) = ValueChunk::decode(&row, bytes) else { return };
    let values: Vec<_> = found.collect();
    let again = ValueChunk::encode(&row, &values);
    assert!(again.len() <= bytes.len(), "our form is the shortest");
    let again = ValueChunk::decode(&row, &again).expect("what was written can be read");
    assert!(again.eq(values));
}

fn accept(bytes: &[u8]) {
    let Ok(found) = EntryRef::decode(ID, bytes) else { return };
    let entry = found.to_entry();
    let large: Vec<Large<'_>> = found.large().collect();
    let again = entry.encode(ID, found.parent(), &large).expect("no larger than it was");
    assert!(again.len() <= bytes.len(), "our form is the shortest");
    let again = EntryRef::decode(ID, &again).expect("what was written can be read");
    assert_eq!(again.parent(), found.parent());
    assert_eq!(again.to_entry(), entry);
    assert!(again.large().eq(large));
    for (name, _) in &entry.attributes {
        let first = entry.attributes.iter().find(|(other, _)| other == name);
        let values: Vec<Vec<u8>> = found.values(name).map(<[u8]>::to_vec).collect();
        assert!(found.has(name) && first.is_some_and(|(_, expected)| *expected == values));
    }
}

/// CRC-32 over the identifier and the body, as the record's head has it.
fn checksum(body: &[u8]) -> [u8; 4] {
    checksum_behind(&[], body)
}

/// That of a row of the feed.
fn row_checksum(body: &[u8]) -> [u8; 4] {
    checksum_behind(b"feed", body)
}

fn checksum_behind(word: &[u8], body: &[u8]) -> [u8; 4] {
    let mut sum = crc32fast::Hasher::new();
    sum.update(word);
    sum.update(&ID.0.to_be_bytes());
    sum.update(body);
    sum.finalize().to_le_bytes()
}
