//! The one clock of this room: nanoseconds since it was first asked. What decides takes the time as
//! an argument; only the doors ask.

use std::sync::OnceLock;
use std::time::Instant;

static START: OnceLock<Instant> = OnceLock::new();

/// Never 0, so that 0 can say that nobody asked.
pub(crate) fn now() -> u64 {
    let start = *START.get_or_init(Instant::now);
    start.elapsed().as_nanos() as u64 + 1
}
