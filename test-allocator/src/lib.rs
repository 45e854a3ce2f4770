//! An allocator for tests, which counts how often memory is asked for. A test that has this crate runs on it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static ALL: AtomicU64 = AtomicU64::new(0);

thread_local!(static OWN: Cell<u64> = const { Cell::new(0) });

// SAFETY: all calls are passed on to the system's allocator as they are.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALL.fetch_add(1, Ordering::Relaxed);
        OWN.set(OWN.get() + 1);
        // SAFETY: the caller's promise about `layout` is the one that is asked for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: `at` came from `alloc` above with the same layout, so from the system.
        unsafe { System.dealloc(at, layout) }
    }
}

/// How often all threads together have asked for memory since the start.
pub fn of_all_threads() -> u64 {
    ALL.load(Ordering::Relaxed)
}

/// How often this thread asks for memory while `run` runs.
pub fn within(run: impl FnOnce()) -> u64 {
    let before = OWN.get();
    run();
    OWN.get() - before
}
