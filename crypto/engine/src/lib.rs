//! The framework: one API for consumers of cryptography, one for its drivers.
//!
//! A consumer opens a [`Session`]: keys go in, a handle comes out. It has requests done on it in
//! one of three ways. [`Session::run`] works before it returns. A [`Queue`] takes many tasks and
//! hands them back when they are done. [`Engine::start`] gives a future. The scheduler puts each
//! request on the [`Driver`] that is expected to finish it first. Drivers come, go and die at any
//! time; a session stays.
//!
//! ```text
//! consumer ── Parameters ──▶ Engine::session ─▶ Session (steps, keys) ── bindings ─▶ DriverSession
//!          ── Request ─────▶ Session::run ──── scheduler ──▶ DriverSession::run
//!          ── Task ────────▶ Queue::submit ─── scheduler ──▶ DriverQueue::submit
//!          ◀─ Task ───────── Queue::poll ◀──── settle ────── DriverQueue::poll
//!          ── Task ────────▶ Engine::start ──▶ here, the slow pool, or the executor thread's queue
//! ```
//!
//! # For consumers
//!
//! The three ways in one program, `examples/seal.rs`:
//!
//! ```
#![doc = include_str!("../examples/seal.rs")]
//! ```
//!
//! Encryption and a MAC over it in one request, IPsec's way, with the tag cut to 12 bytes:
//!
//! ```
//! # use keyway_engine::*;
//! # let engine = keyway_drivers::engine();
//! let steps = [
//!     Step { algorithm: Algorithm::Aes128Cbc, key: Key::Secret(&[1; 16]) },
//!     Step { algorithm: Algorithm::HmacSha1, key: Key::Secret(&[2; 20]) },
//! ];
//! let chain = engine.session(Parameters::chain(&steps))?;
//! let mut packet = [0; 8 + 16 + 64 + 12];
//! chain.run(&mut Request::Chain {
//!     direction: Direction::Protect,
//!     length: packet.len(),
//!     data: &mut packet,
//!     parts: &[
//!         Part::Cipher { iv: Iv::At(8), text: 24..88 },
//!         Part::Mac { over: 0..88, tag: 88..100 },
//!     ],
//! })?;
//! # Ok::<(), Error>(())
//! ```
//!
//! # How a request runs
//!
//! The steps of [`Session::run`], in order. The names in brackets are files of this crate.
//!
//! 1. **Does it fit?** The request must be of a kind that the session's algorithm does, and its
//!    buffers must have lengths that the algorithm takes (`request`, `lengths`). If not, it ends
//!    with [`Error::InvalidRequest`], and no driver sees it.
//! 2. **Is the fast path open?** A session that counts nothing, and whose first driver is the only
//!    one or the best one, skips steps 3, 4 and 6 (`placement`). To know this takes a few loads and
//!    comparisons: drivers that come or go change the registry's *epoch*, and an epoch that changed
//!    closes the path. Packets take their number here too.
//! 3. **May the key be used?** A session with limited keys counts the seal, or refuses it with
//!    [`Error::Exhausted`]. Nonces that the session makes, and packet numbers, are taken now
//!    (`usage`). They are not given back, even if the request fails: no nonce is ever used twice.
//! 4. **On which driver?** Each candidate has a *binding* below the session: the driver's own form
//!    of the key, and what its work has cost until now. The scheduler predicts for each when it
//!    would be finished, and picks the earliest (`placement`, over `costs`). A driver that is
//!    picked for the first time opens the key now. Costs are measured when a session has a choice
//!    for the first time (`calibrate`).
//! 5. **The work.** [`DriverSession::run`] works on the request's buffers in place and returns the
//!    bytes it put out. A driver that has died answers [`Error::Gone`] before it touches the
//!    buffers. It is then marked as dead, and step 4 begins again with those that are left
//!    (`session`, `registry`).
//! 6. **What is remembered?** One request in 1,024 is timed, unless [`Builder::sample`] says
//!    otherwise. Its time corrects the costs, and may open or close the fast path. A tag that does
//!    not check counts as a forgery.
//! 7. **Counting.** The meters of this driver and algorithm take the request, its bytes and its
//!    error (`metrics`); so do those of the session's client.
//!
//! A [`Queue`] does the same for many tasks at a time. For tasks of one session that go where the
//! last one went, steps 1 and 4 are a comparison each. Work of some milliseconds (RSA, password
//! hashing) leaves a queue for a bounded pool of its own (`slow`), so that it holds up nothing
//! else.
//!
//! # For drivers
//!
//! Two small traits make a driver that computes on the caller's stack. A third, [`DriverQueue`],
//! makes one that works beside it.
//!
//! ```
//! use keyway_engine::*;
//! use std::sync::Arc;
//!
//! /// Sums bytes and calls it SHA-1.
//! struct Summing;
//!
//! impl Driver for Summing {
//!     fn name(&self) -> &str {
//!         "summing"
//!     }
//!
//!     fn supports(&self, steps: &[Algorithm]) -> bool {
//!         steps == [Algorithm::Sha1]
//!     }
//!
//!     fn open(&self, _: &[Step<'_>]) -> Result<Box<dyn DriverSession>, Error> {
//!         Ok(Box::new(Summing))
//!     }
//! }
//!
//! impl DriverSession for Summing {
//!     fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
//!         let Request::Digest { data, out } = request else {
//!             return Err(Error::invalid_request("it only hashes"));
//!         };
//!         let bytes = data.iter().flat_map(|part| part.iter());
//!         out.fill(bytes.fold(0, |sum: u8, byte| sum.wrapping_add(*byte)));
//!         Ok(out.len())
//!     }
//! }
//!
//! let engine = Engine::builder().driver(Arc::new(Summing)).build();
//! let mut digest = [0; 20];
//! engine.digest(Algorithm::Sha1, &[&[1, 2], &[3]], &mut digest)?;
//! assert_eq!(digest, [6; 20]);
//! # Ok::<(), Error>(())
//! ```
//!
//! `keyway-conformance` tests a driver against everything that is promised here.
//!
//! These may not enter: any primitive (that is a driver's), any I/O, any clock but the one that
//! times samples and waits.
#![forbid(unsafe_code)]
#![warn(clippy::disallowed_methods)]

