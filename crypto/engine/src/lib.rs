//! The framework: one API for those who need cryptography done, one for those who do it.
//!
//! A consumer opens a [`Session`] (keys go in, a handle comes out) and has requests done on it, in
//! one of three ways: [`Session::run`] on his own stack; a [`Queue`] of his own, which takes many and
//! hands them back when they are done; [`Engine::start`], which gives a future. The scheduler puts
//! each request on the [`Driver`] that is expected to finish it first. Drivers come, go and die at
//! any time; a session stays.
//!
//! ```text
//! consumer ── Parameters ──▶ Engine::session ─▶ Session (steps, keys) ── bindings ─▶ DriverSession
//!          ── Request ─────▶ Session::run ──── scheduler ──▶ DriverSession::run
//!          ── Task ────────▶ Queue::submit ─── scheduler ──▶ DriverQueue::submit
//!          ◀─ Task ───────── Queue::poll ◀──── settle ────── DriverQueue::poll
//!          ── Task ────────▶ Engine::start ──▶ here, the slow pool, or the executor's queue
//! ```
//!
//! # For consumers
//!
//! ```
//! # use keyway_engine::*;
//! # fn work(engine: &Engine) -> Result<(), Error> {
//! // Directly.
//! let key = Key::Secret(&[7; 16]);
//! let session = engine.session(Parameters::new(Algorithm::Aes128Gcm, key))?;
//! let mut text = *b"attack at dawn";
//! let tag = session.seal(&[0; 12], b"header", &mut text)?;
//!
//! // Many at a time, with their buffers, results and a number of the consumer's.
//! let mut queue = engine.queue(64);
//! let digest = engine.session(Parameters::new(Algorithm::Sha256, Key::None))?;
//! let task = |number| {
//!     Task::tagged(&digest, Operation::digest(Algorithm::Sha256, [0; 100]), number)
//! };
//! let mut tasks: Vec<_> = (0..100).map(task).collect();
//! let accepted = queue.submit(&mut tasks, false);
//! assert_eq!((accepted, tasks.len()), (64, 36)); // What was not accepted is still ours.
//! let mut done = Vec::new();
//! while queue.in_flight() > 0 {
//!     queue.wait(&mut done, std::time::Duration::from_secs(1));
//! }
//! assert_eq!(done[0].output()?.len(), 32);
//!
//! // Encryption and a MAC over it in one request: IPsec's way, with the tag cut to 12 bytes.
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
//! # let _ = tag; Ok(()) }
//! ```
//!
//! # For those who write a driver
//!
//! Two small traits make one that computes on the caller's stack; a third, [`DriverQueue`], one that
//! works beside it.
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
//! What may not enter: any primitive (that is a driver's), any I/O, any clock but the one that times
//! samples and waits.
#![forbid(unsafe_code)]

mod algorithm;
mod append;
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
mod operation;
mod parameters;
mod placement;
mod queue;
mod registered;
mod registry;
mod request;
mod sampling;
mod session;
mod slot;
mod slow;
mod stream;
mod task;
mod usage;
mod waker;
mod wipe;

pub use algorithm::{Algorithm, Class, Kind, Unknown};
pub use chain::run_chain;
pub use costs::Linear;
pub use driver::{Driver, DriverQueue, DriverSession, DriverStream, Flow, Place, Selection};
pub use engine::{Builder, CostReport, DriverReport, Engine};
pub use error::{Blame, Error, Field, Misfit, Wanted};
pub use executor::{Pending, Refused};
pub use iovec::Iovec;
pub use operation::Operation;
pub use parameters::{Demand, Key, Nonces, PacketKey, PacketKeys, Parameters, Step, Usage};
pub use queue::Queue;
pub use request::{
    Cost, Derivation, Direction, IV_BYTES_MAX, Iv, MASK_BYTES, NONCE_BYTES, Opened, Part, Phase,
    Request, SAMPLE_BYTES, TAG_BYTES,
};
pub use session::Session;
pub use slow::Done;
pub use stream::Stream;
pub use task::Task;
pub use waker::Waker;
/// What secrets of [`Operation`]s lie in: wiped when it is dropped.
pub use zeroize::Zeroizing;
