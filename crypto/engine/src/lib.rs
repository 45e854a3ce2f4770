//! The framework: one API for those who need cryptography done, one for those who do it.
//!
//! A consumer opens a [`Session`] (keys go in, a handle comes out) and runs a [`Request`] on it.
//! The scheduler picks the [`Driver`] once, when the session is opened; a request then runs on the
//! caller's stack and is counted. Slow work (password hashing) has a class of its own: it is
//! submitted to a bounded pool that answers *busy* rather than queue without end, so that it never
//! stands in front of fast work.
//!
//! ```text
//! consumer ── Parameters ──▶ Engine ── scheduler ──▶ Driver::open ──▶ DriverSession
//!          ── Request ─────▶ Session::run ──────────────────────────▶ DriverSession::run
//!          ── Derivation ──▶ Engine::submit ─▶ slow pool ───────────▶ DriverSession::run ─▶ done()
//! ```
//!
//! What may not enter: any primitive (that is a driver's), any I/O, any clock.
#![forbid(unsafe_code)]

mod algorithm;
mod append;
mod bell;
mod carrier;
mod chain;
mod clock;
mod costs;
mod driver;
mod engine;
mod error;
mod lane;
mod learn;
pub mod limits;
mod operation;
mod parameters;
mod queue;
mod registry;
mod request;
mod sampling;
mod scheduler;
mod session;
mod slow;
mod spread;
mod task;

pub use algorithm::{Algorithm, Class, Kind, Unknown};
pub use bell::Bell;
pub use carrier::{Pending, Refused};
pub use chain::run_chain;
pub use costs::Linear;
pub use driver::{Driver, DriverQueue, DriverSession, DriverStream, Flow, Place, Selection};
pub use engine::{Builder, CostReport, DriverReport, Engine};
pub use error::{Blame, Error};
pub use operation::Operation;
pub use parameters::{Demand, Key, Nonces, Parameters, Step, Usage};
pub use queue::Queue;
pub use request::{
    Cost, Derivation, Direction, IV_BYTES_MAX, Iv, NONCE_BYTES, Part, Request, TAG_BYTES,
};
pub use session::{Session, Stream};
pub use slow::Done;
pub use spread::Spread;
pub use task::Task;
