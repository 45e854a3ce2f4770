//! The parts that a client and the daemon share: memory, queues of fixed entries in it, doorbells,
//! and the messages with which the two set all that up.
//!
//! ```text
//! client                         shared memory                       daemon
//! Producer ── descriptor ──▶ submission ring (64 B an entry) ──▶ Consumer
//! Consumer ◀── completion ── completion ring (32 B an entry) ◀── Producer
//! bytes    ◀───────────────▶ regions, named by handle and offset
//!          ── Ask, Answer ──▶ a Unix socket, with file descriptors
//! ```
//!
//! A process of a virtual machine finds all of it in the memory of a device ([`Device`]), the messages too
//! ([`mailbox`]).
//!
//! The daemon does not trust the client, and the client's memory may change at any moment. So this
//! crate makes no reference to shared bytes. A ring's entry is read once, by atomic loads, into a
//! copy. A region's bytes are copied in and out, with their bounds checked ([`SharedMemory`]).
//! Neither side reads an index of its own back from shared memory, and none is there: each entry
//! carries a stamp that says whose turn it is ([`Producer`]).
//!
//! To read it, begin with [`descriptor`], then `queue`, `memory`, `buffer_pool`, `doorbell`, [`control`], and for virtual
//! machines `mailbox` and `device`.
//!
//! These may not enter: what an operation means, who may do it, keys beyond their way through a
//! message, threads.
#![deny(unsafe_code)]

#[cfg(not(loom))]
mod arena;
#[cfg(not(loom))]
#[allow(unsafe_code)]
mod buffer_pool;
pub mod control;
pub mod descriptor;
#[cfg(not(loom))]
mod device;
#[cfg(not(loom))]
mod doorbell;
#[cfg(not(loom))]
#[allow(unsafe_code)]
mod files;
#[cfg(not(loom))]
#[allow(unsafe_code)]
mod inherit;
pub mod limits;
#[cfg(not(loom))]
pub mod mailbox;
#[cfg(not(loom))]
#[allow(unsafe_code)]
mod memory;
#[cfg(not(loom))]
mod pair;
#[cfg(not(loom))]
#[allow(unsafe_code)]
mod peer;
mod queue;
#[cfg(not(loom))]
mod registers;
#[cfg(not(loom))]
mod route;
#[cfg(not(loom))]
mod socket;
mod sync;

#[cfg(not(loom))]
pub use arena::Arena;
#[cfg(not(loom))]
pub use buffer_pool::{BufferPool, Margin, PooledBuffer};
#[cfg(not(loom))]
pub use device::{DEVICES, Device};
#[cfg(not(loom))]
pub use doorbell::{Alarm, Armed, Doorbell, wake_cost};
#[cfg(not(loom))]
pub use files::refuse_files;
#[cfg(not(loom))]
pub use inherit::inherited;
#[cfg(not(loom))]
pub use memory::{OutOfBounds, SharedMemory, Window};
#[cfg(not(loom))]
pub use pair::{ClientEnd, DaemonEnd, RingMemory};
#[cfg(not(loom))]
pub use peer::Peer;
pub use queue::{Consumer, Producer, Words};
#[cfg(not(loom))]
pub use route::{DEFAULT_SOCKET, Route};
#[cfg(not(loom))]
pub use socket::{Received, Socket, with_address};
