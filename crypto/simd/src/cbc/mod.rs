//! AES-CBC with HMAC, several requests at once in the lanes of wide registers.
//!
//! From below: keys (`key`, `hash`, `hmac`), requests (`job`), what lies in lanes (`lanes`), what a
//! backend computes on it (`backend`, and `portable` and `avx512`), the way of requests through lanes
//! (`chains`, `mac`, `uniform`), and the choice of a backend (`select`).

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx512;
mod backend;
mod chains;
mod hash;
mod hmac;
mod job;
mod key;
mod lanes;
mod mac;
mod portable;
mod select;
mod uniform;

pub use hash::Hash;
pub use hmac::HmacKey;
pub use job::{Cipher, Job, Mac};
pub use key::CbcKey;
pub use lanes::LANES;
pub use select::CbcBackend;
