//! An IPsec ESP gateway in user space: a TUN device on one side, UDP or raw sockets on the other.
//!
//! ```text
//! system ── TunQueue ──▶ outward: Outbound ─▶ Sealer ──▶ Socket ── network      one thread each
//! system ◀── TunQueue ── inward: Opener ◀─ Inbound ◀── Socket ◀── network       for every queue
//!                          ▲ tables, swapped whole
//!   up ─▶ gateway: configuration ─▶ security associations ◀─ lease, uses ─▶ state folder
//!                          ▲ keeper: leases, lifetimes, paths, NAT
//! ```
//!
//! No number is used twice under a key: [`lease`] says how that is so after a crash. A reload swaps what changed and
//! leaves the rest as it is. The keys are in the configuration, or in a daemon, and then the gateway sees none.
#![forbid(unsafe_code)]

mod association;
mod clock;
pub mod commands;
pub mod config;
pub mod control;
mod figures;
mod gateway;
mod inward;
mod keeper;
pub mod lease;
pub mod limits;
mod options;
mod outward;
mod privileges;
pub mod record;
mod reverse_path;
mod say;
mod state;
mod stop;
mod tables;
mod up;
mod uses;

pub use options::UpOptions;
pub use up::{METER, run};
