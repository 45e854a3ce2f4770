//! The requests of `/dev/crypto`, done by cryptod, for programs that are not to be changed.
//!
//! OpenBSD's cryptographic framework lets programs open sessions and encrypt, hash and authenticate with `ioctl` on
//! `/dev/crypto`. On Linux, cryptodev-linux has the same device, with numbers and structures of its own; programs are
//! compiled for these. This library is loaded before libc (`LD_PRELOAD`) and stands in the place of that device.
//!
//! ```text
//! open  ── exports ──┬─▶ /dev/crypto: device ── the write end of a pipe, for the program
//!                    └─▶ every other file: libc (`abi::next`)
//! ioctl ── exports ──┬─▶ a device's descriptor: requests ── Session ── KeyClient ──▶ cryptod
//!                    └─▶ every other one: libc
//! ```
//!
//! A program that never opens the device gets no thread, descriptor or connection. Sessions belong to what was opened,
//! as the kernel's do: to all copies of the descriptor (`dup`, CRIOGET). A child that is forked has those that its
//! parent had, and its own from then on.
//!
//! Not here: the connection to cryptod (`keyway-client`).
#![deny(unsafe_code)]

#[allow(unsafe_code)]
mod abi;
mod algorithm;
mod daemon;
mod device;
#[allow(unsafe_code, reason = "names of functions")]
mod exports;
mod limits;
mod message;
mod requests;
mod session;
