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
//! EVP_PKEY_decrypt ─ encryption ────────────────── KeyClient ──▶ cryptod
//! EVP_PKEY_derive  ─ exchange ──────────────────── KeyClient ──▶ cryptod
//! EVP_Cipher..., EVP_Digest..., RAND_bytes ─ aes_gcm, digest, random ──▶ AWS-LC, in the program
//! ```
//!
//! It stays out of the way of stock providers: the names of its signatures are its own, and only its keys ask for
//! them. Ciphers, digests and random bytes are offered where the configuration says so.
//! Not here: the connection to cryptod (`keyway-client`).
#![deny(unsafe_code)]

#[allow(unsafe_code)]
mod abi;
mod aes_gcm;
mod decoder;
mod digest;
mod encryption;
mod exchange;
mod key;
mod keymgmt;
#[allow(unsafe_code)]
mod library;
mod provider;
mod random;
mod scheme;
mod signature;
mod store;
