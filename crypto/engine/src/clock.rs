//! The one clock of this crate: nanoseconds since it was first read. Code that decides takes the
//! time as an argument; only the entry points read the clock.

use std::sync::OnceLock;
use std::time::Instant;

static START: OnceLock<Instant> = OnceLock::new();

/// Never 0, so that 0 can stand for a time that was not taken.
#[expect(clippy::disallowed_methods, reason = "this is the crate's clock")]
pub(crate) fn now() -> u64 {
    let start = *START.get_or_init(Instant::now);
    start.elapsed().as_nanos() as u64 + 1
}
