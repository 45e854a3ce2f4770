//! Other people's programs that use a directory, configured as docs/guide/clients.md says.
//!
//! `cargo xtask nightly` runs these. Each has a machine of its own, so that neither this one's
//! users nor its PAM and name service change.

mod apache;
mod decoded;
mod java;
mod nslcd;
mod postfix;
mod postgresql;
mod site;
mod sssd;
mod tools;
