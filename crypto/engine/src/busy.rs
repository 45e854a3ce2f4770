//! Direct calls that find no place in their driver.
//!
//! A queue sees that its driver is full: the driver takes fewer tasks than it is offered. A direct
//! call waits within the driver, which therefore says so here.

use std::cell::Cell;

thread_local! {
    static FOUND: Cell<bool> = const { Cell::new(false) };
}

/// A driver's session says that the request that it runs for this thread has found no place and
/// waits for one. Said several times of one request, it counts once, as *busy*.
pub fn found_busy() {
    FOUND.set(true);
}

/// Whether a driver has said so since this was asked last.
#[inline]
pub(crate) fn take() -> bool {
    FOUND.replace(false)
}
