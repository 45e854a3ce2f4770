//! What executes requests.
//!
//! [`software`] does every algorithm of the engine, with AWS-LC and, for what that has not,
//! RustCrypto's libraries. [`multibuffer`] does AES-CBC with HMAC for many requests at a time, where
//! the processor is wide enough. [`null`] does nothing at all, quickly: it is there to measure what
//! everything around the cryptography costs, and only those who name it get it.
//!
//! What may not enter: a choice between drivers (that is the scheduler's), queues, I/O.
#![forbid(unsafe_code)]

mod multibuffer;
mod null;
mod software;

pub use multibuffer::{multibuffer, multibuffer_on};
pub use null::null;
pub use software::software;

use keyway_engine::Engine;

/// An engine with the drivers of this crate and a slow pool of the default size.
pub fn engine() -> Engine {
    Engine::builder().driver(software()).driver(null()).build()
}
