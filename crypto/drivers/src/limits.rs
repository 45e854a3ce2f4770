//! Bounds on what drivers keep, with their units.

use std::time::Duration;

/// Most right passwords that a verifier may be told to remember. With all it is about 2 GB.
pub const REMEMBERED_MAX: usize = 10_000_000;
/// Wrong passwords of one entry that a verifier has derived before it says busy; those under way count.
pub const WRONG_MAX: u32 = 200;
/// After how long it forgets one of them.
pub const WRONG_FORGET: Duration = Duration::from_millis(50);
/// Most entries whose wrong passwords it counts; then the one with the fewest gives way.
pub const WRONG_ENTRIES_MAX: usize = 16_384;
