//! Packets of a TUN device with its offloads, and of UDP and raw sockets, in batches.
//!
//! ```text
//! kernel ── TUN, virtio header ──▶ TunQueue::receive ── whole packets ──▶ the caller ──▶ Socket::push ── one GSO call ──▶ network
//! kernel ◀── joined packets ────── TunQueue::push ◀──── the caller ◀── datagrams, cut ── Socket::receive ◀── GRO, recvmmsg ── network
//! ```
//!
//! [`open`] makes a device. [`TunQueue`] and [`Socket`] are each one thread's; a second thread gets its own with
//! `try_clone`.
#![deny(unsafe_code)]

mod error;
mod socket;
mod tun;

pub use error::Error;
pub use socket::{Received, Sent, Socket, SocketOptions};
pub use tun::{Tun, TunOptions, TunQueue, Written, open};
