//! cryptod: an engine for other processes, and the keys that none of them sees.
//!
//! ```text
//! client ── Unix socket ──▶ server (control thread) ── commands ──▶ pump ──▶ engine
//!        ◀────────── rings and regions, in shared memory ─────────▶
//! ```
//!
//! A virtual machine's processes have no socket, but memory in which all of that lies (`machine`).
//!
//! A client connects to the socket and is admitted by the credentials of its process
//! ([`Admission`]). It asks for queue pairs, registers memory, and opens sessions (`server`). From
//! then on its requests go past the system, through the rings, to a pump, which takes them in turn
//! with those of others (`pump`, [`fair`]) and has an engine do them. To read it, begin with
//! `pump`, then `server`.
//!
//! A daemon and its client, `examples/client.rs`:
//!
//! ```
#![doc = include_str!("../examples/client.rs")]
//! ```
//!
//! These may not enter: any primitive (that is a driver's), what a directory is, flags and output.
#![forbid(unsafe_code)]

mod admission;
mod closing;
mod daemon;
pub mod fair;
mod handover;
pub mod keys;
pub mod limits;
mod listen;
mod machine;
mod managing;
mod name_spaces;
mod options;
mod pump;
mod refusal;
mod server;
mod slab;
mod slow;
mod vital;
mod weights;
pub mod witness;

pub use admission::Admission;
pub use daemon::Daemon;
pub use listen::{is_listened_for_machine, listen, listen_for_device, listen_for_machine};
pub use name_spaces::{NameSpace, NameSpaces};
pub use options::{DeviceOptions, HandedOver, MachineOptions, Machines, Options, Report};
pub use weights::Weights;
