//! Several servers ("members") of one directory, one of which writes: the frames between them, and the logic of roles,
//! epochs, fencing, catch-up, trimming and reads of one's own writes.
//!
//! There is no I/O, no thread and no clock in here: octets, answers of stores and the time come in as arguments, so that
//! whole clusters can be run from a seed. A time is a [`Duration`](std::time::Duration) since any start, of a clock that does
//! not go back.
#![forbid(unsafe_code)]
#![warn(clippy::disallowed_methods)]

pub mod append;
mod backoff;
mod fence;
pub mod follower;
pub mod lease;
pub mod message;
pub mod own_writes;
pub mod role;
#[cfg(feature = "simulator")]
pub mod simulator;
pub mod writer;
