//! The choice of requests that are timed: one in so many of each thread.

use std::cell::Cell;

thread_local! {
    static TICK: Cell<u32> = const { Cell::new(0) };
}

/// How many of these requests are due. `every` is a power of two, or 0 for none.
#[inline]
pub(crate) fn due(every: u32, requests: usize) -> usize {
    if every == 0 {
        return 0;
    }
    TICK.with(|tick| {
        let before = tick.get();
        let after = before.wrapping_add(requests as u32);
        tick.set(after);
        let turns = |ticks: u32| ticks >> every.trailing_zeros();
        turns(after).wrapping_sub(turns(before)) as usize
    })
}
