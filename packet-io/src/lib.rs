//! Packets of a TUN device with its offloads, and of UDP and raw sockets, in batches.
//!
//! ```text
//! kernel ── TUN, virtio header ──▶ TunQueue::receive ── packets, cut ──▶ caller ──▶ Socket::push, flush ──▶ GSO, sendmmsg
//! kernel ◀── packets, joined ───── TunQueue::push, flush ◀── caller ◀── datagrams, cut ── Socket::receive ◀── GRO, recvmmsg
//! ```
//!
//! [`open`] makes a device, with addresses and routes by rtnetlink. [`TunQueue`] and [`Socket`] are each one thread's; a
//! second thread gets an end of its own by `try_clone`. Neither waits for packets: a caller that finds none polls, which
//! both are for (`AsFd`).
//!
//! - **Out of a device** come up to 64 KiB of a TCP or UDP flow at once, which [`split`] cuts where they lie.
//! - **Into a device** go packets that [`Coalescer`] joined by the rules of the kernel's own GRO: one call, and one way
//!   through the kernel's stack, for dozens of packets.
//! - **A packet asks for no memory**, once as many were there as come at a time.
//! - **Bytes from outside are hostile**, those that the kernel hands over too: what contradicts itself is dropped and
//!   counted.
//!
//! Why no library does this: `tun-rs` copies each segment, and joins TCP packets whose windows differ, which the kernel does
//! not; `quinn-udp` sends one burst a call, and after one `EINVAL`, which an address can cause, never ECN or a burst again.
//!
//! These may not enter: what a packet means beyond the headers of IP, TCP and UDP, and any cryptography.
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
