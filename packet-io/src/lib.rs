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

mod address;
mod checksum;
mod coalesce;
mod error;
mod flow;
mod limits;
mod netlink;
mod socket;
mod split;
#[allow(unsafe_code)]
mod system;
mod tun;
mod virtio;

pub use coalesce::Coalescer;
pub use error::Error;
pub use limits::PACKET_BYTES_MAX;
pub use socket::{Received, Sent, Socket, SocketOptions};
pub use split::{Malformed, split};
pub use tun::{Tun, TunOptions, TunQueue, Written, open};
pub use virtio::VIRTIO_HEADER_BYTES;
