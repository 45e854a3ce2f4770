//! The messages between an agent of `keyway load` and its hub.

use keyway_load::said_again;

/// Reads the bytes as a message: an accepted one is the same after it was written and read again.
pub fn agent(data: &[u8]) {
    if let Some(once) = said_again(data) {
        assert_eq!(said_again(&once).as_ref(), Some(&once));
    }
}
