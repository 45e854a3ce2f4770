//! Arithmetic on bytes: no I/O, no clock, and no allocation but for keys.
//!
//! The first of two parts, [`CbcBackend`], seals *several requests at once*: AES-128/256-CBC
//! encryption with HMAC-SHA1 or HMAC-SHA256 over the result (the encrypt-then-MAC of IPsec, RFC
//! 4303, and of TLS, RFC 7366), or either of them alone. CBC encryption and a hash are chains: each
//! step waits for the one before, so that a single request leaves most of the processor idle. Here
//! every request gets a *lane* of the widest registers there are, and a lane whose request has
//! ended takes the next one. Batches may mix lengths, keys, ciphers and hashes.
//!
//! ```
//! use keyway_simd::{CbcKey, Cipher, Hash, HmacKey, Job, CbcBackend, Mac};
//!
//! // Without a backend that is worth a batch, a caller goes on sealing one request after another.
//! let backend = CbcBackend::detect().unwrap_or(CbcBackend::portable());
//! let (aes, hmac) = (CbcKey::aes128(&[1; 16]), HmacKey::new(Hash::Sha1, b"key"));
//! let mut packets = [[0; 24 + 64 + 12]; 3];
//! let mut jobs = packets.each_mut().map(|packet| {
//!     let (message, tag) = packet.split_at_mut(24 + 64);
//!     // Header and IV in front of the ciphertext, all of it under the MAC, the tag behind.
//!     let cipher = Cipher { key: &aes, iv: [2; 16], range: 24..24 + 64 };
//!     let mac = Mac { key: &hmac, range: 0..24 + 64, front: &[], back: &[], tag };
//!     Job { message, cipher: Some(cipher), mac: Some(mac) }
//! });
//! backend.seal(&mut jobs).expect("the ranges fit");
//! ```
//!
//! The second, [`packet`], protects whole QUIC packets and other messages under AEADs, a batch at a
//! time.
//!
//! All of it is constant-time in keys and data: no table, no index and no branch depends on them.
//! Lengths and the number of requests are public. Keys and lanes are wiped when they are done with.
//! Unsafe code is in `cache` and `x86`, and below `cbc/avx512`, `packet/gcm256`, `packet/gcm512`,
//! `packet/aesni` and `packet/neon`.
//!
//! # In which order to read it
//!
//! Both folders are built alike: keys, sizes and requests lie lowest, then the trait that a backend
//! implements (`backend.rs`), the backends, and the choice of one (`select.rs`).
//!
//! 1. `packet/quic.rs` and `packet/aead.rs`: packets and messages; `packet/message.rs`: what both have
//!    in common for a backend.
//! 2. `packet/backend.rs`: the trait that a backend implements; `packet/gcm.rs`, `packet/mask_key.rs`
//!    and `packet/key.rs`: what a key consists of; `packet/select.rs`: the choice of a backend.
//! 3. `packet/library.rs`: the plainest backend, aws-lc.
//! 4. `packet/gcm256/`: AES-GCM in registers of one block or two. `width.rs` is what a register can do,
//!    `hash.rs` GHASH, `message.rs` a message, `mod.rs` packets. `packet/aesni/` and `packet/neon/` are
//!    the instructions for it; `packet/detected.rs` shows that they are there.
//! 5. `packet/gcm512/`: AES-GCM with AVX-512. `register.rs` and `hash.rs` first, then `single.rs` (one
//!    message), `sequential.rs` (a long one), `uniform.rs` with `interleaved.rs` (a batch under one
//!    key), `headers.rs` and `masks.rs`.
//! 6. `packet/chacha.rs`: ChaCha20's header masks, with `packet/aesni/chacha.rs` and
//!    `packet/neon/chacha.rs`.
//! 7. `cbc/job.rs` and `cbc/lanes.rs`: CBC with HMAC, requests and lanes; `cbc/chains.rs` and
//!    `cbc/mac.rs` for requests of any mixture, `cbc/uniform.rs` for those of one shape; `cbc/portable/`
//!    and `cbc/avx512/` compute it; `cbc/select.rs` chooses.
//!
//! `docs/design/003-packets.md` has the arithmetic behind 4 and 5.
//!
//! Key management, policy (which request waits for which), I/O and everything else of this repository
//! do not belong here.
#![deny(unsafe_code)]
#![warn(clippy::disallowed_methods)]

mod aes;
#[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
#[allow(unsafe_code)]
mod cache;
mod cbc;
mod fault;
pub mod limits;
pub mod packet;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod x86;

pub use cbc::{CbcBackend, CbcKey, Cipher, Hash, HmacKey, Job, LANES, Mac};
pub use fault::{Fault, FaultKind};
