//! Which requests are timed: one in so many of each thread.

use std::cell::Cell;

thread_local! {
    static TICK: Cell<u32> = const { Cell::new(0) };
}

/// Whether one of these requests is due. `every` is a power of two, or 0 for none.
#[inline]
pub(crate) fn due(every: u32, requests: usize) -> bool {
    if every == 0 {
        return false;
    }
    TICK.with(|tick| {
        let before = tick.get();
        let after = before.wrapping_add(requests as u32);
        tick.set(after);
        (before ^ after) & !(every - 1) != 0
    })
}
