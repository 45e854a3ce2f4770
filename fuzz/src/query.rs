//! The filter over an operation's fields.

use keyway_decode::Query;

/// Reads the bytes as a filter: it is understood, or says why not.
pub fn query(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    if let Err(why) = Query::parse(text) {
        assert!(!why.to_string().is_empty());
    }
}
