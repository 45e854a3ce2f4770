//! A PKCS #11 module: private keys that cryptod holds, for programs that are not to be changed.
//!
//! A program finds a key as an object of the token "Keyway", and signs with it as with a key of any token; the private
//! half never is in the program. Java, OpenSSH, GnuTLS, NSS and others load the built library.
//!
//! ```text
//! C_FindObjects ── finding ── KeyClient::keys_and_certificates ──▶ Object ──▶ registry: handles that stay
//! C_OpenSession ── sessions: handles, and what is under way
//! C_Sign, ...   ── operations ── Signing: digest here ── Scheme ── KeyClient ──▶ cryptod
//! ```
//!
//! Processes that are forked go on with sessions and objects that they have inherited, and no lock of their parent's
//! (`PerProcess`). Not here: the connection to cryptod (`keyway-client`).
#![deny(unsafe_code)]

#[allow(unsafe_code)]
mod abi;
mod decrypt;
mod decrypt_functions;
mod digest_functions;
#[allow(unsafe_code, reason = "names of functions")]
mod exports;
mod finding;
mod general;
mod generate_functions;
mod key;
mod limits;
mod module;
mod object;
mod operations;
mod registry;
mod scheme;
mod secret_functions;
mod secrets;
mod session_functions;
mod sessions;
mod sign_functions;
mod signing;
