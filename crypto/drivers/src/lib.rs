//! Drivers: the code that executes requests.
//!
//! [`software`] does every algorithm of the engine, with AWS-LC and, for what that has not,
//! RustCrypto's libraries. [`simd`] does AES-GCM and QUIC's packets with backends of our own, many
//! at a time. [`multibuffer`] does AES-CBC with HMAC for many requests at a time, where
//! the processor is wide enough. [`pool`] has another driver's requests run by threads of its own,
//! on processors of their own; [`worker_queue`] is what such a driver is made of. [`remote`] has
//! them done by a daemon, through memory that both have. A [`Verifier`] stands before another
//! driver and remembers which passwords that one found right.
//!
//! Drivers that only measure or test are in `keyway-test-drivers`.
//!
//! Features leave out what pulls in other libraries: `compression` (DEFLATE, Zstandard, LZ4),
//! `ffdh`, `passwords`, `remote` and `xts`; all are on unless turned off.
//!
//! These may not enter: a choice between drivers (that is the scheduler's), queues, I/O but for the
//! socket of `remote`.
#![forbid(unsafe_code)]

mod batch_queue;
pub mod limits;
mod multibuffer;
mod owned_request;
mod pool;
#[cfg(feature = "remote")]
pub mod remote;
mod simd;
mod software;
mod verifier;
pub mod worker_queue;

pub use multibuffer::{multibuffer, multibuffer_on};
pub use pool::{Pool, pool};
pub use simd::{NoSuchBackend, SIMD_VARIABLE, chosen_backend, simd, simd_on};
pub use software::{generate_private_key, software};
pub use verifier::{Clock, Remember, Verifier};

use keyway_engine::{Builder, Driver, Engine};
use keyway_simd::packet::PacketBackend;
use std::sync::Arc;

/// The drivers that an engine should have: [`simd`] and [`multibuffer`] where the processor has
/// them, and [`software`]. [`SIMD_VARIABLE`] in the environment may name the backend; with one that
/// is not the widest, [`multibuffer`] is left out as well.
pub fn drivers() -> Vec<Arc<dyn Driver>> {
    drivers_beside(software())
}

/// As [`drivers`], with another driver in the place of [`software`]: a [`Verifier`] before it.
pub fn drivers_beside(software: Arc<dyn Driver>) -> Vec<Arc<dyn Driver>> {
    let widest = chosen_backend().is_ok_and(|backend| backend == PacketBackend::detect());
    let multibuffer = if widest { multibuffer() } else { None };
    let drivers = [simd(), Some(software), multibuffer];
    drivers.into_iter().flatten().collect()
}

/// An engine with these [`drivers`].
pub fn engine() -> Engine {
    engine_beside(software())
}

/// An engine with the drivers of [`drivers_beside`].
pub fn engine_beside(software: Arc<dyn Driver>) -> Engine {
    drivers_beside(software).into_iter().fold(Engine::builder(), Builder::driver).build()
}
