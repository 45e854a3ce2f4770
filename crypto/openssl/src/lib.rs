//! A provider for OpenSSL 3.0 and later: private keys that cryptod holds, for programs that are not to be changed.
//!
//! A program loads a key by the URI `keyway:NAME`, or by a PEM file that names it, and signs with it as with any key;
//! the private half never is in the program. The built library is installed as `keyway.so` in OpenSSL's folder of
//! modules.
//!
//! ```text
//! OSSL_STORE, PEM ── store, decoder ──▶ Key: name and public half
//! EVP_PKEY_...    ── keymgmt ─────────▶ its parameters, and public parts for stock providers
//! EVP_DigestSign  ── signature ───────▶ scheme ── KeyClient ──▶ cryptod
//! EVP_PKEY_decrypt ─ cipher ────────────────────── KeyClient ──▶ cryptod
//! EVP_PKEY_derive  ─ exchange ──────────────────── KeyClient ──▶ cryptod
//! ```
//!
//! It stays out of the way of stock providers: the names of its signatures are its own, and only its keys ask for
//! them. Not here: the connection to cryptod (`keyway-client`).
#![deny(unsafe_code)]

#[allow(unsafe_code)]
mod abi;
mod cipher;
mod decoder;
mod exchange;
mod key;
mod keymgmt;
mod provider;
mod scheme;
mod signature;
mod store;
