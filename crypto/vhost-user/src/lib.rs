//! The vhost-user-crypto device: AES-CBC and RSA for the unmodified kernels of virtual machines, done by an engine of
//! Keyway's. QEMU is the front end (`cryptodev-vhost-user`), or User-Mode Linux (`virtio_uml`).
//!
//! ```text
//! guest: virtio_crypto ── rings in its memory ─▶ queue ─▶ request ─▶ engine
//! QEMU:  vhost-user ───── messages, files ─────▶ connection ─▶ memory, session
//! ```
//!
//! [`serve`] is the device. `serve` waits; `connection` answers messages, starts and stops rings; `memory` is the
//! guest's memory; `queue` takes requests out of a ring and gives them back; `request` has the engine do them;
//! `session` has the keys. [`Message`] and [`RequestHeader`] are the two protocols as types.
//!
//! - **A request** has a header of 72 bytes, its IV and its source, which the device reads, and room for the result and
//!   a status. What the device reads is copied once, before it is looked at. Requests are taken in batches and given
//!   back in their order. Between two batches none is under way, so that GET_VRING_BASE is exact and final.
//! - **RSA** is with PKCS#1 v1.5 only, of 2,048 to 8,192 bits. A guest's `rsa` without padding is refused: the kernel's
//!   own test of it has keys of 512 bits. `pkcs1pad(rsa,…)` works.
//! - **After a restart** of the device, QEMU 7.2 repeats its sessions but neither memory nor rings: requests of the guest
//!   wait until the device is taken out and plugged again.
//!
//! These may not enter: any primitive, which is the engine's, and any knowledge of the daemon.
#![deny(unsafe_code)]

mod connection;
mod crypto;
mod limits;
#[allow(unsafe_code)]
mod memory;
mod message;
mod notifier;
mod queue;
mod request;
mod serve;
mod session;
mod watched;

pub use crypto::{
    AkcipherOperation, Direction, REQUEST_HEADER_BYTES, RequestHeader, SessionParameters,
    SessionRequest, Status,
};
pub use limits::Limits;
pub use message::{
    HEADER_BYTES, Header, Malformed, Message, RegionDescription, RingAddresses, RingFile,
    SessionLayout,
};
pub use serve::serve;
