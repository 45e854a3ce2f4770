//! What members of a cluster send each other, and the row that says who they are.

use keyway_cluster::message::{ClusterRow, Decoder, LARGE_FRAME};

/// Reads the bytes as frames, whole and in two pieces, and as a cluster's row. A frame can be read again from its octets, and
/// a row from its JSON, unless that has more octets than it may have: numbers can be written longer than they came.
pub fn cluster_frames(data: &[u8]) {
    for most in [None, Some(LARGE_FRAME)] {
        let whole = frames(&[data], most);
        let (first, second) = data.split_at(data.len() / 2);
        assert_eq!(whole, frames(&[first, second], most), "pieces make no difference");
    }
    if let Ok(row) = ClusterRow::parse(data)
        && let Ok(json) = row.to_json()
    {
        assert_eq!(ClusterRow::parse(&json), Ok(row));
    }
}

/// The octets of each frame, and whether all were frames.
fn frames(pieces: &[&[u8]], most: Option<usize>) -> (Vec<Vec<u8>>, bool) {
    let (mut decoder, mut found) = (Decoder::new(), Vec::new());
    if let Some(most) = most {
        decoder.allow(most);
    }
    for piece in pieces {
        decoder.push(piece);
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => {
                    let mut octets = Vec::new();
                    if frame.encode(&mut octets).is_ok() {
                        let mut again = Decoder::new();
                        again.allow(LARGE_FRAME);
                        again.push(&octets);
                        assert!(matches!(again.next_frame(), Ok(Some(_))));
                    }
                    found.push(octets);
                }
                Ok(None) => break,
                Err(_) => return (found, false),
            }
        }
    }
    (found, true)
}