mod algorithm;
mod append_vec;
mod buffer;
mod busy;
mod calibrate;
mod chain;
mod clock;
mod costs;
mod driver;
mod engine;
mod error;
mod executor;
mod iovec;
mod lengths;
pub mod limits;
mod metrics;
mod opener;
mod operation;
mod order;
mod padding;
mod parameters;
mod pending;
mod placement;
mod process;
mod queue;
mod registered;
mod registry;
mod request;
mod route;
mod sampling;
mod session;
mod slot;
mod slow;
mod stream;
mod task;
mod usage;
mod waker;
mod watch;
mod wipe;
pub mod workload;

pub use algorithm::{Algorithm, Class, Kind, Unknown};
pub use buffer::{Buffer, Memory};
pub use busy::found_busy;
pub use chain::run_chain;
pub use costs::Linear;
pub use driver::{Driver, DriverQueue, Flow};
pub use engine::{Builder, CostReport, DriverReport, Engine};
pub use error::{Blame, Error, ExpectedLength, Field, RequestError};
pub use executor::{Pending, Refused};
pub use iovec::Iovec;
pub use opener::{DriverSession, DriverStream, Place, Selection};
pub use operation::Operation;
pub use padding::{OaepParameters, SignatureParameters};
pub use parameters::{
    Demand, Key, Nonces, PacketKey, PacketKeys, Parameters, Step, Usage, is_key_name, key_reference,
};
pub use queue::Queue;
pub use request::{
    Cost, Derivation, Direction, Effort, IV_BYTES_MAX, Iv, MASK_BYTES, NONCE_BYTES, Opened, Part,
    Phase, Request, SAMPLE_BYTES, TAG_BYTES,
};
pub use session::Session;
pub use slow::Done;
pub use stream::Stream;
pub use task::Task;
pub use waker::Waker;
/// The container of secrets in [`Operation`]s: wiped when it is dropped.
pub use zeroize::Zeroizing;
