//! What work with keys leaves on the stack.
//!
//! To open a session is to copy its key: out of an encoding, into round keys, from where a library
//! made them to where they stay; and who runs a request lays round keys aside when registers are few.
//! No language wipes what a move leaves behind, and a library wipes only what is its own. So the stack
//! is overwritten when a key was opened, and when it is dropped.

use crate::limits::{STACK_OPENED_BYTES, STACK_USED_BYTES};
use zeroize::zeroize_stack;

/// Calls `open` and then overwrites what it, and whatever it called, left on the stack.
pub(crate) fn after<R>(open: impl FnOnce() -> R) -> R {
    let result = apart(open);
    zeroize_stack::<STACK_OPENED_BYTES>();
    result
}

/// With a frame of its own, which begins where the one that overwrites it does.
#[inline(never)]
fn apart<R>(open: impl FnOnce() -> R) -> R {
    open()
}

/// Overwrites what requests have left on the stack below the caller's frame.
#[cold]
pub(crate) fn used() {
    zeroize_stack::<STACK_USED_BYTES>();
}
