//! Which requests are timed: one in so many of each thread.

use std::cell::Cell;

thread_local! {
    static TICK: Cell<u32> = const { Cell::new(0) };
}

/// Whether this request is one of them. `every` is a power of two, or 0 for none.
#[inline]
pub(crate) fn due(every: u32) -> bool {
    if every == 0 {
        return false;
    }
    let tick = TICK.get().wrapping_add(1);
    TICK.set(tick);
    tick & (every - 1) == 0
}
