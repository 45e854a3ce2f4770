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
mod driver;
mod engine;
mod error;
pub mod limits;
mod request;
mod scheduler;
mod session;
mod slow;

pub use algorithm::{Algorithm, Class, Kind};
pub use driver::{Driver, DriverSession, DriverStream, Selection};
pub use engine::{Builder, Engine};
pub use error::{Blame, Error};
pub use request::{Cost, Derivation, Key, NONCE_BYTES, Parameters, Request, TAG_BYTES};
pub use session::{Session, Stream};
pub use slow::Done;
