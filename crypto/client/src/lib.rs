//! A client of a running cryptod, for modules in programs that are not Keyway's: OpenSSL's provider in nginx.
//!
//! The engine's `remote` driver has threads that reconnect and watch. Such a program forks, changes its user and its
//! root, and wants to know nothing of keys that it does not use. So this client has no thread, and no descriptor
//! before a key is used; it waits in the calling thread.
//!
//! ```text
//! KeyClient ── find ─────▶ NamedKey: name and public half, over a connection that is closed again
//!           ── run ──────▶ connection of this process and user ── channel ──▶ one request at a time
//!           ── run_with_own ──▶ as run, with a key that the program has and gives over the socket
//!           ── prepare ──▶ the socket's folder, open for a process that changes its root later
//! ```
//!
//! A process that is forked has eras of its own ([`KeyClient`]): what it inherited, it leaves alone.
//!
//! Not here: what a program asks for (`keyway-openssl`), and how requests lie in a ring (`keyway-wire`).
#![forbid(unsafe_code)]

mod channel;
mod client;
mod connection;
mod error;
mod hash;
mod kept;
pub mod limits;
mod own_key;
mod per_process;
mod place;
mod programs;
mod public_key;
mod reference;
mod whole;

pub use client::KeyClient;
pub use connection::{KeyAndChain, NamedKey};
pub use error::{ClientError, Fault};
pub use hash::{Hash, Hasher};
pub use kept::{Kept, above_standard};
pub use keyway_ring::DEFAULT_SOCKET;
pub use keyway_ring::control::KeyPolicy;
pub use own_key::OwnKey;
pub use per_process::PerProcess;
pub use place::{SOCKET_VARIABLE, environment, socket_path};
pub use programs::{Program, Site, UnknownProgram, instructions};
pub use public_key::{Curve, MlDsa, PublicKey, integer, without_zeros};
pub use reference::{KeyReference, PEM_LABEL};
pub use whole::{Change, Whole};
