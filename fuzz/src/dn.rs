//! Distinguished names as text.

use keyway_codec::dn::{Dn, Rdn};

/// Reads the bytes as a name.
pub fn dn(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    match Dn::parse(text) {
        Ok(dn) => {
            let written = dn.to_string();
            assert!(!written.contains(char::is_control), "{written:?} would spoil a log line");
            assert_eq!(Dn::parse(&written).as_ref(), Ok(&dn), "{written:?}");
            let first = dn.rdn().map(|rdn| Rdn::parse(&rdn.to_string()));
            assert!(first.is_none_or(|rdn| rdn.as_ref() == Ok(&dn.rdns[0])));
        }
        Err(error) => assert!(error.at <= text.len(), "{error} is beyond the text"),
    }
}
