//! Access rules as entries hold them.

use keyway_server::access::{Origin, Rule};
use keyway_store::EntryId;

/// Reads the bytes as a rule. An accepted rule holds in the entry and nowhere else, and a rejected
/// one has a reason that is a line.
pub fn access_rule(data: &[u8]) {
    match Rule::of_value(EntryId::ROOT, data) {
        Ok(rule) => {
            let Origin::Entry(stored) = &rule.origin else { panic!("{rule:?} is in no entry") };
            assert_eq!(stored.text.as_bytes(), data);
            assert!(rule.target.below.is_none() && !rule.to_string().is_empty());
        }
        Err(why) => assert!(!why.is_empty() && why.len() < 4096 + 2 * data.len(), "{why}"),
    }
}
