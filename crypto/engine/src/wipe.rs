//! Wipes the traces that work with keys leaves on the stack.
//!
//! To open a session is to copy its key: out of an encoding, into round keys, from where a library
//! made them to where they stay. A request puts round keys on the stack when registers are few.
//! Rust does not wipe what a move leaves behind, and a library wipes only its own buffers. So the
//! stack is overwritten after a key was opened, and when it is dropped.

use crate::algorithm::{Algorithm, Kind};
use crate::limits::{STACK_BYTES, STACK_SHALLOW_BYTES};
use zeroize::zeroize_stack;

/// How far down the stack a key may lie. `drivers`' test of the stack says whether it is so.
#[derive(Clone, Copy)]
pub(crate) enum Depth {
    Shallow,
    Deep,
}

impl Depth {
    /// After it was opened: a packet's keys are several, each a table of powers, made on the stack.
    pub fn opened(algorithms: &[Algorithm]) -> Depth {
        use Kind::{Aead, Hkdf, Mac, Mask};
        match algorithms {
            [one] if matches!(one.kind(), Aead | Hkdf | Mac | Mask) => Depth::Shallow,
            _ => Depth::Deep,
        }
    }

    /// After it was used: batches of CBC go deepest of what is symmetric, alone and in chains.
    pub fn used(algorithms: &[Algorithm]) -> Depth {
        use Kind::{Aead, Hkdf, Mac, Mask, Packet};
        match algorithms {
            [one] if matches!(one.kind(), Aead | Packet | Mask | Mac | Hkdf) => Depth::Shallow,
            _ => Depth::Deep,
        }
    }
}

/// Calls `work` and then overwrites what it, and whatever it called, left on the stack.
pub(crate) fn after<R>(depth: Depth, work: impl FnOnce() -> R) -> R {
    let result = apart(work);
    match depth {
        Depth::Shallow => zeroize_stack::<STACK_SHALLOW_BYTES>(),
        Depth::Deep => zeroize_stack::<STACK_BYTES>(),
    }
    result
}

/// With a frame of its own, which begins where the one that overwrites it does.
#[inline(never)]
fn apart<R>(work: impl FnOnce() -> R) -> R {
    work()
}

/// Overwrites what requests have left on the stack below the caller's frame.
#[cold]
#[inline(never)]
pub(crate) fn used(depth: Depth) {
    after(depth, || ());
}
