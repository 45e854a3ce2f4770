//! Arithmetic on bytes: no I/O, no clock, and no allocation but for keys.
//!
//! Its first inhabitant seals *several requests at once*: AES-128/256-CBC encryption with
//! HMAC-SHA1 or HMAC-SHA256 over the result (the encrypt-then-MAC of IPsec, RFC 4303, and of TLS,
//! RFC 7366), or either of them alone. CBC encryption and a hash are chains: each step waits for the
//! one before, so that a single request leaves most of the processor idle. Here every request gets a
//! *lane* of the widest registers there are, and a lane whose request has ended takes the next one.
//! Batches may mix lengths, keys, ciphers and hashes.
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
//! Its second, [`packet`], protects whole packets, with AES-NI and AVX, with AVX2 and VAES, with AVX-512, with
//! ARM's crypto extensions, or with aws-lc where there is none of them.
//!
//! `portable/` is plain and slow and says what is right, or leaves it to the library; `x86/` and `arm/` are fast, and
//! `narrow/` is what both do message by message. These three are all that is unsafe.
//! All of it is constant-time in keys and data: no table, no index and no branch depends on them;
//! lengths and the number of requests are public. Keys and lanes are wiped when they are done with.
//!
//! What may not enter: allocation (but once a key, for powers that an AES-GCM key keeps elsewhere; the
//! crate is `no_std` but for asking the processor what it has),
//! key management, policy (who waits for whom), and anything else of this house.
#![deny(unsafe_code)]

mod aes;
#[cfg(target_arch = "aarch64")]
#[allow(unsafe_code)]
mod arm;
mod backend;
mod cbc;
#[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
mod chacha;
mod hmac;
mod job;
pub mod limits;
mod mac;
#[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
#[allow(unsafe_code)]
mod narrow;
pub mod packet;
mod portable;
mod uniform;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod x86;

pub use aes::CbcKey;
pub use backend::{CbcBackend, LANES};
pub use hmac::{Hash, HmacKey};
pub use job::{Cipher, Fault, Job, Mac, Why};
