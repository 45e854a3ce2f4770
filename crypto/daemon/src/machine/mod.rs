//! Virtual machines as clients, whose processes reach the daemon past kernel and hypervisor.
//!
//! ```text
//! hypervisor ── ivshmem's protocol: the memory's file, and the bells ─┐
//! process ───── mailbox, in that memory ──────────────────────────── the machine's thread ── socket ── control thread
//!         ───── queue pairs and regions, in that memory ───────────────────────────────────────────── pump
//! ```
//!
//! The hypervisor shows its guest one memory file of the daemon's as a PCI device, and makes a store to one of the
//! device's registers the ring of a bell. No address of the guest's comes here. To the control thread the machine is one
//! client, with one client's limits and share of the time; its thread alone knows which of its processes has what
//! (`relay`). The process that connects to a machine's socket is the machine's hypervisor, and has all that the machine
//! may: the socket's permissions say which process that can be.
//!
//! A machine whose kernel is to use the daemon has a vhost-user device, which is a process of its own (`device`).

mod device;
mod ivshmem;
mod relay;
mod room;
mod thread;

pub use device::Device;
pub use relay::{Position, Relay, SlotState};
pub use room::{Bell, Room};
pub use thread::{Door, Machine, Newcomer, Serving, Stopped};
