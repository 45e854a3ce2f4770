//! Lists of names and passwords for a replay.

use keyway_decode::replay::List;

/// Reads the bytes as a list: it is understood, or the line that is not is one of them.
pub fn passwords(data: &[u8]) {
    if let Err(line) = List::parse(data) {
        assert!((1..=data.split(|byte| *byte == b'\n').count()).contains(&line));
    }
}
