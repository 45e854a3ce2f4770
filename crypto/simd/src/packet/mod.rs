//! Packets: AEADs over batches of messages, and QUIC's protection of whole packets (RFC 9001 § 5),
//! header included.
//!
//! A batch may mix keys, lengths and algorithms. QUIC's header mask, which a packet needs beside the
//! AEAD, is computed for all packets of a batch together, so that it costs next to nothing.
//!
//! From below: what a processor has (`detected`), keys (`gcm`, `mask_key`, `key`), messages and packets
//! (`aead`, `quic`), what a backend computes (`backend`; `library` is the plainest), what messages and
//! packets are to it (`message`), the backends, and the choice of one (`select`).

mod aead;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod aesni;
mod backend;
#[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
mod chacha;
#[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
mod detected;
#[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
mod gcm;
#[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
#[allow(unsafe_code)]
mod gcm256;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod gcm512;
mod key;
mod library;
#[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
mod mask_key;
mod message;
#[cfg(target_arch = "aarch64")]
#[allow(unsafe_code)]
mod neon;
mod quic;
mod select;
mod sizes;

pub use aead::{Open, Seal};
pub use key::{Aead, AeadKey, HeaderKey, KeyLength, PacketKey};
#[cfg(debug_assertions)]
#[doc(hidden)]
pub use message::ON_VERDICT;
pub use quic::{Opened, Phases, Protect, Refusal, Unprotect, Used};
pub use select::PacketBackend;
pub use sizes::{MASK_BYTES, NONCE_BYTES, SAMPLE_BYTES, TAG_BYTES};
