//! The protocol of an SSH agent (draft-ietf-sshm-ssh-agent, OpenSSH's PROTOCOL.agent): a request's bytes go in,
//! the answer's bytes come out.
//!
//! The agent has no keys: it lists and uses those of [`Keys`], which are used by name elsewhere. It signs for
//! `ssh-ed25519`, `ecdsa-sha2-nistp256`, `ecdsa-sha2-nistp384`, `rsa-sha2-256` and `rsa-sha2-512`. It refuses
//! `ssh-rsa`, whose signatures are made with SHA-1, and everything that would add, remove or lock keys.
//!
//! ```text
//! length, message ── message_bytes, answer ──▶ AgentRequest ──▶ Keys
//!                 ◀─────────────────────────── AgentAnswer  ◀── signature
//! ```
//!
//! Not here: sockets, and how long a client may take.
#![forbid(unsafe_code)]
#![warn(clippy::disallowed_methods)]

mod agent;
mod key;
pub mod limits;
mod message;
mod signature;

pub use agent::{Keys, Unavailable, answer};
pub use key::AgentKey;
pub use message::{AgentAnswer, AgentRequest, Malformed, message_bytes};
pub use signature::{Signing, encode_signature};
