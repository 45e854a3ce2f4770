//! How requests lie in a ring, and everything else that a client of the daemon and the daemon say to
//! each other in the engine's terms. Each thing is written and read here, so that the two sides
//! understand each other.
//!
//! ```text
//! client                                                               daemon
//! Request  ── encode ──▶ descriptor, and bytes in shared memory ── load ──▶ Operation
//!          ◀── decode ── completion, and bytes in shared memory ◀── store ──
//! Step     ── step ──▶ control message ── open ──▶ Session
//! Error    ◀── error ── status ◀── status ──
//! ```
//!
//! [`Opcode`](keyway_ring::descriptor::Opcode) says what each kind of request puts where.
//!
//! Not here: sockets and rings themselves (`keyway-ring`), and what either side does with a request.
#![forbid(unsafe_code)]
#![warn(clippy::disallowed_methods)]

mod certificate;
mod client;
mod daemon;
pub mod der;
mod keys;
mod public_keys;
mod status;
#[cfg(test)]
mod tests;
mod values;

pub use certificate::CertificateFields;
pub use client::{Space, bytes_max, changes_data, decode, encode, wipe};
pub use daemon::{empty, load, named_bytes, refused, store};
pub use keys::{open, step};
pub use public_keys::{read_subject_public_key_info, subject_public_key_info};
pub use status::{error, status};
