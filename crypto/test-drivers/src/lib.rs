//! Drivers to measure and to test with. None of them is in an engine that serves users.
//!
//! [`null`] does nothing, quickly: it shows what everything around the cryptography costs.
//! [`simulated`] is a hardware accelerator in time: its ring, its interrupts, its speed and its
//! death. [`queued2003`] runs another driver's requests the way it was done in 2003, as a baseline.
//! [`fault`] fails as planned.
//!
//! The drivers that do real work are in `keyway-drivers`.
#![forbid(unsafe_code)]

mod fault;
mod null;
mod queued2003;
mod simulated;

pub use fault::{FaultHandle, Plan, fault};
pub use null::null;
pub use queued2003::queued2003;
pub use simulated::{Card, Counters, Simulated, simulated};
