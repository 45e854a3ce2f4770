//! What executes requests.
//!
//! [`software`] does every algorithm of the engine, with AWS-LC and, for what that has not,
//! RustCrypto's libraries. [`simd`] does AES-GCM and QUIC's packets with backends of our own, many at
//! a time. [`multibuffer`] does AES-CBC with HMAC for many requests at a time, where
//! the processor is wide enough. [`null`] does nothing at all, quickly: it is there to measure what
//! everything around the cryptography costs, and only those who name it get it.
//!
//! [`pool`] has another driver's requests run by threads of its own, on processors of their own;
//! [`queued2003`] does so the way it was done in 2003, to measure against; [`fault`] fails as
//! planned, to test with. [`simulated`] is a hardware accelerator in time: its ring, its interrupts,
//! its speed and its death.
//!
//! Features leave out what pulls in other libraries: `compression` (DEFLATE, Zstandard, LZ4), `ffdh`,
//! `passwords` and `xts`; all are on unless turned off.
//!
//! What may not enter: a choice between drivers (that is the scheduler's), queues, I/O.
#![forbid(unsafe_code)]

mod fault;
mod handover;
mod multibuffer;
mod null;
mod owned;
mod pool;
mod queued2003;
mod simd;
mod simulated;
mod software;

pub use fault::{FaultHandle, Plan, fault};
pub use multibuffer::{multibuffer, multibuffer_on};
pub use null::null;
pub use pool::{Pool, pool};
pub use queued2003::queued2003;
pub use simd::{NoSuchBackend, SIMD_VARIABLE, chosen_backend, simd, simd_on};
pub use simulated::{Card, Counters, Simulated, simulated};
pub use software::software;

use keyway_engine::{Builder, Driver, Engine, Task};
use keyway_simd::packet::PacketBackend;
use std::mem;
use std::sync::Arc;

/// The drivers that most want: [`simd`] and [`multibuffer`] where the processor has them,
/// [`software`], and for those who name it [`null`]. Which backend it is, [`SIMD_VARIABLE`] in the
/// environment may say; one that is not the widest leaves [`multibuffer`] out as well.
pub fn drivers() -> Vec<Arc<dyn Driver>> {
    let widest = chosen_backend().is_ok_and(|backend| backend == PacketBackend::detect());
    let multibuffer = if widest { multibuffer() } else { None };
    let drivers = [simd(), Some(software()), multibuffer, Some(null())];
    drivers.into_iter().flatten().collect()
}

/// An engine with these [`drivers`].
pub fn engine() -> Engine {
    drivers().into_iter().fold(Engine::builder(), Builder::driver).build()
}

/// Moves all of `from` to the end of `to`: without a copy, if nothing is there yet.
fn pass_on(from: &mut Vec<Box<Task>>, to: &mut Vec<Box<Task>>) {
    if to.is_empty() {
        mem::swap(from, to);
    } else {
        to.append(from);
    }
}
